/* order.c - of several ready arms each is chosen equally often, or the first, as asked. */
#include "arms.h"

enum { MOST = 8 };

/* Within ten standard deviations of n / arms. */
static void check_fair(const long *count, int arms, long n) {
    double p = 1.0 / arms, expected = (double)n * p, sigma2 = (double)n * p * (1 - p);
    for (int i = 0; i < arms; i++) {
        double off = (double)count[i] - expected;
        if (off * off > 100 * sigma2) test_fail(__FILE__, __LINE__, "arm %d of %d: %ld of %ld", i, arms, count[i], n);
    }
}

/* All arms are always ready; with `never`, two more never are. */
static void *fair_body(void *arg) {
    int arms = *(int *)arg;
    long count[MOST] = {0}, n = test_rounds(20000, 2000000);
    CCChan *ch[MOST], *empty = new_chan(8, 1);
    CCCase cases[MOST + 2];
    uint64_t value = 1, in;
    for (int i = 0; i < arms; i++) {
        ch[i] = new_chan(8, 2);
        CHECK_EQ(cc_chan_send(ch[i], &value, 8), 0); /* half full: ready both ways */
        cases[i] = i % 2 ? send_arm(ch[i], &value) : recv_arm(ch[i], &in);
    }
    cases[arms] = recv_arm(empty, &in);
    cases[arms + 1] = recv_arm(NULL, &in);
    for (long i = 0; i < n; i++) {
        size_t chosen;
        CHECK_EQ(i % 2 ? cc_select(cases, (size_t)arms + 2, CC_FOREVER, &chosen)
                       : cc_select_try(cases, (size_t)arms + 2, &chosen),
                 0);
        CHECK(chosen < (size_t)arms);
        CHECK_EQ(cases[chosen].error, 0);
        count[chosen]++;
        if (chosen % 2)
            CHECK_EQ(cc_chan_recv_try(ch[chosen], &in, 8), 0);
        else
            CHECK_EQ(cc_chan_send_try(ch[chosen], &value, 8), 0);
    }
    check_fair(count, arms, n);
    for (int i = 0; i < arms; i++) cc_chan_free(ch[i]);
    cc_chan_free(empty);
    return NULL;
}

TEST_WORKERS(fair) {
    static int arms[] = {2, 3, 8};
    for (int i = 0; i < 3; i++) {
        fair_body(&arms[i]);
        CHECK_EQ(cc_run(fair_body, &arms[i], NULL), 0);
    }
}

/* Closed channels are ready like others: they do not crowd out the rest. */
TEST(fair_beside_closed_channels) {
    CCChan *closed = new_chan(8, 1), *open = new_chan(8, 1);
    uint64_t in, value = 1;
    long count[2] = {0, 0}, n = test_rounds(20000, 1000000);
    CHECK_EQ(cc_chan_close(closed), 0);
    CHECK_EQ(cc_chan_send(open, &value, 8), 0);
    for (long i = 0; i < n; i++) {
        size_t chosen;
        CCCase cases[] = {recv_arm(closed, &in), recv_arm(open, &in)};
        CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
        CHECK_EQ(cases[chosen].error, chosen == 0 ? EPIPE : 0);
        if (chosen == 1) CHECK_EQ(cc_chan_send(open, &value, 8), 0);
        count[chosen]++;
    }
    check_fair(count, 2, n);
    cc_chan_free(closed);
    cc_chan_free(open);
}

/* Two producers that are always there: over a long time both are received from equally often, though the select parks
 * in between. */
struct supply {
    CCChan *ch;
    uint64_t value;
};

static void *supply(void *arg) {
    struct supply *s = arg;
    while (cc_chan_send(s->ch, &s->value, 8) == 0) {
    }
    return NULL;
}

TEST_WORKERS(no_producer_starves) {
    struct supply supplies[3];
    CCTask tasks[3];
    uint64_t in = 0;
    CCCase cases[3];
    for (int i = 0; i < 3; i++) {
        supplies[i] = (struct supply){new_chan(8, 0), (uint64_t)i};
        tasks[i] = cc_fiber_spawn_task(supply, &supplies[i]);
        cases[i] = recv_arm(supplies[i].ch, &in);
    }
    /* Until each has been received from often enough: if one starved, the loop would not end. How long it takes depends
     * on the system, which may not schedule a producer for a while. */
    long count[3] = {0, 0, 0}, n = test_rounds(3000, 300000);
    for (long i = 0; i < n || count[0] < n / 20 || count[1] < n / 20 || count[2] < n / 20; i++) {
        size_t chosen;
        CHECK_EQ(cc_select(cases, 3, CC_FOREVER, &chosen), 0);
        CHECK_EQ(cases[chosen].error, 0);
        CHECK_EQ(in, chosen);
        count[chosen]++;
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cc_chan_close(supplies[i].ch), 0);
        CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
        check_clean(supplies[i].ch);
        cc_chan_free(supplies[i].ch);
    }
}

/* ---- the first ---- */

static void *first_body(void *unused) {
    (void)unused;
    CCChan *ch[20];
    CCCase cases[20];
    uint64_t in;
    size_t chosen;
    for (int i = 0; i < 20; i++) {
        ch[i] = new_chan(8, 1);
        cases[i] = recv_arm(ch[i], &in);
    }
    for (int round = 0; round < 50; round++)
        for (int first = 0; first < 20; first++) {
            for (int i = first; i < 20; i++) CHECK_EQ(send_number_try(ch[i], 8, (uint64_t)i), 0);
            for (int i = first; i < 20; i++) { /* one after the other, whatever else is ready */
                CHECK_EQ(cc_select_ordered(cases, 20, CC_SELECT_FIRST, CC_FOREVER, &chosen), 0);
                CHECK_EQ(chosen, i);
                CHECK_EQ(in, i);
            }
        }
    CHECK_EQ(cc_select_ordered(cases, 20, CC_SELECT_FIRST, CC_PASSED, &chosen), ETIMEDOUT);
    for (int i = 0; i < 20; i++) {
        check_clean(ch[i]);
        cc_chan_free(ch[i]);
    }
    return NULL;
}

TEST_WORKERS(first) {
    both_contexts(first_body);
}

/* ---- moments ---- */

static void *moments(void *unused) {
    (void)unused;
    CCChan *ch = new_chan(8, 0);
    uint64_t in = 4711;
    size_t chosen = 99;
    CCDeadline soon = cc_after_ms(2);
    int status = 4711;
    CCCase cases[] = {recv_arm(ch, &in), CC_AT(CC_FOREVER), CC_AT(soon), CC_AT(cc_after_ms(3600 * 1000))};
    cases[2].status = &status;
    CHECK_EQ(cc_select(cases, 4, CC_FOREVER, &chosen), 0);
    CHECK(cc_now_ns() >= soon.ns); /* never early */
    CHECK_EQ(chosen, 2);           /* the earliest */
    CHECK_EQ(cases[2].error, 0);
    CHECK_EQ(status, 0);
    CHECK_EQ(cc_select_try(cases, 4, &chosen), 0); /* it has come */
    CHECK_EQ(chosen, 2);
    CHECK_EQ(cc_select_try(cases, 2, &chosen), EAGAIN);

    soon = cc_after_ms(2); /* the select's own deadline comes first: no arm happened */
    chosen = 99;
    CCCase later[] = {recv_arm(ch, &in), CC_AFTER_MS(3600 * 1000)};
    CHECK_EQ(cc_select(later, 2, soon, &chosen), ETIMEDOUT);
    CHECK_EQ(chosen, 99);
    check_clean(ch);
    CHECK_EQ(in, 4711);
    cc_chan_free(ch);
    return NULL;
}

TEST_WORKERS(moments) {
    both_contexts(moments);
}

/* A deadline arm that has passed is chosen as often as a ready channel. */
TEST(a_deadline_arm_that_has_passed_is_ready) {
    CCChan *ch = new_chan(8, 1);
    uint64_t in, value = 1;
    long count[2] = {0, 0}, n = test_rounds(20000, 200000);
    CHECK_EQ(cc_chan_send(ch, &value, 8), 0);
    for (long i = 0; i < n; i++) {
        size_t chosen;
        CCCase cases[] = {recv_arm(ch, &in), CC_AT((CCDeadline){1})};
        CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
        count[chosen]++;
        if (chosen == 0) CHECK_EQ(cc_chan_send(ch, &value, 8), 0);
    }
    check_fair(count, 2, n);
    cc_chan_free(ch);
}

TEST(first_counts_moments_too) {
    CCChan *ch = new_chan(8, 1);
    uint64_t in, value = 1;
    CHECK_EQ(cc_chan_send(ch, &value, 8), 0);
    CCCase cases[] = {CC_AT((CCDeadline){1}), recv_arm(ch, &in)};
    size_t chosen;
    CHECK_EQ(cc_select_ordered(cases, 2, CC_SELECT_FIRST, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, 0);
    cc_chan_free(ch);
}

/* ---- locks ---- */

enum { MANY = 60, SELECTORS = 4 };

struct selector {
    CCChan **ch;
    int order;
    long sum;
};

/* The i-th of the selector's arms: upwards, downwards, mixed, or every channel in several arms. */
static int arm_of(const struct selector *s, int i) {
    return s->order == 0 ? i : s->order == 1 ? MANY - 1 - i : s->order == 2 ? i * 7 % MANY : i * 12 % MANY;
}

static void *select_in_order(void *arg) {
    struct selector *s = arg;
    CCCase cases[MANY];
    uint64_t in = 0;
    for (long k = 0;; k++) {
        size_t n = k % 3 == 2 ? 9 + (size_t)k % 50 : MANY, chosen;
        for (size_t i = 0; i < n; i++) cases[i] = recv_arm(s->ch[arm_of(s, (int)i)], &in);
        int rc = cc_select(cases, n, n == MANY ? CC_FOREVER : cc_after_ns(20000), &chosen);
        if (rc == ETIMEDOUT) continue;
        CHECK_EQ(rc, 0);
        if (cases[chosen].error == EPIPE) return NULL;
        s->sum += (long)in;
    }
}

/* Selects of many channels in different orders wait at the same time: each takes the locks in the order of their
 * addresses, and nothing is lost. */
TEST_WORKERS(many_arms_in_any_order) {
    CCChan *ch[MANY];
    struct selector selectors[SELECTORS];
    CCTask tasks[SELECTORS];
    long sent = 0, received = 0, n = test_rounds(2000, 100000);
    for (int i = 0; i < MANY; i++) ch[i] = new_chan(8, 0);
    for (int i = 0; i < SELECTORS; i++) {
        selectors[i] = (struct selector){ch, i, 0};
        CHECK_EQ(cc_spawn(&tasks[i], select_in_order, &selectors[i], NULL), 0);
    }
    for (long k = 1; k <= n; k++) {
        uint64_t value = (uint64_t)k;
        CHECK_EQ(cc_chan_send(ch[k * 36 % MANY], &value, 8), 0); /* of those that every selector has */
        sent += k;
    }
    for (int i = 0; i < MANY; i++) CHECK_EQ(cc_chan_close(ch[i]), 0);
    for (int i = 0; i < SELECTORS; i++) {
        CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
        received += selectors[i].sum;
    }
    CHECK_EQ(received, sent);
    for (int i = 0; i < MANY; i++) {
        check_clean(ch[i]);
        cc_chan_free(ch[i]);
    }
}
