/* claim_lost.c - a wait was ended by something else and has yet to unlink when the last reference to the channel is
 * dropped: the channel stays until then, and no longer (CHAN-5).
 *
 * One worker: a cancelled fiber runs when its canceller waits, and not before. The values of a channel are destroyed
 * with it, which shows when that happens. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>

enum { LATE = 3 };

static atomic_int destroyed; /* the race detector does not know that one worker runs them in order */

static void note_destroyed(void *item, void *context) {
    (void)item, (void)context;
    destroyed++;
}

static void *send_one_too_many(void *ch) {
    int value = 2;
    CHECK_EQ(cc_chan_send(ch, &value, sizeof value), ECANCELED);
    return NULL;
}

static void *select_one_too_many(void *ch) {
    int value = 3;
    size_t chosen;
    CCCase cases[] = {{.kind = CC_CASE_SEND, .ch = ch, .value = &value, .size = sizeof value},
                      {.kind = CC_CASE_SEND, .ch = ch, .value = &value, .size = sizeof value}};
    CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), ECANCELED);
    return NULL;
}

static void *send_with_a_deadline(void *ch) {
    int value = 4;
    CHECK_EQ(cc_chan_send_until(ch, &value, sizeof value, cc_after_ms(3600 * 1000)), ECANCELED);
    return NULL;
}

/* They wait, are cancelled, and unlink after the last reference was dropped. */
static void *give_up(void *fn) {
    CCTask tasks[LATE];
    int value = 1;
    CCChan *ch =
        cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof value, .capacity = 1, .on_destroy = note_destroyed});
    CHECK_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    for (int i = 0; i < LATE; i++) CHECK_EQ(cc_spawn(&tasks[i], *(CCTaskFn *)fn, ch, NULL), 0);
    cc_yield(); /* all wait */
    for (int i = 0; i < LATE; i++) CHECK_EQ(cc_task_cancel(&tasks[i]), 0);
    destroyed = 0;
    cc_chan_free(ch);
    CHECK_EQ(destroyed, 0);
    for (int i = 0; i < LATE; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(destroyed, 1);
    return NULL;
}

static void on_one_worker(CCTaskFn fn) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(give_up, &fn, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

TEST(senders) {
    on_one_worker(send_one_too_many);
}

TEST(selects) {
    on_one_worker(select_one_too_many);
}

TEST(senders_with_a_deadline) {
    on_one_worker(send_with_a_deadline);
}
