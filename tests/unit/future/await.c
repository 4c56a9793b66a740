/* await.c - futures: typed values, errors, deadlines, and the end of the block, whichever way it is left. */
#include "../contexts.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct Big {
    long sum;
    char text[3000];
} Big;

CC_ASYNC(Big, large, {
    int a, b;
    const char *text;
}) {
    Big big = {.sum = self->a + self->b};
    if (self->text != NULL) snprintf(big.text, sizeof big.text, "%s", self->text);
    return big;
}

CC_ASYNC(int, seven) {
    return 7;
}

CC_ASYNC(int, fails, { int code; }) {
    CC_SET_ERROR(self->code);
    return -1;
}

CC_ASYNC(int, panics) {
    cc_panic("on purpose");
    return 0;
}

static atomic_int started, ended, cancelled;

/* Runs until it is released, or cancelled. */
CC_ASYNC(int, waits, { CCChan *until; }) {
    int value = 0;
    started++;
    int rc = cc_chan_recv(self->until, &value, sizeof value);
    if (rc == ECANCELED) cancelled++;
    CC_SET_ERROR(rc);
    ended++;
    return value;
}

/* The names of the macros' own variables are not taken. */
CC_ASYNC(int, f, { int size; }) {
    return self->size + 1;
}

static CCChan *gate(void) {
    CCChan *ch = cc_chan_create(sizeof(int), 1);
    CHECK(ch != NULL);
    started = ended = cancelled = 0;
    return ch;
}

static void values(void) {
    Big big = CC_CALL(large, .a = 1, .b = 2, .text = "called");
    CHECK(big.sum == 3 && strcmp(big.text, "called") == 0);
    CHECK_EQ(CC_CALL(seven), 7);
    CC_FUTURE(large, a);
    CC_FUTURE(large, b);
    CC_FUTURE(seven, c);
    CHECK_EQ(CC_START(&a, large, .a = 10, .b = 20, .text = "started"), 0);
    CHECK_EQ(CC_START(&b, large, .b = 5), 0); /* left out: 0 */
    CHECK_EQ(CC_START(&c, seven), 0);
    CHECK_EQ(CC_AWAIT(&a).sum + CC_AWAIT(&b).sum, 35);
    CHECK(strcmp(a.value.text, "started") == 0 && b.value.text[0] == 0);
    CHECK_EQ(CC_AWAIT(&c), 7);
    for (int i = 0; i < 3; i++) { /* again */
        CHECK_EQ(CC_START(&c, seven), 0);
        CHECK_EQ(cc_await(&c, CC_FOREVER), 0);
        CHECK_EQ(c.value, 7);
    }
    int evaluated = 0;
    seven_future *only[] = {&c, NULL};
    CHECK_EQ(CC_START(&c, seven), 0);
    CHECK_EQ(CC_AWAIT(only[evaluated++]), 7);
    CHECK_EQ(evaluated, 1);
}

TEST(any_name) {
    CC_FUTURE(f, size);
    CHECK_EQ(CC_START(&size, f, .size = 1), 0);
    CHECK_EQ(CC_AWAIT(&size) + CC_CALL(f, .size = 3), 6);
}

TEST_WORKERS(values) {
    in_both_contexts(values);
}

static void errors(void) {
    CC_FUTURE(fails, f);
    CHECK_EQ(CC_START(&f, fails, .code = EIO), 0);
    CHECK_EQ(cc_await(&f, CC_FOREVER), EIO);
    CHECK_EQ(f.value, -1);
    struct fails_args args = {ENOENT};
    int error = 0;
    CHECK_EQ(fails(&args, &error), -1);
    CHECK_EQ(error, ENOENT);
    CC_FUTURE(panics, p);
    CHECK_EQ(CC_START(&p, panics), 0);
    CHECK_EQ(cc_await(&p, CC_FOREVER), ENOTRECOVERABLE);
    CHECK_EQ(CC_START(&f, fails, .code = ECANCELED), 0);
    CHECK_EQ(CC_AWAIT(&f), -1); /* no panic */
    CHECK_EQ(CC_CALL(fails, .code = ECANCELED), -1);
}

TEST_WORKERS(errors) {
    in_both_contexts(errors);
}

static void deadlines(void) {
    CCChan *ch = gate();
    CC_FUTURE(waits, f);
    CHECK_EQ(CC_START(&f, waits, .until = ch), 0);
    CHECK_EQ(cc_await(&f, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(cc_await(&f, CC_PASSED), ETIMEDOUT);
    int v = 5;
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    CHECK_EQ(cc_await(&f, CC_FOREVER), 0);
    CHECK_EQ(f.value, 5);
    cc_chan_free(ch);
}

TEST_WORKERS(deadlines) {
    in_both_contexts(deadlines);
}

/* ---- the block is left ---- */

static int by_return(CCChan *ch) {
    CC_FUTURE(waits, f);
    CHECK_EQ(CC_START(&f, waits, .until = ch), 0);
    return 3;
}

static void left(void) {
    CCChan *ch = gate();
    int v = 1, round = 0;
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    CHECK_EQ(by_return(ch), 3);
    CHECK_EQ(ended, ++round);
    for (;;) {
        CC_FUTURE(waits, f);
        CHECK_EQ(CC_START(&f, waits, .until = ch), 0);
        CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
        break;
    }
    CHECK_EQ(ended, ++round);
    {
        CC_FUTURE(waits, f);
        CHECK_EQ(CC_START(&f, waits, .until = ch), 0);
        CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
        goto out;
    }
out:
    CHECK_EQ(ended, ++round);
    {
        CC_FUTURE(waits, f);
        CC_FUTURE(waits, never);
        CHECK_EQ(CC_START(&f, waits, .until = ch), 0);
        CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
        CHECK(never.future.state == CC_FUTURE_EMPTY);
    }
    CHECK_EQ(ended, ++round);
    CHECK_EQ(cancelled, 0);
    cc_chan_free(ch);
}

TEST_WORKERS(left) {
    in_both_contexts(left);
}

static void panic_with_future(void *ch) {
    CC_FUTURE(waits, f);
    CC_FUTURE(seven, awaited);
    CHECK_EQ(CC_START(&f, waits, .until = (CCChan *)ch), 0);
    CHECK_EQ(CC_START(&awaited, seven), 0);
    CHECK_EQ(CC_AWAIT(&awaited), 7);
    cc_panic("passes through");
}

static void left_by_panic(void) {
    CCChan *ch = gate();
    CCPanic why;
    CHECK_EQ(cc_try(panic_with_future, ch, &why), ENOTRECOVERABLE);
    CHECK(strcmp(why.message, "passes through") == 0);
    CHECK_EQ(cancelled, started); /* or it was cancelled before it could begin to wait */
    CHECK_EQ(ended, 1);
    cc_chan_free(ch);
}

TEST_WORKERS(left_by_panic) {
    in_both_contexts(left_by_panic);
}

/* A cancelled caller cancels its tasks, and waits for them. */
static void cancelled_caller(void) {
    CCChan *ch = gate();
    int rc = -1;
    CC_NURSERY(n, .result = &rc, .deadline = cc_after_ms(2)) {
        CC_FUTURE(waits, f);
        CHECK_EQ(CC_START(&f, waits, .until = ch), 0);
        CHECK_EQ(CC_AWAIT(&f), 0);
        CHECK_EQ(f.future.error, ECANCELED);
        CHECK_EQ(ended, 1);
    }
    CHECK_EQ(rc, ETIMEDOUT);
    started = ended = cancelled = 0;
    CC_NURSERY(n, .result = &rc) {
        CC_FUTURE(waits, f);
        CHECK_EQ(CC_START(&f, waits, .until = ch), 0);
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CHECK_EQ(cc_await(&f, CC_FOREVER), ECANCELED);
        CHECK_EQ(f.future.state, CC_FUTURE_RUNNING); /* the end of the block does it */
    }
    CHECK_EQ(ended, 1);
    CHECK_EQ(cancelled, 1);
    CHECK_EQ(rc, ECANCELED);
    cc_chan_free(ch);
}

TEST_WORKERS(cancelled_caller) {
    in_both_contexts(cancelled_caller);
}

/* An arm of a select that joins the task leaves the rest to the await. */
static void joined_by_an_arm(void) {
    CC_FUTURE(fails, f);
    CHECK_EQ(CC_START(&f, fails, .code = EIO), 0);
    CC_MATCH(CC_JOIN(&f.future.task, NULL, &f.future.ended)) {
    case 0:
        CHECK_EQ(cc_await(&f, CC_PASSED), EIO);
        break;
    default:
        CHECK(!"no other arm");
    }
}

TEST_WORKERS(joined_by_an_arm) {
    in_both_contexts(joined_by_an_arm);
}

/* ---- misuse is reported ---- */

static void expect_panic(CCDeferFn misuse, const char *text) {
    CCPanic why;
    CHECK_EQ(cc_try(misuse, NULL, &why), ENOTRECOVERABLE);
    if (strstr(why.message, text) == NULL) test_fail(__FILE__, __LINE__, "'%s' lacks '%s'", why.message, text);
}

static void await_twice(void *unused) {
    (void)unused;
    CC_FUTURE(seven, f);
    (void)CC_START(&f, seven);
    (void)CC_AWAIT(&f);
    (void)CC_AWAIT(&f);
}

static void await_twice_until(void *unused) {
    (void)unused;
    CC_FUTURE(seven, f);
    (void)CC_START(&f, seven);
    (void)CC_AWAIT(&f);
    (void)cc_await(&f, CC_FOREVER);
}

static void await_unstarted(void *unused) {
    (void)unused;
    CC_FUTURE(seven, f);
    (void)CC_AWAIT(&f);
}

static void start_twice(void *unused) {
    (void)unused;
    CC_FUTURE(seven, f);
    (void)CC_START(&f, seven);
    (void)CC_START(&f, seven);
}

static void take_failed(void *unused) {
    (void)unused;
    CC_FUTURE(fails, f);
    (void)CC_START(&f, fails, .code = EIO);
    (void)CC_AWAIT(&f);
}

static void call_failed(void *unused) {
    (void)unused;
    (void)CC_CALL(fails, .code = EIO);
}

static void take_panicked(void *unused) {
    (void)unused;
    CC_FUTURE(panics, f);
    (void)CC_START(&f, panics);
    (void)CC_AWAIT(&f);
}

struct awaits_itself_future;
static struct awaits_itself_future *_Atomic own;

CC_ASYNC(int, awaits_itself) {
    while (own == NULL) cc_yield();
    return CC_AWAIT(own);
}

static void await_itself(void *unused) {
    (void)unused;
    CC_FUTURE(awaits_itself, f);
    own = NULL;
    (void)CC_START(&f, awaits_itself);
    own = &f;
    (void)CC_AWAIT(&f);
}

static void misuse(void) {
    expect_panic(await_twice, "this future of seven was awaited before");
    expect_panic(await_twice_until, "this future of seven was awaited before");
    expect_panic(await_unstarted, "this future of seven was not started");
    expect_panic(start_twice, "seven already runs in this future");
    expect_panic(take_failed, "fails: Input/output error (5)");
    expect_panic(call_failed, "fails: Input/output error (5)");
    expect_panic(take_panicked, "panics has panicked: on purpose");
    expect_panic(await_itself, "awaits_itself has panicked: CC_AWAIT: awaits_itself awaits itself");
}

TEST_WORKERS(misuse) {
    in_both_contexts(misuse);
}
