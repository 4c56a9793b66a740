/* basic.c - a select completes exactly one arm, at once or later, and leaves no other linked. */
#include "arms.h"

#include "../capture.h"

/* ---- at once ---- */

static void *ready_arms(void *unused) {
    (void)unused;
    CCChan *empty = new_chan(8, 2), *full = new_chan(8, 2), *closed = new_chan(8, 2);
    fill(full, 8);
    CHECK_EQ(cc_chan_close_err(closed, EIO), 0);
    uint64_t in = 4711, out = 7;
    size_t chosen = 99;

    CCCase recv_ready[] = {recv_arm(empty, &in), recv_arm(full, &in)};
    CHECK_EQ(cc_select(recv_ready, 2, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, 1);
    CHECK_EQ(recv_ready[1].error, 0);
    CHECK_EQ(in, 0);
    CHECK_EQ(cc_chan_len(full), 1);

    CCCase send_ready[] = {recv_arm(empty, &in), send_arm(empty, &out)}; /* the same channel on both sides */
    CHECK_EQ(cc_select(send_ready, 2, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, 1);
    CHECK_EQ(send_ready[1].error, 0);
    CHECK_EQ(cc_chan_len(empty), 1);
    CHECK_EQ(cc_select(send_ready, 1, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, 0);
    CHECK_EQ(in, 7);

    for (int send = 0; send < 2; send++) { /* a closed channel is ready, with its error, in both places */
        int status = 4711;
        in = 4711;
        CCCase cases[] = {recv_arm(empty, &in), send ? send_arm(closed, &out) : recv_arm(closed, &in)};
        cases[1].status = &status;
        CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
        CHECK_EQ(chosen, 1);
        CHECK_EQ(cases[1].error, EIO);
        CHECK_EQ(status, EIO);
        CHECK_EQ(in, 4711);
    }
    check_clean(empty);
    check_clean(full);
    check_clean(closed);
    cc_chan_free(empty);
    cc_chan_free(full);
    cc_chan_free(closed);
    return NULL;
}

TEST_WORKERS(ready_arms) {
    both_contexts(ready_arms);
}

/* What is buffered in a closed channel comes before its error. */
TEST(closed_but_not_empty) {
    CCChan *ch = new_chan(8, 2);
    fill(ch, 8);
    CHECK_EQ(cc_chan_close(ch), 0);
    uint64_t in = 99;
    size_t chosen;
    CCCase cases[] = {recv_arm(ch, &in)};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), 0);
        CHECK_EQ(cases[0].error, 0);
        CHECK_EQ(in, i);
    }
    CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), 0);
    CHECK_EQ(cases[0].error, EPIPE);
    cc_chan_free(ch);
}

/* ---- nothing is ready ---- */

static void *nothing_ready(void *unused) {
    (void)unused;
    CCChan *empty = new_chan(8, 1), *full = new_chan(8, 1), *meet = new_chan(8, 0);
    fill(full, 8);
    uint64_t in = 4711, out = 1;
    size_t chosen = 99;
    CCCase cases[] = {recv_arm(empty, &in), send_arm(full, &out), recv_arm(meet, &in),   send_arm(meet, &out),
                      recv_arm(NULL, &in),  send_arm(NULL, &out), {.kind = CC_CASE_NONE}};
    CHECK_EQ(cc_select_try(cases, 7, &chosen), EAGAIN);
    CHECK_EQ(cc_select(cases, 7, CC_PASSED, &chosen), ETIMEDOUT);
    CCDeadline soon = cc_after_ms(2);
    CHECK_EQ(cc_select(cases, 7, soon, &chosen), ETIMEDOUT);
    CHECK(cc_now_ns() >= soon.ns);
    check_clean(empty);
    check_clean(full);
    check_clean(meet);
    CHECK_EQ(in, 4711);
    CHECK_EQ(chosen, 99);
    CHECK_EQ(cc_chan_len(full), 1);

    /* Arms that can never be ready: the deadline. */
    soon = cc_after_ms(2);
    CHECK_EQ(cc_select(cases + 4, 3, soon, &chosen), ETIMEDOUT);
    CHECK(cc_now_ns() >= soon.ns);
    soon = cc_after_ms(2);
    CHECK_EQ(cc_select(NULL, 0, soon, &chosen), ETIMEDOUT);
    CHECK(cc_now_ns() >= soon.ns);
    CHECK_EQ(cc_select_try(cases + 4, 3, &chosen), EAGAIN);
    CHECK_EQ(cc_select_try(NULL, 0, &chosen), EAGAIN);
    CHECK_EQ(chosen, 99);
    cc_chan_free(empty);
    cc_chan_free(full);
    cc_chan_free(meet);
    return NULL;
}

TEST_WORKERS(nothing_ready) {
    both_contexts(nothing_ready);
}

/* ---- malformed ---- */

static void *malformed(void *unused) {
    (void)unused;
    CCChan *ch = new_chan(8, 1), *large = new_chan(12, 1);
    uint64_t value = 4711;
    size_t chosen = 99;
    CCCase good[] = {send_arm(ch, &value), send_arm(ch, &value)};
    CHECK_EQ(cc_select(good, 2, CC_FOREVER, NULL), EINVAL);
    CHECK_EQ(cc_select_try(good, 2, NULL), EINVAL);
    CHECK_EQ(cc_select(NULL, 2, CC_FOREVER, &chosen), EINVAL);
    CHECK_EQ(cc_select(good, CC_SELECT_MAX + 1, CC_FOREVER, &chosen), EINVAL); /* is not read */
    CHECK_EQ(cc_select(good, SIZE_MAX, CC_FOREVER, &chosen), EINVAL);
    CHECK_EQ(cc_select_ordered(good, 2, (CCSelectOrder)7, CC_FOREVER, &chosen), EINVAL);
    CCTask none = {0};
    CCCase bad[] = {
        {.kind = CC_CASE_RECV, .ch = ch, .value = &value, .size = 4},
        {.kind = CC_CASE_SEND, .ch = ch, .value = &value, .size = 9},
        {.kind = CC_CASE_RECV, .ch = ch, .value = NULL, .size = 8},
        {.kind = CC_CASE_SEND, .ch = ch, .value = NULL, .size = 8},
        {.kind = CC_CASE_SEND, .ch = ch, .value = &value, .size = 0},
        {.kind = CC_CASE_RECV, .ch = large, .value = &value, .size = 0},
        {.kind = CC_CASE_SEND, .ch = large, .value = &value, .size = 8},
        {.kind = CC_CASE_JOIN, .task = NULL},
        {.kind = CC_CASE_JOIN, .task = &none},
        {.kind = (CCCaseKind)77},
    };
    for (int i = 0; i < 10; i++) { /* one bad arm, and nothing happens */
        CCCase cases[] = {good[0], bad[i]}, other_way[] = {bad[i], good[0]};
        CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), EINVAL);
        CHECK_EQ(cc_select_try(other_way, 2, &chosen), EINVAL);
        CHECK_EQ(cc_match(cases, 2, true), CC_MATCH_FAILED);
    }
    CHECK_EQ(cc_chan_len(ch), 0);
    CHECK_EQ(chosen, 99);
    check_clean(ch);
    cc_chan_free(ch);
    cc_chan_free(large);
    return NULL;
}

TEST(malformed) {
    both_contexts(malformed);
}

/* ---- later ---- */

/* Whatever comes by any of four arms ends the wait, by that arm. */
static void later_with(enum parties kind, size_t arms) {
    for (size_t which = 0; which < arms; which++) {
        CCChan *chans[256];
        CCCase cases[256];
        uint64_t in[256], out[256];
        for (size_t i = 0; i < arms; i++) {
            chans[i] = new_chan(8, i % 4); /* odd arms send into a full channel, even ones receive from an empty one */
            if (i % 2) fill(chans[i], 8);
            in[i] = 4711;
            out[i] = 1000 + i;
            cases[i] = i % 2 ? send_arm(chans[i], &out[i]) : recv_arm(chans[i], &in[i]);
        }
        struct choice c;
        choice_init(&c, cases, arms);
        struct party p = party_start(kind, (int)which, choose, &c);
        for (size_t i = 0; i < arms; i++) {
            if (i % 2)
                await_senders(chans[i], 1);
            else
                await_receivers(chans[i], 1);
        }
        CHECK_EQ(atomic_load(&c.returned), -1);
        uint64_t number = 0;
        if (which % 2)
            CHECK_EQ(recv_number_try(chans[which], 8, &number), 0);
        else
            CHECK_EQ(send_number_try(chans[which], 8, 77), 0);
        party_end(&p);
        CHECK_EQ(c.returned, 0);
        CHECK_EQ(c.chosen, which);
        CHECK_EQ(cases[which].error, 0);
        for (size_t i = 0; i < arms; i++) {
            check_clean(chans[i]);
            CHECK_EQ(in[i], i == which && which % 2 == 0 ? 77 : 4711);
            CHECK_EQ(cc_chan_len(chans[i]), i % 2 ? i % 4 : 0); /* the value that was sent has taken its place */
            cc_chan_free(chans[i]);
        }
    }
}

TEST_WORKERS(later_1) {
    for_each_kind(later_with, 1);
}

TEST_WORKERS(later_4) {
    for_each_kind(later_with, 4);
}

/* More arms than the frame holds, and more locks than are released in one go. */
TEST_WORKERS(later_9) {
    for_each_kind(later_with, 9);
}

TEST_WORKERS(later_64) {
    for_each_kind(later_with, 64);
}

static void later_256(enum parties kind) {
    later_with(kind, 256);
}

TEST(later_256_fibers) {
    later_256(FIBERS);
}

TEST(later_256_threads) {
    later_256(THREADS);
}

/* ---- close and free end a select ---- */

static void close_ends_with(enum parties kind, size_t how) {
    for (int which = 0; which < 3; which++) {
        CCChan *chans[3];
        CCCase cases[3];
        uint64_t in = 4711, out = 1;
        for (int i = 0; i < 3; i++) {
            chans[i] = new_chan(8, i == 1 ? 1 : 0);
            if (i == 1) fill(chans[i], 8);
            cases[i] = i == 0 ? recv_arm(chans[i], &in) : send_arm(chans[i], &out);
        }
        struct choice c;
        choice_init(&c, cases, 3);
        struct party p = party_start(kind, which, choose, &c);
        await_receivers(chans[0], 1);
        await_senders(chans[1], 1);
        await_senders(chans[2], 1);
        if (how == 0) CHECK_EQ(cc_chan_close(chans[which]), 0);
        if (how == 1) CHECK_EQ(cc_chan_close_err(chans[which], EIO), 0);
        if (how == 2) {
            cc_chan_free(chans[which]);
            chans[which] = NULL;
        }
        party_end(&p);
        CHECK_EQ(c.returned, 0);
        CHECK_EQ(c.chosen, which);
        CHECK_EQ(cases[which].error, how == 1 ? EIO : EPIPE);
        CHECK_EQ(in, 4711);
        for (int i = 0; i < 3; i++) {
            if (chans[i] != NULL) check_clean(chans[i]);
            cc_chan_free(chans[i]);
        }
    }
}

TEST_WORKERS(close_ends_a_select) {
    for_each_kind(close_ends_with, 0);
    for_each_kind(close_ends_with, 1);
}

TEST_WORKERS(free_ends_a_select) {
    for_each_kind(close_ends_with, 2);
}

/* ---- the same channel more than once ---- */

static void twice_with(enum parties kind, size_t capacity) {
    CCChan *ch = new_chan(8, capacity);
    uint64_t a = 4711, b = 4711, out = 5;
    CCCase cases[] = {recv_arm(ch, &a), recv_arm(ch, &b), recv_arm(NULL, &a)};
    struct choice c;
    choice_init(&c, cases, 3);
    struct party p = party_start(kind, 0, choose, &c);
    await_receivers(ch, 2);
    CHECK_EQ(cc_chan_send(ch, &out, 8), 0);
    party_end(&p);
    CHECK_EQ(c.returned, 0);
    CHECK(c.chosen < 2);
    CHECK_EQ(a + b, 4711 + 5); /* one of them, once */
    check_clean(ch);
    fill(ch, 8);
    uint64_t first = capacity, second = capacity;
    CCCase sends[] = {send_arm(ch, &first), send_arm(ch, &second)};
    choice_init(&c, sends, 2);
    p = party_start(kind, 1, choose, &c);
    await_senders(ch, 2);
    drain(ch, 8, capacity + 1);
    party_end(&p);
    CHECK_EQ(c.returned, 0);
    CHECK(c.chosen < 2);
    CHECK_EQ(cc_chan_len(ch), 0);
    check_clean(ch);

    /* And freed while it is in both arms. */
    CCCase last[] = {recv_arm(ch, &a), recv_arm(ch, &b)};
    choice_init(&c, last, 2);
    p = party_start(kind, 0, choose, &c);
    await_receivers(ch, 2);
    cc_chan_free(ch);
    party_end(&p);
    CHECK_EQ(c.returned, 0);
    CHECK_EQ(last[c.chosen].error, EPIPE);
}

TEST_WORKERS(the_same_channel_twice) {
    for_each_kind(twice_with, 0);
    for_each_kind(twice_with, 2);
}

/* A select does not match its own arms: send and receive on one rendezvous channel wait for others, */
static void both_sides_with(enum parties kind, size_t unused) {
    (void)unused;
    CCChan *ch = new_chan(8, 0);
    uint64_t in[2] = {0, 0}, out[2] = {10, 20};
    CCCase cases[2][2] = {{recv_arm(ch, &in[0]), send_arm(ch, &out[0])}, {send_arm(ch, &out[1]), recv_arm(ch, &in[1])}};
    struct choice c[2];
    struct party parties[2];
    choice_init(&c[0], cases[0], 2);
    parties[0] = party_start(kind, 0, choose, &c[0]);
    await_receivers(ch, 1);
    await_senders(ch, 1);
    CHECK_EQ(atomic_load(&c[0].returned), -1);
    choice_init(&c[1], cases[1], 2); /* and two such selects match each other. */
    parties[1] = party_start(kind, 1, choose, &c[1]);
    parties_end(parties, 2);
    CHECK_EQ(c[0].returned, 0);
    CHECK_EQ(c[1].returned, 0);
    if (c[0].chosen == 0) {
        CHECK_EQ(c[1].chosen, 0);
        CHECK_EQ(in[0], 20);
        CHECK_EQ(in[1], 0);
    } else {
        CHECK_EQ(c[1].chosen, 1);
        CHECK_EQ(in[1], 10);
        CHECK_EQ(in[0], 0);
    }
    check_clean(ch);
    cc_chan_free(ch);
}

TEST_WORKERS(both_sides_of_one_channel) {
    for (int i = 0; i < 20; i++) for_each_kind(both_sides_with, 0);
}

/* ---- modes ---- */

TEST(dropping_channels_are_ready) {
    CCChan *new_goes = cc_chan_create_ex(&(CCChanConfig){.elem_size = 8, .capacity = 1, .mode = CC_CHAN_MODE_DROP_NEW});
    CCChan *old_goes = cc_chan_create_ex(&(CCChanConfig){.elem_size = 8, .capacity = 1, .mode = CC_CHAN_MODE_DROP_OLD});
    uint64_t value = 5;
    size_t chosen;
    CCCase to_new[] = {send_arm(new_goes, &value)}, to_old[] = {send_arm(old_goes, &value)};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(cc_select(to_new, 1, CC_FOREVER, &chosen), 0);
        CHECK_EQ(to_new[0].error, i == 0 ? 0 : EAGAIN); /* as the send alone would have returned */
        CHECK_EQ(cc_select(to_old, 1, CC_FOREVER, &chosen), 0);
        CHECK_EQ(to_old[0].error, 0);
    }
    CHECK_EQ(cc_chan_dropped(old_goes), 1);
    cc_chan_free(new_goes);
    cc_chan_free(old_goes);
}

/* ---- traced ---- */

static struct capture capture;

static void *select_a_cancellation(void *arg) {
    CCCase cases[] = {CC_CANCEL()};
    size_t chosen = 1;
    CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, 0);
    return arg;
}

TEST(a_cancellation_has_a_name) {
    CHECK_EQ(setenv("CC_CHAN_DEBUG_VERBOSE", "1", 1), 0);
    capture_start(&capture);
    CCTask task;
    int spawned = cc_spawn(&task, select_a_cancellation, NULL, NULL);
    int cancelled = cc_task_cancel(&task), joined = cc_task_join(&task, NULL);
    const char *said = capture_end(&capture);
    CHECK_EQ(spawned | cancelled | joined, 0);
    CHECK(contains(said, "select of 1: case 0, cancel, error 0"));
}
