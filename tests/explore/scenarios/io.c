/* io.c - src/io: edges against waits, deadlines, cancellation and close; the worker in the poller against wakes. */
#include "stubs/io.h"
#include "explore.h"
#include "io/call.h"
#include "sync/atomic.h"

#include <ccc/ccc.h>
#include <errno.h>

enum { FD = 5, OTHER_FD = 6 };

static CCTask reader[2], other, victim; /* victim: a second handle of the first reader */
static int rc[2];
static size_t got[2];
static int ran;

static void spawn(CCTask *task, CCTaskFn fn, void *arg) {
    EX_EQ(cc_spawn(task, fn, arg, NULL), 0);
}
static void join(CCTask *task) {
    EX_EQ(cc_task_join(task, NULL), 0);
}

static void *reads(void *arg) {
    int i = (int)(intptr_t)arg;
    char byte;
    rc[i] = cc_fd_read(FD, &byte, 1, &got[i]);
    return NULL;
}
static void *reads_not_long(void *arg) {
    char byte;
    rc[0] = cc_fd_read_until(FD, &byte, 1, &got[0], cc_after_ns(3000));
    return arg;
}

static void opens(void) {
    stub_open(FD);
    EX_EQ(cc_fd_adopt(FD), 0);
}
static void foreign(void) {
    stub_open(FD);
}
/* The reader parks first, and all workers sleep; or it is about to begin. */
static void reader_waits(void) {
    opens();
    spawn(&reader[0], reads, (void *)0);
    EX_EQ(cc_task_dup(&reader[0], &victim), 0);
    ex_settle();
}
static void puts_one(void) {
    stub_put(FD, 1);
}
static void joins_reader(void) {
    join(&reader[0]);
    EX_EQ(rc[0], 0);
    EX_EQ(got[0], 1);
}
static void starts_reader(void) {
    spawn(&reader[0], reads, (void *)0);
    joins_reader();
}
static void all_taken(void) {
    EX_EQ(stub_bytes(FD), 0);
    EX_EQ(cc_io_waiters(), 0);
}
SCENARIO(io_edge_parked, "FD-2: an edge comes while the fiber is parked, and all workers sleep", .workers = 2,
         .setup = reader_waits, .threads = {puts_one, joins_reader}, .check = all_taken, .no_timer = true);
SCENARIO(io_edge_any_time, "FD-2: an edge comes before, during and after the attempt", .workers = 1, .setup = opens,
         .threads = {puts_one, starts_reader}, .check = all_taken, .no_timer = true);
/* A fiber waits for another descriptor: so the other worker polls, and finds the edge before the reader waits. */
static void *reads_other(void *arg) {
    char byte;
    rc[1] = cc_fd_read(OTHER_FD, &byte, 1, &got[1]);
    return arg;
}
static void opens_two(void) {
    opens();
    stub_open(OTHER_FD);
    EX_EQ(cc_fd_adopt(OTHER_FD), 0);
    spawn(&reader[1], reads_other, NULL);
    ex_settle();
}
static void starts_reader_beside(void) {
    starts_reader();
    stub_put(OTHER_FD, 1);
    join(&reader[1]);
}
SCENARIO(io_edge_elsewhere, "FD-2: another worker may poll between the attempt and the wait", .workers = 2,
         .setup = opens_two, .threads = {puts_one, starts_reader_beside}, .check = all_taken, .no_timer = true);
SCENARIO(io_edge_foreign, "FD-2: the same for a descriptor that is armed for each wait", .workers = 1, .setup = foreign,
         .threads = {puts_one, starts_reader}, .check = all_taken, .no_timer = true);

/* ---- FD-1 ---- */

static void cancels_reader(void) {
    EX_EQ(cc_task_cancel(&victim), 0);
    EX_EQ(cc_task_detach(&victim), 0);
}
static void joins_either(void) {
    join(&reader[0]);
    EX_CHECK(rc[0] == 0 || rc[0] == ECANCELED || rc[0] == ETIMEDOUT);
}
static void eaten_or_there(void) {
    EX_EQ(stub_bytes(FD), rc[0] == 0 ? 0 : 1);
    EX_EQ(got[0], rc[0] == 0 ? 1 : 0);
    EX_EQ(cc_io_waiters(), 0);
}
SCENARIO(io_edge_cancel, "FD-1: an edge and a cancellation", .workers = 1, .setup = reader_waits,
         .threads = {puts_one, cancels_reader, joins_either}, .check = eaten_or_there, .no_timer = true);

static void reader_waits_not_long(void) {
    opens();
}
static void starts_short_reader(void) {
    spawn(&reader[0], reads_not_long, NULL);
    joins_either();
}
SCENARIO(io_edge_deadline, "FD-1: an edge and a deadline", .workers = 1, .setup = reader_waits_not_long,
         .threads = {puts_one, starts_short_reader}, .check = eaten_or_there);

/* The edge was for a waiter that was cancelled: the next one gets it. */
static void starts_next(void) {
    join(&reader[0]);
    if (rc[0] == 0) stub_put(FD, 1);
    spawn(&reader[1], reads, (void *)1);
    join(&reader[1]);
    EX_EQ(rc[1], 0);
}
SCENARIO(io_edge_kept, "FD-1: what a cancelled wait did not use is there for the next", .workers = 1,
         .setup = reader_waits, .threads = {puts_one, cancels_reader, starts_next}, .check = all_taken,
         .no_timer = true);

/* ---- FD-3 ---- */

static void two_readers(void) {
    reader_waits();
    spawn(&reader[1], reads, (void *)1);
    ex_settle();
}
static void puts_two(void) {
    stub_put(FD, 2);
}
static void joins_both(void) {
    join(&reader[0]);
    join(&reader[1]);
    EX_EQ(rc[0] + rc[1], 0);
}
SCENARIO(io_two_readers, "FD-3: one edge, two bytes, two readers", .workers = 2, .setup = two_readers,
         .threads = {puts_two, joins_both}, .check = all_taken, .no_timer = true);

/* The edge wakes the first, which takes one byte and leaves, while the second is between its attempt and its wait. */
static void starts_second(void) {
    spawn(&reader[1], reads, (void *)1);
    joins_both();
}
SCENARIO(io_two_readers_one_late, "FD-2: an edge wakes one, and what it leaves is for a reader that is about to wait",
         .workers = 2, .setup = reader_waits, .threads = {puts_two, starts_second}, .check = all_taken,
         .no_timer = true);

static void joins_other_reader(void) {
    join(&reader[0]);
    EX_CHECK(rc[0] == 0 || rc[0] == ECANCELED);
    if (rc[0] == 0) stub_put(FD, 1);
    join(&reader[1]);
    EX_EQ(rc[1], 0);
}
SCENARIO(io_two_readers_cancel, "FD-3: the first of two is cancelled when the edge comes", .workers = 1,
         .setup = two_readers, .threads = {puts_one, cancels_reader, joins_other_reader}, .check = all_taken,
         .no_timer = true);

/* Reads that get less than they ask for: each leaves a hint for the next, which may be older than an edge. */
enum { BYTES = 3 };
static _Atomic uint32_t taken;
static void *reads_short(void *arg) {
    int i = (int)(intptr_t)arg;
    for (;;) {
        char bytes[2];
        size_t n;
        rc[i] = cc_fd_read(FD, bytes, sizeof bytes, &n);
        if (rc[i] != 0) return NULL;
        if (cc__add(&taken, (uint32_t)n) + n == BYTES) return (void *)(intptr_t)cc_fd_close(FD);
    }
}
static void two_short_readers(void) {
    opens();
    for (intptr_t i = 0; i < 2; i++) spawn(&reader[i], reads_short, (void *)i);
    ex_settle();
}
static void puts_singly(void) {
    for (int i = 0; i < BYTES; i++) stub_put(FD, 1);
}
static void joins_short(void) {
    join(&reader[0]);
    join(&reader[1]);
    EX_EQ(cc__get(&taken), BYTES);
}
SCENARIO(io_short_reads, "FD-6: a hint of one reader against an edge for the other", .workers = 2,
         .setup = two_short_readers, .threads = {puts_singly, joins_short}, .no_timer = true);

/* An edge comes between a short read and its hint, which is older. A first read has registered the descriptor; another
 * one's wait has the worker poll. */
static void byte_beside(void) {
    opens_two();
    spawn(&reader[0], reads, (void *)0);
    ex_settle();
    stub_put(FD, 1);
    ex_settle();
    joins_reader();
    stub_put(FD, 1);
    ex_settle();
}
static void reads_at_most_two(void) {
    char bytes[2];
    size_t n = 0;
    EX_EQ(cc_fd_read_try(FD, bytes, sizeof bytes, &n), 0);
}
static void puts_beside(void) {
    stub_put(FD, 1);
    stub_put(OTHER_FD, 1); /* whoever sees this one sees the first, too */
    join(&reader[1]);
}
static void hint_is_void(void) {
    struct io_use use;
    if (stub_bytes(FD) == 0) return;
    EX_EQ(cc__fd_find(FD, &use), 0);
    EX_CHECK(!cc__fd_drained(use.fd, IO_READ, cc__fd_edges(use.fd, IO_READ)));
}
SCENARIO(io_hint_older, "FD-6: a short read against an edge", .workers = 1, .setup = byte_beside,
         .threads = {reads_at_most_two, puts_beside}, .check = hint_is_void, .no_timer = true);

/* The descriptor is released after a short read: the next one with the number has no hint. */
static void byte_is_there(void) {
    opens();
    stub_put(FD, 1);
}
static void reads_less(void) {
    char bytes[2];
    size_t n = 0;
    int error = cc_fd_read_try(FD, bytes, sizeof bytes, &n);
    EX_CHECK(error == EBADF || (error == 0 && n == 1));
}
static void takes_back(void) {
    rc[0] = cc_fd_release(FD);
    EX_CHECK(rc[0] == 0 || rc[0] == EBUSY);
}
static void no_hint(void) {
    struct io_use use;
    if (rc[0] != 0) return;
    EX_EQ(cc__fd_find(FD, &use), 0);
    EX_CHECK(!cc__fd_drained(use.fd, IO_READ, cc__fd_edges(use.fd, IO_READ)));
}
SCENARIO(io_hint_released, "FD-6: a short read against a release", .workers = 1, .setup = byte_is_there,
         .threads = {reads_less, takes_back}, .check = no_hint, .no_timer = true);

/* ---- FD-7 ---- */

static void *observes(void *arg) {
    int i = (int)(intptr_t)arg;
    rc[i] = cc_fd_wait(FD, CC_READABLE, NULL);
    return NULL;
}
static void starts_observer(void) {
    spawn(&reader[0], observes, (void *)0);
    join(&reader[0]);
    EX_EQ(rc[0], 0);
}
static void nothing_taken(void) {
    EX_EQ(stub_bytes(FD), 1);
    EX_EQ(cc_io_waiters(), 0);
}
SCENARIO(io_observe_any_time, "FD-7: an edge comes before, during and after an observer's poll", .workers = 1,
         .setup = opens, .threads = {puts_one, starts_observer}, .check = nothing_taken, .no_timer = true);
SCENARIO(io_observe_foreign, "FD-8: the same for a descriptor that is armed for each wait", .workers = 1,
         .setup = foreign, .threads = {puts_one, starts_observer}, .check = nothing_taken, .no_timer = true);
static void starts_observer_beside(void) {
    starts_observer();
    stub_put(OTHER_FD, 1);
    join(&reader[1]);
}
SCENARIO(io_observe_elsewhere, "FD-7: another worker may poll between the poll and the wait", .workers = 2,
         .setup = opens_two, .threads = {puts_one, starts_observer_beside}, .check = nothing_taken, .no_timer = true);

/* The reader may be between its attempt and its wait when the edge wakes the observer alone. */
static void *reads_then_observes(void *arg) {
    reads((void *)0); /* consumes the initial readiness of an adopted descriptor */
    return observes(arg);
}
static void observer_waits(void) {
    opens();
    spawn(&reader[1], reads_then_observes, (void *)1);
    ex_settle();
    stub_put(FD, 1);
    ex_settle();
}
static void foreign_observer_waits(void) {
    foreign();
    spawn(&reader[1], observes, (void *)1);
    ex_settle();
}
static void reads_beside(void) {
    spawn(&reader[0], reads, (void *)0);
    joins_reader();
    stub_put(FD, 1); /* the reader was faster, perhaps */
    join(&reader[1]);
    EX_EQ(rc[1], 0);
}
SCENARIO(io_observe_and_read, "FD-7: an observer does not consume the edge that a reader needs", .workers = 2,
         .setup = observer_waits, .threads = {puts_one, reads_beside}, .check = nothing_taken, .no_timer = true);
SCENARIO(io_observe_and_read_foreign, "FD-8: the same for a descriptor that is armed for each wait", .workers = 2,
         .setup = foreign_observer_waits, .threads = {puts_one, reads_beside}, .check = nothing_taken,
         .no_timer = true);

/* ---- READY-3 ---- */

static CCChan *values;
static void *selects(void *arg) {
    int value = 0;
    size_t chosen = 9;
    CCCase cases[] = {{.kind = CC_CASE_READABLE, .fd = FD},
                      {.kind = CC_CASE_RECV, .ch = values, .value = &value, .size = sizeof value}};
    rc[0] = cc_select(cases, 2, CC_FOREVER, &chosen);
    got[0] = chosen;
    EX_CHECK(rc[0] != 0 || cases[chosen].error == 0 || cases[chosen].error == EBADF);
    return arg;
}
static void opens_and_channel(void) {
    opens();
    EX_CHECK((values = cc_chan_create(sizeof(int), 1)) != NULL);
}
static void foreign_and_channel(void) {
    foreign();
    EX_CHECK((values = cc_chan_create(sizeof(int), 1)) != NULL);
}
static void two_and_channel(void) {
    opens_two();
    EX_CHECK((values = cc_chan_create(sizeof(int), 1)) != NULL);
}
static void starts_select(void) {
    spawn(&reader[0], selects, NULL);
    join(&reader[0]);
    EX_EQ(rc[0], 0);
}
static void starts_select_beside(void) {
    starts_select();
    stub_put(OTHER_FD, 1);
    join(&reader[1]);
}
static void sends_one(void) {
    int value = 7;
    EX_EQ(cc_chan_send(values, &value, sizeof value), 0);
}
static void selected_fd(void) {
    EX_EQ(got[0], 0);
    nothing_taken();
}
SCENARIO(io_select_any_time, "READY-3: an edge comes before, during and after a select's poll", .workers = 1,
         .setup = opens_and_channel, .threads = {puts_one, starts_select}, .check = selected_fd, .no_timer = true);
SCENARIO(io_select_foreign, "READY-3: the same for a descriptor that is armed for each wait", .workers = 1,
         .setup = foreign_and_channel, .threads = {puts_one, starts_select}, .check = selected_fd, .no_timer = true);
/* The reader of the first byte removes the descriptor from the poller's set. */
static void takes_one_and_puts_one(void) {
    char byte;
    size_t n = 0;
    stub_put(FD, 1);
    EX_EQ(cc_fd_read_try(FD, &byte, 1, &n), 0);
    EX_EQ(n, 1);
    stub_put(FD, 1);
}
SCENARIO(io_select_foreign_found, "FD-13: it is found ready, and removed, while a select has armed it", .workers = 1,
         .setup = foreign_and_channel, .threads = {takes_one_and_puts_one, starts_select}, .check = selected_fd,
         .no_timer = true);
SCENARIO(io_select_elsewhere, "READY-3: another worker may poll between the poll and the link", .workers = 2,
         .setup = two_and_channel, .threads = {puts_one, starts_select_beside}, .check = selected_fd, .no_timer = true);
SCENARIO(io_select_both, "READY-3: an edge and a value: one of them, and the edge is there for the next", .workers = 1,
         .setup = opens_and_channel, .threads = {puts_one, sends_one, starts_select}, .check = nothing_taken,
         .no_timer = true);

/* ---- FD-4 ---- */

static void closes(void) {
    EX_EQ(cc_fd_close(FD), 0);
}
static void joins_closed(void) {
    join(&reader[0]);
    EX_CHECK(rc[0] == 0 || rc[0] == EBADF);
}
static void nobody_waits(void) {
    EX_EQ(cc_io_waiters(), 0);
}
SCENARIO(io_close, "FD-4: close against an edge and a reader", .workers = 2, .setup = reader_waits,
         .threads = {closes, puts_one, joins_closed}, .check = nobody_waits, .no_timer = true);

static void starts_reader_of_closed(void) {
    spawn(&reader[0], reads, (void *)0);
    joins_closed();
}
static void starts_observer_of_closed(void) {
    spawn(&reader[0], observes, (void *)0);
    joins_closed();
}
static void starts_select_of_closed(void) {
    spawn(&reader[0], selects, NULL);
    join(&reader[0]);
    EX_EQ(rc[0], 0);
}
SCENARIO(io_close_selected, "FD-4: close before, during and after a select's poll", .workers = 1,
         .setup = opens_and_channel, .threads = {closes, starts_select_of_closed}, .check = nobody_waits,
         .no_timer = true);
SCENARIO(io_close_observed, "FD-4: close before, during and after an observer's poll", .workers = 1, .setup = opens,
         .threads = {closes, puts_one, starts_observer_of_closed}, .check = nobody_waits, .no_timer = true);
SCENARIO(io_close_any_time, "FD-4: close before, during and after a read's attempts", .workers = 1, .setup = opens,
         .threads = {closes, starts_reader_of_closed}, .check = nobody_waits, .no_timer = true);

/* Another descriptor has the number at once, and its reader must not be served by the old one's edge alone. */
static void reopens(void) {
    EX_EQ(cc_fd_close(FD), 0);
    join(&reader[0]);
    stub_open(FD);
    EX_EQ(cc_fd_adopt(FD), 0);
    spawn(&reader[1], reads, (void *)1);
    stub_put(FD, 1);
    join(&reader[1]);
    EX_EQ(rc[1], 0);
}
SCENARIO(io_reuse, "FD-4: the number is reused at once", .workers = 1, .setup = reader_waits, .threads = {reopens},
         .check = all_taken, .no_timer = true);

/* ---- IDLE-7 ---- */

static void *runs(void *arg) {
    ran++;
    return arg;
}
static void spawns_other(void) {
    spawn(&other, runs, NULL);
    join(&other);
    EX_EQ(ran, 1);
}
SCENARIO(io_listener_wake, "IDLE-7: a task is spawned while a worker sleeps in the driver", .workers = 1,
         .setup = reader_waits, .threads = {spawns_other}, .no_timer = true);
SCENARIO(io_listener_both, "IDLE-7: a task and an edge, for the polling worker", .workers = 1, .setup = reader_waits,
         .threads = {spawns_other, puts_one, joins_reader}, .check = all_taken, .no_timer = true);
SCENARIO(io_listener_two, "IDLE-7: a task and an edge, two workers", .workers = 2, .setup = reader_waits,
         .threads = {spawns_other, puts_one, joins_reader}, .check = all_taken, .no_timer = true);

/* An OS thread waits, and no worker polls yet. */
static void thread_reads(void) {
    char byte;
    EX_EQ(cc_fd_read(FD, &byte, 1, &got[0]), 0);
}
static void workers_sleep(void) {
    opens();
    ex_settle();
}
SCENARIO(io_thread, "IO-1: an OS thread waits while all workers sleep", .workers = 1, .setup = workers_sleep,
         .threads = {thread_reads, puts_one}, .check = all_taken, .no_timer = true);

/* The same while the only worker, which has slept in the poller, finds that there are no more waits. */
static void opens_other_too(void) {
    reader_waits();
    stub_open(OTHER_FD);
    EX_EQ(cc_fd_adopt(OTHER_FD), 0);
}
static void thread_reads_other(void) {
    char byte;
    EX_EQ(cc_fd_read(OTHER_FD, &byte, 1, &got[1]), 0);
}
static void closes_then_puts(void) {
    EX_EQ(cc_fd_close(FD), 0);
    join(&reader[0]);
    stub_put(OTHER_FD, 1);
}
SCENARIO(io_thread_poller_leaves, "IDLE-7: an OS thread waits while the poller gives up its role", .workers = 1,
         .setup = opens_other_too, .threads = {thread_reads_other, closes_then_puts}, .check = nobody_waits,
         .no_timer = true);

/* ---- FD-10 ---- */

static void opens_blocking(void) {
    stub_open_blocking(FD);
    stub_open(OTHER_FD);
}
static void sends_file(void) {
    size_t n;
    EX_EQ(cc__call_sendfile(FD, OTHER_FD, NULL, 1, &n, HOW_WAIT, CC_FOREVER), 0);
}
static void adopts(void) {
    EX_EQ(cc_fd_adopt(FD), 0);
}
static void adopted_and_released(void) {
    EX_CHECK(!stub_blocks(FD));
    EX_EQ(cc_fd_release(FD), 0);
    EX_CHECK(stub_blocks(FD));
}
static void blocks_again(void) {
    EX_CHECK(stub_blocks(FD));
}
SCENARIO(io_borrow_adopt, "FD-10: adopted while another call has borrowed the mode", .workers = 1,
         .setup = opens_blocking, .threads = {sends_file, adopts}, .check = adopted_and_released, .no_timer = true);
SCENARIO(io_borrow_two, "FD-10: two calls borrow the mode at a time", .workers = 1, .setup = opens_blocking,
         .threads = {sends_file, sends_file}, .check = blocks_again, .no_timer = true);
