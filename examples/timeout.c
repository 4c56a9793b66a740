/* timeout.c - three ways to bound a wait: a deadline, a timeout arm of a match, and a call that does not wait. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>

static void *answer_late(void *arg) {
    cc_sleep_ms(30);
    int answer = 42;
    cc_chan_send(arg, &answer, sizeof answer);
    return NULL;
}

int main(void) {
    CCChan *answers = cc_chan_create(sizeof(int), 1);
    int answer = 0, error;

    error = cc_chan_recv_until(answers, &answer, sizeof answer, cc_after_ms(5));
    printf("A deadline: %s\n", error == ETIMEDOUT ? "nothing in 5 ms" : "?");

    CC_MATCH(CC_RECV(answers, &answer, &error), CC_AFTER_MS(5)) {
    case 0:
        puts("An arm: ?");
        break;
    case 1:
        puts("An arm: 5 ms have passed");
        break;
    }

    CC_MATCH_TRY(CC_RECV(answers, &answer, &error)) {
    case 0:
        puts("A poll: ?");
        break;
    case CC_MATCH_NONE:
        puts("A poll: nothing there");
        break;
    }

    CCTask task = cc_fiber_spawn_task(answer_late, answers);
    CC_MATCH(CC_RECV(answers, &answer, &error), CC_AFTER_MS(60 * 1000)) {
    case 0:
        printf("Without a deadline: %d\n", answer);
        break;
    case 1:
        puts("Without a deadline: ?");
        break;
    }
    cc_task_join(&task, NULL);
    cc_chan_free(answers);
}
