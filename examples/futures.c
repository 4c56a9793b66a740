/* futures.c - typed results: two requests at once, one with a deadline, and a select with a body for each arm. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>

typedef struct Reply {
    int status;
    char text[64];
} Reply;

/* A function that can be called, or started as a task. */
CC_ASYNC(Reply, ask, {
    const char *host;
    int id, ms;
    CCEvent *awake; /* the host answers when this is set; NULL: at once */
}) {
    Reply r = {.status = 200};
    if (self->awake != NULL && cc_event_wait(self->awake) != 0) CC_SET_ERROR(ECANCELED);
    if (cc_sleep_ms((uint64_t)self->ms) != 0) CC_SET_ERROR(ECANCELED);
    snprintf(r.text, sizeof r.text, "%s has answered %d", self->host, self->id);
    return r;
}

CC_ASYNC(long, count, {
    int to;
    CCChan *progress;
}) {
    for (int i = 1; i <= self->to; i++) cc_chan_send(self->progress, &i, sizeof i);
    return self->to;
}

int main(void) {
    puts(CC_CALL(ask, .host = "alpha", .id = 1).text); /* a call: no task */

    CC_FUTURE(ask, a);
    CC_FUTURE(ask, b);
    CC_START(&a, ask, .host = "beta", .id = 2, .ms = 2);
    CC_START(&b, ask, .host = "gamma", .id = 3, .ms = 1);
    puts(CC_AWAIT(&a).text); /* both have run at the same time */
    puts(CC_AWAIT(&b).text);

    {
        CCEvent awake = {0};
        CC_FUTURE(ask, slow);
        CC_START(&slow, ask, .host = "delta", .awake = &awake);
        printf("delta: %s\n", cc_await(&slow, cc_after_ms(1)) == ETIMEDOUT ? "not yet" : "?");
        (void)cc_event_set(&awake);
    } /* waits for it */

    CCChan *progress = cc_chan_create(sizeof(int), 0);
    CC_FUTURE(count, c);
    CC_START(&c, count, .to = 3, .progress = progress);
    for (bool done = false; !done;) {
        int step;
        CC_WHEN {
            CC_ON_RECV(progress, &step) {
                printf("step %d\n", step);
            }
            CC_ON_AWAIT(&c) {
                printf("counted to %ld\n", CC_AWAIT(&c));
                done = true;
            }
            CC_ON_AFTER_MS(60 * 1000) {
                puts("nothing for a minute");
            }
        }
    }
    cc_chan_free(progress);
}
