/* leak.c - a request that times out leaks the fiber that was to answer it. */
#include <ccc/ccc.h>
#include <stdio.h>

static void *answer(void *answers) {
    int value = 42;
    cc_sleep_ms(200);
    cc_chan_send(answers, &value, sizeof value); /* the caller may have timed out */
    cc_chan_free(answers);
    return NULL;
}

__attribute__((noinline)) static void ask(void) {
    int value;
    CCChan *answers = cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof value, .capacity = 0, .name = "answers"});
    CCTask task;
    cc_chan_ref(answers);
    cc_spawn(&task, answer, answers, &(CCSpawnOptions){.name = "oracle"});
    cc_task_detach(&task);
    if (cc_chan_recv_until(answers, &value, sizeof value, cc_after_ms(1)) != 0) puts("no answer in time");
    cc_chan_free(answers);
}

int main(void) {
    ask();
    cc_sleep_ms(600); /* the program continues */
}
