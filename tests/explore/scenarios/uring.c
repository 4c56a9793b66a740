/* uring.c - src/io/uring.c: completions against waits, cancellation, and workers that sleep. */
#include "io/uring.h"
#include "explore.h"
#include "stubs/io.h"

#include <ccc/ccc.h>

static CCTask caller[2], victim; /* victim: a second handle of the first caller */
static long result[2];

static void *calls(void *arg) {
    result[(intptr_t)arg] = cc__uring_call(&(struct uring_call){.kind = URING_SYNC, .fd = 5});
    return NULL;
}

static void start(int i) {
    EX_EQ(cc_spawn(&caller[i], calls, (void *)(intptr_t)i, NULL), 0);
}
static void join(int i) {
    EX_EQ(cc_task_join(&caller[i], NULL), 0);
    EX_EQ(result[i], 7);
}

static void caller_waits(void) {
    start(0);
    EX_EQ(cc_task_dup(&caller[0], &victim), 0);
    ex_settle();
}
static void answers_one(void) {
    stub_answer(1);
}
static void joins(void) {
    join(0);
}
static void starts_and_joins(void) {
    start(0);
    join(0);
}
static void starts_and_joins_other(void) {
    start(1);
    join(1);
}
static void nobody_waits(void) {
    EX_EQ(cc__get(&cc__uring_waiting), 0);
}
SCENARIO(uring_parked, "URING-1: a completion comes while the fiber is parked, and all workers sleep", .workers = 2,
         .setup = caller_waits, .threads = {answers_one, joins}, .check = nobody_waits, .no_timer = true);
SCENARIO(uring_any_time, "URING-1: a completion comes before, during and after the call", .workers = 1,
         .threads = {answers_one, starts_and_joins}, .check = nobody_waits, .no_timer = true);

/* One request is in flight: so the other worker polls, and finds the completion before the second one waits. */
static void answers_two(void) {
    stub_answer(2);
}
static void joins_and_starts_other(void) {
    starts_and_joins_other();
    join(0);
}
SCENARIO(uring_elsewhere, "URING-1: another worker may take a completion before its fiber waits", .workers = 2,
         .setup = caller_waits, .threads = {answers_two, joins_and_starts_other}, .check = nobody_waits,
         .no_timer = true);

static void cancels(void) {
    EX_EQ(cc_task_cancel(&victim), 0);
    EX_EQ(cc_task_detach(&victim), 0);
}
static void starts_for_canceller(void) {
    start(0);
    EX_EQ(cc_task_dup(&caller[0], &victim), 0);
}
SCENARIO(uring_cancel, "URING-2: a completion and a cancellation", .workers = 1, .setup = caller_waits,
         .threads = {answers_one, cancels, joins}, .check = nobody_waits, .no_timer = true);
SCENARIO(uring_cancel_any_time, "URING-2: a cancellation comes before, during and after the call", .workers = 1,
         .setup = starts_for_canceller, .threads = {answers_one, cancels, joins}, .check = nobody_waits,
         .no_timer = true);

/* A fiber waits for a descriptor: so a polling worker fetches events, also those of the ring. */
enum { FD = 6 };
static void *reads(void *arg) {
    char byte;
    size_t n;
    EX_EQ(cc_fd_read(FD, &byte, 1, &n), 0);
    return arg;
}
static void reader_waits(void) {
    stub_open(FD);
    EX_EQ(cc_fd_adopt(FD), 0);
    EX_EQ(cc_spawn(&caller[1], reads, NULL, NULL), 0);
    ex_settle();
}
static void starts_beside_reader(void) {
    start(0);
    join(0);
    stub_put(FD, 1);
    EX_EQ(cc_task_join(&caller[1], NULL), 0);
}
SCENARIO(uring_beside_descriptor, "URING-4: a ring's event may be fetched before its fiber waits", .workers = 2,
         .setup = reader_waits, .threads = {answers_one, starts_beside_reader}, .check = nobody_waits,
         .no_timer = true);
