/* arguments.c - invalid arguments are rejected, in any context, without any effect. */
#include "harness.h"

#include <ccc/ccc.h>

#include <errno.h>
#include <stdint.h>

static void *bad_calls(void *unused) {
    (void)unused;
    uint64_t value = 4711;
    CHECK_EQ(cc_chan_send(NULL, &value, 8), EINVAL);
    CHECK_EQ(cc_chan_send_try(NULL, &value, 8), EINVAL);
    CHECK_EQ(cc_chan_send_until(NULL, &value, 8, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_chan_recv(NULL, &value, 8), EINVAL);
    CHECK_EQ(cc_chan_recv_try(NULL, &value, 8), EINVAL);
    CHECK_EQ(cc_chan_recv_until(NULL, &value, 8, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_chan_close(NULL), EINVAL);
    CHECK_EQ(cc_chan_close_err(NULL, EIO), EINVAL);
    CHECK_EQ(cc_chan_len(NULL), 0);
    CHECK_EQ(cc_chan_cap(NULL), 0);
    CHECK(!cc_chan_is_closed(NULL));
    CHECK_EQ(cc_chan_dropped(NULL), 0);
    cc_chan_free(NULL);

    static const size_t capacities[] = {0, 1, 5};
    for (int i = 0; i < 3; i++) {
        CCChan *ch = cc_chan_create(8, capacities[i]);
        CHECK(ch != NULL);
        for (int closed = 0; closed < 2; closed++) {
            static const size_t sizes[] = {0, 1, 7, 9, 16, SIZE_MAX};
            for (int k = 0; k < 6; k++) {
                CHECK_EQ(cc_chan_send(ch, &value, sizes[k]), EINVAL);
                CHECK_EQ(cc_chan_send_try(ch, &value, sizes[k]), EINVAL);
                CHECK_EQ(cc_chan_send_until(ch, &value, sizes[k], CC_FOREVER), EINVAL);
                CHECK_EQ(cc_chan_recv(ch, &value, sizes[k]), EINVAL);
                CHECK_EQ(cc_chan_recv_try(ch, &value, sizes[k]), EINVAL);
                CHECK_EQ(cc_chan_recv_until(ch, &value, sizes[k], CC_FOREVER), EINVAL);
            }
            CHECK_EQ(cc_chan_send(ch, NULL, 8), EINVAL);
            CHECK_EQ(cc_chan_send_try(ch, NULL, 8), EINVAL);
            CHECK_EQ(cc_chan_recv(ch, NULL, 8), EINVAL);
            CHECK_EQ(cc_chan_recv_try(ch, NULL, 8), EINVAL);
            CHECK_EQ(cc_chan_close_err(ch, -EIO), EINVAL);
            CHECK_EQ(cc_chan_is_closed(ch), closed);
            CHECK_EQ(cc_chan_send_task(ch, NULL), EINVAL);
            void *result;
            CHECK_EQ(cc_chan_recv_task(ch, &result), EINVAL); /* not ordered */
            CHECK_EQ(cc_chan_close(ch), 0);
        }
        CHECK_EQ(value, 4711);
        CHECK_EQ(cc_chan_len(ch), 0);
        cc_chan_free(ch);
    }

    CCChan *tokens = cc_chan_create(0, 2); /* nothing is copied, so NULL is valid */
    CHECK(tokens != NULL);
    CHECK_EQ(cc_chan_send(tokens, NULL, 0), 0);
    CHECK_EQ(cc_chan_len(tokens), 1);
    CHECK_EQ(cc_chan_recv(tokens, NULL, 0), 0);
    CHECK_EQ(cc_chan_recv(tokens, &value, 8), EINVAL);
    cc_chan_free(tokens);
    return NULL;
}

TEST(bad_calls) {
    bad_calls(NULL);
    CHECK_EQ(cc_run(bad_calls, NULL, NULL), 0);
}

static int make(void *item, void *context) {
    (void)item, (void)context;
    return 0;
}

static void clean(void *item, void *context) {
    (void)item, (void)context;
}

static void refused(CCChanConfig config) {
    CHECK(cc_chan_create_ex(&config) == NULL);
}

static void *impossible_channels(void *unused) {
    (void)unused;
    static const size_t huge[] = {SIZE_MAX,         SIZE_MAX / 2,      SIZE_MAX / 8,
                                  SIZE_MAX / 8 + 1, SIZE_MAX / 16 + 1, SIZE_MAX / 16};
    for (int i = 0; i < 6; i++) {
        errno = 0;
        CHECK(cc_chan_create(8, huge[i]) == NULL);
        CHECK_EQ(errno, ENOMEM);
        CHECK(cc_chan_create(huge[i], 8) == NULL);
        CHECK(cc_chan_create(huge[i], huge[i]) == NULL);
    }
    CHECK(cc_chan_create(SIZE_MAX, 1) == NULL);
    CHECK(cc_chan_create(1, SIZE_MAX) == NULL);
    CHECK(cc_chan_create((size_t)1 << 32, (size_t)1 << 32) == NULL); /* the product is 0 */
    CHECK(cc_chan_create_ex(NULL) == NULL);
    CHECK_EQ(errno, EINVAL);
    refused((CCChanConfig){.elem_size = 8, .capacity = 0, .mode = CC_CHAN_MODE_DROP_NEW});
    refused((CCChanConfig){.elem_size = 8, .capacity = 0, .mode = CC_CHAN_MODE_DROP_OLD});
    refused((CCChanConfig){.elem_size = 8, .capacity = 1, .mode = (CCChanMode)77});
    refused((CCChanConfig){.elem_size = 8, .capacity = 0, .on_create = make});
    refused((CCChanConfig){.elem_size = 8, .capacity = 2, .on_create = make, .mode = CC_CHAN_MODE_DROP_OLD});
    refused((CCChanConfig){.elem_size = 8, .capacity = 2, .on_destroy = clean, .mode = CC_CHAN_MODE_DROP_NEW});
    refused((CCChanConfig){.capacity = 2, .on_reset = clean, .ordered = true});
    refused((CCChanConfig){.capacity = 2, .ordered = true, .elem_size = 4});
    refused((CCChanConfig){.capacity = 2, .ordered = true, .mode = CC_CHAN_MODE_DROP_OLD});
    return NULL;
}

TEST(impossible_channels) {
    impossible_channels(NULL);
    CHECK_EQ(cc_run(impossible_channels, NULL, NULL), 0);
}

/* Many tokens cost no memory, whatever the capacity. */
TEST(any_number_of_tokens) {
    CCChan *ch = cc_chan_create(0, (size_t)1 << 40);
    CHECK(ch != NULL);
    CHECK_EQ(cc_chan_cap(ch), (size_t)1 << 40);
    for (int i = 0; i < 100000; i++) CHECK_EQ(cc_chan_send_try(ch, NULL, 0), 0);
    CHECK_EQ(cc_chan_len(ch), 100000);
    cc_chan_free(ch);
}

/* A channel works before the runtime is started, and does not start it. */
TEST(needs_no_runtime) {
    CCChan *ch = cc_chan_create(4, 2);
    int in = 1, out = 0;
    CHECK_EQ(cc_chan_send(ch, &in, 4), 0);
    CHECK_EQ(cc_chan_recv(ch, &out, 4), 0);
    CHECK_EQ(out, 1);
    CHECK_EQ(cc_chan_recv_until(ch, &out, 4, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(cc_chan_close(ch), 0);
    CHECK_EQ(cc_chan_recv(ch, &out, 4), EPIPE);
    cc_chan_free(ch);
    CHECK_EQ(cc_worker_count(), 0);
}

TEST(a_long_name_is_cut) {
    char name[200];
    for (int i = 0; i < 199; i++) name[i] = 'x';
    name[199] = '\0';
    CCChan *ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = 8, .capacity = 1, .name = name});
    CHECK(ch != NULL);
    uint64_t value = 1;
    CHECK_EQ(cc_chan_send(ch, &value, 8), 0);
    cc_chan_free(ch);
}
