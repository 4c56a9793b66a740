/* on_drop.c - each value that was sent is received or passed to on_drop, once; typed channels with all settings. */
#include "../contexts.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_int drops;

static void free_it(void *value, void *context) {
    CHECK(context == &drops);
    drops++;
    free(*(void **)value);
}

typedef int *Owned;
CC_CHAN_OF(OwnedChan, Owned);

static int *number(int v) {
    int *p = malloc(sizeof *p);
    *p = v;
    return p;
}

static void dropped(CCChanMode mode, int expected) {
    CCChanConfig config = {.capacity = 3, .mode = mode, .on_drop = free_it, .context = &drops};
    OwnedChan ch = OwnedChan_create_ex(config);
    Owned got = NULL;
    CHECK(ch.ch != NULL);
    drops = 0;
    for (int i = 0; i < 5; i++) {
        Owned sent = number(i);
        int rc = OwnedChan_send_try(ch, sent);
        CHECK(rc == 0 || rc == EAGAIN);
        if (rc != 0) free(sent); /* the caller still owns it */
    }
    CHECK_EQ(drops, mode == CC_CHAN_MODE_DROP_OLD ? 2 : 0);
    OwnedChanRx rx = OwnedChan_rx(OwnedChan_from(ch.ch));
    CHECK_EQ(OwnedChanRx_recv_try(rx, &got), 0);
    free(got);
    CHECK_EQ(OwnedChanTx_send_until(OwnedChan_tx(ch), number(9), CC_FOREVER), 0);
    CHECK_EQ(OwnedChan_close(ch), 0);
    CHECK_EQ(OwnedChanRx_recv_until(rx, &got, CC_FOREVER), 0);
    free(got);
    OwnedChan_free(ch); /* two are left */
    CHECK_EQ(drops, expected);
}

static void modes(void) {
    dropped(CC_CHAN_MODE_BLOCK, 2);
    dropped(CC_CHAN_MODE_DROP_NEW, 2);
    dropped(CC_CHAN_MODE_DROP_OLD, 4);
}

TEST_WORKERS(modes) {
    in_both_contexts(modes);
}

/* Values that do not fit into a frame. */
struct large {
    int number;
    char rest[1000];
};

static void note_large(void *value, void *sum) {
    *(int *)sum += ((struct large *)value)->number;
}

TEST(large_values) {
    int sum = 0;
    CCChanConfig config = {.elem_size = sizeof(struct large),
                           .capacity = 1,
                           .mode = CC_CHAN_MODE_DROP_OLD,
                           .on_drop = note_large,
                           .context = &sum};
    CCChan *ch = cc_chan_create_ex(&config);
    static struct large value;
    for (value.number = 1; value.number <= 3; value.number++) CHECK_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    CHECK_EQ(sum, 1 + 2);
    cc_chan_free(ch);
    CHECK_EQ(sum, 1 + 2 + 3);
}

static int create(void *item, void *context) {
    (void)item, (void)context;
    return 0;
}

TEST(contradictions) {
    CCChanConfig pool = {.elem_size = 8, .capacity = 1, .on_create = create, .on_drop = free_it};
    CHECK(cc_chan_create_ex(&pool) == NULL && errno == EINVAL);
    CCChanConfig ordered = {.ordered = true, .capacity = 1, .on_drop = free_it};
    CHECK(cc_chan_create_ex(&ordered) == NULL && errno == EINVAL);
}
