/* for_recv.c - CC_FOR_RECV: until closed and empty, or cancelled; the channel is evaluated once; misuse. */
#include "../contexts.h"

#include <errno.h>
#include <string.h>

CC_TASK(produce, { CCChan *ch; }) {
    for (int i = 1; i <= 100; i++) CHECK_EQ(cc_chan_send(self->ch, &i, sizeof i), 0);
    CHECK_EQ(cc_chan_close(self->ch), 0);
    return NULL;
}

static int evaluated;

static CCChan *counted(CCChan *ch) {
    evaluated++;
    return ch;
}

static void loop(void) {
    CCChan *ch = cc_chan_create(sizeof(int), 3);
    CCTask task = CC_GO(produce, .ch = ch);
    int sum = 0, rc = -1;
    evaluated = 0;
    CC_FOR_RECV(int, v, counted(ch)) sum += v;
    CHECK_EQ(sum, 5050);
    CHECK_EQ(evaluated, 1);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    cc_chan_free(ch);
    ch = cc_chan_create(sizeof(int), 3);
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CC_FOR_RECV(int, v, ch) CHECK_EQ(v, -1); /* ends at once */
        CHECK(cc_cancelled());
    }
    cc_chan_free(ch);
}

TEST_WORKERS(loop) {
    in_both_contexts(loop);
}

static void of_null(void *unused) {
    (void)unused;
    CC_FOR_RECV(int, v, NULL)(void) v;
}

static void of_another_size(void *ch) {
    CC_FOR_RECV(short, v, (CCChan *)ch)(void) v;
}

TEST(misuse) {
    CCPanic why;
    CCChan *ch = cc_chan_create(sizeof(int), 3);
    CHECK_EQ(cc_try(of_null, NULL, &why), ENOTRECOVERABLE);
    CHECK(strcmp(why.message, "CC_FOR_RECV: the channel is NULL") == 0);
    CHECK_EQ(cc_try(of_another_size, ch, &why), ENOTRECOVERABLE);
    CHECK(strcmp(why.message, "CC_FOR_RECV: the channel carries values of 4 bytes, and the variable has 2") == 0);
    cc_chan_free(ch);
}
