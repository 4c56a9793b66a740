/* record.c - the recorder: its records, the histories made of them, and that these are always consistent. */
#include "../capture.h"
#include "harness.h"

#include "record/record.h"
#include "sched/sched.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- what can have been ---- */

/* MERGE-1, checked on the finished history: every lane runs one fiber at a time, and the states of every fiber follow
 * each other. */
static void check_history(struct history *h) {
    uint32_t *on = calloc(h->lanes.count + 1, sizeof *on);
    uint8_t *state = calloc(h->strands.count, 1);
    uint32_t *sequence = calloc(h->strands.count, sizeof *sequence);
    enum { UNBORN, READY, RUNS, WAITS, GONE };
    for (size_t i = 0; i < h->strands.count; i++) {
        const struct strand *s = cc__strand(h, i);
        state[i] = !s->existed ? UNBORN : s->initial == STRAND_WAITING ? WAITS : READY;
    }
    uint64_t time = 0;
    for (size_t i = 0; i < h->steps.count; i++) {
        const struct step *s = cc__step(h, i);
        CHECK(s->time > time && s->lane < h->lanes.count);
        time = s->time;
        uint32_t f = s->fiber;
        switch ((enum step_kind)s->kind) {
        case STEP_CREATE:
            CHECK_EQ(state[f], UNBORN);
            state[f] = READY;
            break;
        case STEP_START:
            CHECK_EQ(state[f], READY);
            CHECK_EQ(on[s->lane], 0);
            CHECK_EQ(s->sequence, ++sequence[f]);
            on[s->lane] = f;
            state[f] = RUNS;
            break;
        case STEP_BLOCK:
        case STEP_STOP:
        case STEP_END:
            CHECK_EQ(on[s->lane], f);
            CHECK_EQ(state[f], RUNS);
            on[s->lane] = 0;
            state[f] = s->kind == STEP_BLOCK ? WAITS : s->kind == STEP_STOP ? READY : GONE;
            break;
        case STEP_UNBLOCK:
            CHECK_EQ(state[f], WAITS);
            CHECK_EQ(s->sequence, ++sequence[f]);
            state[f] = READY;
            break;
        default:
            break;
        }
    }
    CHECK(time <= h->end && h->end - h->begin < UINT64_C(3600) * 1000000000);
    free(on);
    free(state);
    free(sequence);
}

/* ---- a program with some of everything ---- */

static void *echo(void *arg) {
    CCChan **ends = arg;
    int v;
    while (cc_chan_recv(ends[0], &v, sizeof v) == 0) CHECK_EQ(cc_chan_send(ends[1], &v, sizeof v), 0);
    return NULL;
}

static void *twice(void *arg) {
    CC_REGION("double");
    cc_yield();
    return arg;
}

static void *child(void *arg) {
    CCTask task;
    (void)arg;
    CHECK_EQ(cc_spawn(&task, twice, NULL, NULL), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    return NULL;
}

static void *some_of_everything(void *arg) {
    long n = arg != NULL ? *(long *)arg : 20;
    CCChan *ends[2] = {cc_chan_create(sizeof(int), 0), cc_chan_create(sizeof(int), 1)};
    CCTask task;
    CCSpawnOptions options = {.name = "the echo, with a long name"};
    CHECK_EQ(cc_spawn(&task, echo, ends, &options), 0);
    CC_REGION("all");
    for (int i = 0; i < n; i++) {
        int v = i;
        CHECK_EQ(cc_chan_send(ends[0], &v, sizeof v), 0);
        CHECK_EQ(cc_chan_recv(ends[1], &v, sizeof v), 0);
        if (i % 8 == 0) cc_note("turn %d of many", i);
    }
    CHECK_EQ(cc_chan_close(ends[0]), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CCNursery *nursery = cc_nursery_create_ex(&(CCNurseryConfig){.name = "kids"});
    for (int i = 0; i < 5; i++) CHECK_EQ(cc_nursery_spawn(nursery, child, NULL), 0);
    CHECK_EQ(cc_nursery_wait(nursery), 0);
    CHECK_EQ(cc_nursery_free(nursery), 0);
    CHECK_EQ(cc_sleep_ms(1), 0);
    cc_chan_free(ends[0]);
    cc_chan_free(ends[1]);
    return NULL;
}

/* What a format writes; the caller frees it. */
static char *written(CCRecordFormat format, size_t *size) {
    FILE *file = tmpfile();
    CHECK_EQ(cc_record_write(fileno(file), format), 0);
    long n = (long)lseek(fileno(file), 0, SEEK_END);
    char *text = malloc((size_t)n + 1);
    CHECK_EQ(pread(fileno(file), text, (size_t)n, 0), n);
    text[n] = '\0';
    fclose(file);
    if (size != NULL) *size = (size_t)n;
    return text;
}

static void take_and_check(struct history *h) {
    CHECK_EQ(cc__history_take(h, false), 0);
    check_history(h);
}

/* ---- cases ---- */

TEST(arguments) {
    CHECK_EQ(cc_record_write(1, CC_RECORD_GO), ENODATA);
    CHECK_EQ(cc_record_snapshot("/nonexistent/file"), ENODATA);
    CHECK_EQ(cc_record_stop(), EALREADY);
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.level = (CCRecordLevel)3}), EINVAL);
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.events = 63}), EINVAL);
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.events = 96}), EINVAL);
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.events = CC_RECORD_EVENTS_MAX * 2}), EINVAL);
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.reserved = {1}}), EINVAL);
    CHECK_EQ(cc_record_start(NULL), 0);
    CHECK_EQ(cc_record_start(NULL), EALREADY);
    CHECK_EQ(cc_record_write(1, (CCRecordFormat)3), EINVAL);
    CHECK_EQ(cc_record_write(-1, CC_RECORD_TEXT), 0); /* there is nothing to write */
    cc_note("%s", "no fiber");
    CHECK_EQ(cc_record_write(-1, CC_RECORD_TEXT), EBADF);
    CHECK_EQ(cc_record_snapshot(NULL), EINVAL);
    CHECK_EQ(cc_record_snapshot("/nonexistent/file"), ENOENT);
    cc_note(NULL);
    cc_region_begin(NULL);
    cc_region_end("never begun");
    CHECK_EQ(cc_record_stop(), 0);
    CHECK_EQ(cc_record_stop(), EALREADY);
    cc_note("not recorded");
    char *text = written(CC_RECORD_TEXT, NULL);
    CHECK(strstr(text, "notes: no fiber") != NULL && strstr(text, "not recorded") == NULL);
    free(text);
}

TEST_WORKERS(text_names_what_happened) {
    static const char *const said[] = {
        "spawns fiber",
        "some_of_everything",
        "echo 'the echo, with a long name'",
        "parks, waits for: channel #",
        "wakes fiber",
        "by its object",
        "by its timer",
        "yields",
        "ends",
        "notes: turn 8 of many",
        "enters region all",
        "leaves region double",
        "opens nursery 1 kids",
        "frees nursery 1 kids",
        "parks, waits for: sleep",
    };
    CHECK_EQ(cc_record_start(NULL), 0);
    char *text = NULL;
    do { /* a lone fiber yields to nobody, and one that is preempted for long enough has slept before it parks */
        free(text);
        CHECK_EQ(cc_run(some_of_everything, NULL, NULL), 0);
        text = written(CC_RECORD_TEXT, NULL);
    } while (strstr(text, "yields") == NULL || strstr(text, "by its timer") == NULL);
    for (size_t i = 0; i < array_len(said); i++)
        if (strstr(text, said[i]) == NULL) test_fail(__FILE__, __LINE__, "no '%s' in:\n%s", said[i], text);
    free(text);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    text = written(CC_RECORD_TEXT, NULL); /* what was recorded outlives the runtime */
    CHECK(strstr(text, "leaves region all") != NULL);
    free(text);
}

static void *write_all(void *fd) {
    for (int format = CC_RECORD_GO; format <= CC_RECORD_TEXT; format++)
        CHECK_EQ(cc_record_write((int)(intptr_t)fd, (CCRecordFormat)format), 0);
    return NULL;
}

/* Any fiber may write a file. */
TEST(by_a_fiber_with_a_small_stack) {
#if !defined(NDEBUG) || defined(CC_ASAN) || defined(CC_TSAN)
    SKIP("frames are larger in this build");
#endif
    CCTask task;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.level = CC_RECORD_STACKS}), 0);
    CHECK_EQ(cc_run(some_of_everything, NULL, NULL), 0);
    CCSpawnOptions options = {.stack_size = CC_STACK_SIZE_MIN};
    CHECK_EQ(cc_spawn(&task, write_all, (void *)(intptr_t)fd, &options), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    close(fd);
}

TEST_WORKERS(history_can_have_been) {
    struct history h;
    long n = test_scale(300);
    CHECK_EQ(cc_record_start(NULL), 0);
    CHECK_EQ(cc_run(some_of_everything, &n, NULL), 0);
    take_and_check(&h);
    CHECK_EQ(h.lost, 0);
    size_t ended = 0;
    for (size_t i = 0; i < h.steps.count; i++) ended += cc__step(&h, i)->kind == STEP_END;
    CHECK(ended >= 11); /* the last fiber may be about to end */
    cc__history_free(&h);
}

/* Small rings: what is left is still a consistent history. */
TEST_WORKERS(small_rings) {
    struct history h;
    long n = test_scale(2000);
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.events = 256}), 0);
    CHECK_EQ(cc_run(some_of_everything, &n, NULL), 0);
    take_and_check(&h);
    for (size_t i = 0; i < h.lanes.count; i++) CHECK(cc__lane(&h, i)->records < 256);
    cc__history_free(&h);
}

static void *asks(void *arg) {
    CCNursery *nursery = cc_nursery_create(NULL);
    CHECK_EQ(cc_nursery_spawn(nursery, twice, NULL), 0);
    CHECK_EQ(cc_nursery_wait(nursery), 0);
    CHECK_EQ(cc_nursery_free(nursery), 0);
    return arg;
}

/* A server: each request is a child of one nursery, and has one of its own. */
static void *serves(void *arg) {
    CCNursery *nursery = cc_nursery_create(NULL);
    for (long i = *(long *)arg; i > 0; i--) {
        CHECK_EQ(cc_nursery_spawn(nursery, asks, NULL), 0);
        if (i % 16 == 0) cc_yield();
    }
    CHECK_EQ(cc_nursery_wait(nursery), 0);
    CHECK_EQ(cc_nursery_free(nursery), 0);
    return NULL;
}

static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The minimum CPU time of some histories of a server with that many requests. */
static uint64_t time_of_history(long requests) {
    uint64_t least = UINT64_MAX;
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.events = 1 << 20}), 0);
    CHECK_EQ(cc_run(serves, &requests, NULL), 0);
    for (int i = 0; i < 3; i++) {
        struct history h;
        uint64_t before = cpu_ns();
        CHECK_EQ(cc__history_take(&h, false), 0);
        uint64_t took = cpu_ns() - before;
        if (took < least) least = took;
        cc__history_free(&h);
    }
    CHECK_EQ(cc_record_stop(), 0);
    return least;
}

/* Ten times as many take ten times as long, and not a hundred times. */
TEST(many_nurseries) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    uint64_t few = time_of_history(6000), many = time_of_history(60000);
    if (many > 16 * few)
        test_fail(__FILE__, __LINE__, "%.3g s, and %.3g s for a tenth", (double)many * 1e-9, (double)few * 1e-9);
}

static bool holds(const char *bytes, size_t size, const char *text) {
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

/* Every format reports overwritten events; nothing is reported for complete rings. */
TEST(what_is_lost_is_marked) {
    for (long n = 10; n <= 1000; n += 990) {
        CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
        CHECK_EQ(cc_record_start(&(CCRecordConfig){.events = 512}), 0);
        CHECK_EQ(cc_run(some_of_everything, &n, NULL), 0);
        for (int format = 0; format < 3; format++) {
            size_t size;
            char *bytes = written((CCRecordFormat)format, &size);
            CHECK_EQ(holds(bytes, size, "older events of worker 0 are lost"), n > 10);
            free(bytes);
        }
        CHECK_EQ(cc_record_stop(), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
}

static void *first_fiber(void *arg) {
    for (int i = 0; i < 200; i++) cc_yield();
    return arg;
}

static void *second_fiber(void *arg) {
    int v;
    MAY_FAIL(cc_chan_recv(arg, &v, sizeof v));
    return NULL;
}

static void *two_fibers_in_one_record(void *arg) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, first_fiber, NULL, NULL), 0);
    (void)first_fiber(NULL); /* they take turns */
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_spawn(&task, second_fiber, arg, NULL), 0);
    cc_yield();
    struct history h;
    take_and_check(&h);
    CHECK(h.lost > 0);
    size_t starts = 0, older = 0;
    for (size_t i = 0; i < h.steps.count; i++) {
        const struct step *s = cc__step(&h, i);
        if (s->kind != STEP_START) continue;
        const struct strand *f = cc__strand(&h, s->fiber);
        const char *name = cc__names_text(&h.names, f->label);
        if (f->existed) older++, CHECK(strcmp(name, "second_fiber") != 0);
        starts += strcmp(name, "second_fiber") == 0;
    }
    CHECK(starts == 1 && older > 0);
    cc__history_free(&h);
    CHECK_EQ(cc_chan_close(arg), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    return NULL;
}

/* A record of a fiber is used again: the earlier fiber, whose spawn event was lost, does not get the name of the new
 * one. */
TEST(reused_records_keep_names_apart) {
    CCChan *never = cc_chan_create(sizeof(int), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.events = 64}), 0);
    CHECK_EQ(cc_run(two_fibers_in_one_record, never, NULL), 0);
    cc_chan_free(never);
}

static uint64_t smallest_ring(void) {
    uint64_t smallest = UINT64_MAX;
    for (unsigned i = 0; i < RECORDER_RINGS; i++) {
        struct record_ring *r = cc__get_acquire(&cc__recorder.ring[i]);
        if (r != NULL && r->size < smallest) smallest = r->size;
    }
    return smallest;
}

/* The environment's rings are small: a start that asks for more has more, in all of them. */
TEST_WORKERS(a_later_start_may_ask_for_more) {
    struct history h;
    long n = test_scale(2000);
    CHECK_EQ(setenv("CC_RECORD_LEVEL", "turns", 1), 0);
    CHECK_EQ(cc_run(some_of_everything, NULL, NULL), 0);
    CHECK_EQ(smallest_ring(), 4096);
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.events = 1 << 17}), EALREADY);
    CHECK_EQ(smallest_ring(), 4096);
    CHECK_EQ(cc_record_stop(), 0);
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.events = 1 << 17}), 0);
    CHECK_EQ(smallest_ring(), 1 << 17);
    CHECK_EQ(cc_run(some_of_everything, &n, NULL), 0);
    take_and_check(&h);
    CHECK_EQ(h.lost, 0);
    cc__history_free(&h);
    CHECK_EQ(cc_record_stop(), 0);
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.events = 64}), 0); /* they do not shrink */
    CHECK_EQ(smallest_ring(), 1 << 17);
}

static _Atomic bool enough;

static void *until_enough(void *arg) {
    long n = 10;
    (void)arg;
    while (!atomic_load(&enough)) (void)some_of_everything(&n);
    return NULL;
}

/* Snapshots of rings that are being written. */
TEST_WORKERS(while_fibers_run) {
    CCTask tasks[2];
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.events = 1024}), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_spawn(&tasks[i], until_enough, NULL, NULL), 0);
    for (long i = test_scale(30); i > 0; i--) {
        struct history h;
        take_and_check(&h);
        cc__history_free(&h);
        if (i % 7 == 0) { /* off and on again */
            CHECK_EQ(cc_record_stop(), 0);
            CHECK_EQ(cc_record_start(&(CCRecordConfig){.level = i % 2 ? CC_RECORD_TURNS : CC_RECORD_TIMES}), 0);
        }
    }
    atomic_store(&enough, true);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
}

static _Atomic bool kept;

static void *hogs_its_worker(void *arg) {
    atomic_store(&kept, true);
    while (!atomic_load(&enough)) {
    }
    return arg;
}

/* Its last record is older than what the other ring holds: it still runs, and has a name. */
TEST(fibers_that_hog_a_worker_are_listed) {
    struct history h;
    CCTask hog;
    long n = 100;
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2, .max_workers = 2}), 0);
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.events = 64}), 0);
    CHECK_EQ(cc_spawn(&hog, hogs_its_worker, NULL, &(CCSpawnOptions){.name = "hog"}), 0);
    while (!atomic_load(&kept)) usleep(100);
    CHECK_EQ(cc_run(some_of_everything, &n, NULL), 0);
    take_and_check(&h);
    CHECK(h.lost > 0);
    size_t starts = 0;
    for (size_t i = 0; i < h.steps.count; i++) {
        const struct step *s = cc__step(&h, i);
        if (s->fiber == NOBODY || strstr(cc__names_text(&h.names, cc__strand(&h, s->fiber)->label), "'hog'") == NULL)
            continue;
        if (starts++ == 0) {
            CHECK_EQ(s->kind, STEP_START);
            CHECK(s->inferred && s->text == cc__strand(&h, s->fiber)->label);
        } else {
            CHECK_EQ(s->kind, STEP_RUNS);
            CHECK(s->time <= h.end && h.end - s->time < 2); /* each lane has its own moment */
        }
    }
    CHECK_EQ(starts, 2);
    cc__history_free(&h);
    atomic_store(&enough, true);
    CHECK_EQ(cc_task_join(&hog, NULL), 0);
}

TEST_WORKERS(without_a_clock) {
    struct history h;
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.level = CC_RECORD_TURNS}), 0);
    CHECK_EQ(cc_run(some_of_everything, NULL, NULL), 0);
    take_and_check(&h);
    CHECK(h.steps.count > 50);
    cc__history_free(&h);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(cc_record_write(1, CC_RECORD_TEXT), ESRCH);
}

/* In all rings. */
static uint64_t records_of(enum record_kind kind) {
    static struct record_copy copy[CC_RECORD_EVENTS_DEFAULT];
    uint64_t found = 0, lost;
    for (unsigned i = 0; i < RECORDER_RINGS; i++) {
        struct record_ring *r = cc__get_acquire(&cc__recorder.ring[i]);
        uint64_t n = r != NULL ? cc__record_copy(r, copy, array_len(copy), &lost) : 0;
        for (uint64_t k = 0; k < n; k++) found += cc__record_kind(copy[k].head) == kind;
    }
    return found;
}

enum { ROUNDS = 100, TASKS = 12 /* of some_of_everything */ };

static void some_rounds(void) {
    long n = ROUNDS;
    CHECK_EQ(cc_run(some_of_everything, &n, NULL), 0);
}

/* Whether wakes and spawns take their slow paths because they are traced. */
struct routes {
    bool spawns, wakes;
};

static struct routes routes_now(void) {
    cc__lock_take(&cc__sched.trace_route.lock);
    struct routes now = {cc__get(&cc__sched.spawns) & SPAWNS_TRACED, cc__sched.trace_route.wakes};
    cc__lock_release(&cc__sched.trace_route.lock);
    return now;
}

/* On one worker, from which nobody steals, the order of the ring is that of the program. */
static void record_one_worker(uint32_t near_slots) {
    struct history h;
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    struct routes before = routes_now();
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.level = CC_RECORD_TURNS}), 0);
    struct routes while_on = routes_now();
    CHECK(before.spawns == while_on.spawns && before.wakes == while_on.wakes);
    struct record_ring *r = cc__get_acquire(&cc__recorder.ring[0]);
    CHECK(r != NULL && cc__ring_has_turns(r));
    if (near_slots != 0) cc__set(&r->turns, near_slots);
    some_rounds();
    take_and_check(&h);
    CHECK_EQ(h.lost, 0);
    size_t wakes = 0;
    for (size_t i = 0; i < h.steps.count; i++)
        wakes += cc__step(&h, i)->kind == STEP_UNBLOCK && !cc__step(&h, i)->inferred;
    CHECK(wakes >= ROUNDS / 2); /* a round has at least one; those around the spawn by this thread may be inferred */
    cc__history_free(&h);
    CHECK(records_of(REC_WAKE) >= ROUNDS);
    CHECK_EQ(records_of(REC_SPAWN), TASKS);
}

TEST(turns_are_recorded_on_the_fast_paths) {
    record_one_worker(0);
    CHECK(records_of(REC_SWITCH) > 0);
}

/* Their numbers do not follow from their addresses. */
TEST(switches_to_distant_fibers) {
    record_one_worker(1);
    CHECK(records_of(REC_SWITCH) > 0);
}

static void *nothing(void *arg) {
    return arg;
}

/* They do not fit into a SWITCH. The tasks that have the small slots do not run meanwhile. */
static void *with_large_slots(void *arg) {
    enum { SMALL = (1 << RECORD_SLOT_BITS) + 10 };
    static CCTask tasks[SMALL];
    (void)arg;
    for (int i = 0; i < SMALL; i++) CHECK_EQ(cc_spawn(&tasks[i], nothing, NULL, NULL), 0);
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.level = CC_RECORD_TURNS}), 0);
    (void)some_of_everything(NULL);
    CHECK_EQ(cc_record_stop(), 0);
    for (int i = 0; i < SMALL; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    return NULL;
}

TEST(switches_to_large_slots) {
    struct history h;
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(with_large_slots, NULL, NULL), 0);
    take_and_check(&h);
    uint32_t largest = 0;
    for (size_t i = 0; i < h.strands.count; i++)
        if (cc__strand(&h, i)->slot > largest) largest = cc__strand(&h, i)->slot;
    CHECK(largest >> RECORD_SLOT_BITS != 0);
    CHECK(records_of(REC_PARK) > 0 && records_of(REC_RUN) > 0);
    cc__history_free(&h);
}

/* In a rendezvous a value is handed over to or from a waiter: each waiter is woken, by whichever side. */
TEST_WORKERS(turns_of_many_workers) {
    struct history h;
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.level = CC_RECORD_TURNS}), 0);
    some_rounds();
    CHECK(records_of(REC_WAKE) >= ROUNDS);
    CHECK_EQ(records_of(REC_SPAWN), TASKS);
    take_and_check(&h);
    CHECK_EQ(h.lost, 0);
    cc__history_free(&h);
}

TEST_WORKERS(with_stacks) {
    CHECK_EQ(cc_record_start(&(CCRecordConfig){.level = CC_RECORD_STACKS}), 0);
    CHECK_EQ(cc_run(some_of_everything, NULL, NULL), 0);
    char *text = written(CC_RECORD_TEXT, NULL);
    if (cc__inspect_missing() == NULL) CHECK(strstr(text, ", in some_of_everything") != NULL);
    free(text);
}

/* ---- deadlines ---- */

enum { DEADLINES = 5 };

static void *deadlines(void *arg) {
    for (int i = 0; i < DEADLINES; i++) {
        CC_WITH_DEADLINE(cc_after_ms(1)) CHECK_EQ(cc_sleep_ms(60 * 1000), ECANCELED);
        CC_WITH_DEADLINE(cc_after_ms(60 * 1000)) CHECK_EQ(cc_sleep_ms(1), 0);
    }
    return arg;
}

/* The fiber of a deadline begins when that passes. One that does not pass has no fiber: it would seem to have been
 * ready ever since. */
TEST(deadlines_that_pass_are_fibers) {
    struct history h;
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_record_start(NULL), 0);
    CHECK_EQ(cc_run(deadlines, NULL, NULL), 0);
    CHECK_EQ(records_of(REC_SPAWN), 1 + DEADLINES);
    take_and_check(&h);
    for (size_t i = 1; i < h.strands.count; i++) CHECK(!cc__strand(&h, i)->existed); /* 0: the OS threads */
    CHECK_EQ(h.strands.count, 2 + DEADLINES);
    cc__history_free(&h);
}

/* ---- islands ---- */

static void *on_the_island(void *arg) {
    CCChan **ends = arg;
    int v;
    CC_REGION("apart");
    while (cc_chan_recv(ends[0], &v, sizeof v) == 0) {
        cc_yield();
        CHECK_EQ(cc_chan_send(ends[1], &v, sizeof v), 0);
    }
    return NULL;
}

static void *visit(void *arg) {
    cc_note("a visit");
    return arg;
}

/* Values to an island and back, and a call there. */
static void *around_an_island(void *arg) {
    CCIsland *island = arg, *own = NULL;
    CCChan *ends[2] = {cc_chan_create(sizeof(int), 0), cc_chan_create(sizeof(int), 1)};
    CCTask task;
    if (island == NULL) CHECK_EQ(cc_island_create(&own, &(CCIslandConfig){.name = "far away"}), 0);
    if (island == NULL) island = own;
    CHECK_EQ(cc_spawn(&task, on_the_island, ends, &(CCSpawnOptions){.island = island}), 0);
    for (int i = 0; i < 20; i++) {
        int v = i;
        CHECK_EQ(cc_chan_send(ends[0], &v, sizeof v), 0);
        CHECK_EQ(cc_chan_recv(ends[1], &v, sizeof v), 0);
    }
    CHECK_EQ(cc_chan_close(ends[0]), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_island_call(island, visit, NULL, NULL), 0);
    if (own != NULL) CHECK_EQ(cc_island_free(own), 0);
    cc_chan_free(ends[0]);
    cc_chan_free(ends[1]);
    return NULL;
}

/* Steps of fibers on the lane of an island that begins so. */
static size_t steps_on(struct history *h, const char *island) {
    size_t n = 0;
    for (size_t i = 0; i < h->steps.count; i++) {
        const struct step *s = cc__step(h, i);
        const struct lane *l = cc__lane(h, s->lane);
        if (strncmp(l->island, island, strlen(island)) != 0 || l->island[0] == '\0') continue;
        CHECK(l->worker >= (int)cc__sched.max && l->worker < RECORDER_OTHERS);
        n += s->kind == STEP_START || s->kind == STEP_BLOCK || s->kind == STEP_STOP;
    }
    return n;
}

static const CCRecordLevel levels[] = {CC_RECORD_TIMES, CC_RECORD_TURNS, CC_RECORD_STACKS};

/* An island that opens while it records: its fibers run and park on a lane of its own. */
TEST_WORKERS(islands_have_rings) {
    for (size_t i = 0; i < array_len(levels); i++) {
        struct history h;
        CHECK_EQ(cc_record_start(&(CCRecordConfig){.level = levels[i]}), 0);
        for (int again = 0; again < 3; again++) CHECK_EQ(cc_run(around_an_island, NULL, NULL), 0); /* in one place */
        take_and_check(&h);
        CHECK_EQ(h.lost, 0);
        CHECK(steps_on(&h, "far away") >= 3 * 2); /* both of its fibers begin */
        for (size_t s = 0; s < h.strands.count; s++)
            if (s != 0 && levels[i] != CC_RECORD_TURNS) /* none is known by its spawn alone */
                CHECK(cc__strand(&h, (uint32_t)s)->sequence > 0);
        cc__history_free(&h);
        char *text = written(CC_RECORD_TEXT, NULL);
        CHECK(strstr(text, ", island 'far away': ") != NULL);
        CHECK(strstr(text, "enters region apart") != NULL && strstr(text, "notes: a visit") != NULL);
        free(text);
        free(written(CC_RECORD_GO, NULL));
        free(written(CC_RECORD_PERFETTO, NULL));
        CHECK_EQ(cc_record_stop(), 0);
    }
}

/* One that is open already when the recording begins. */
TEST_WORKERS(islands_that_were_there_before) {
    CCIsland *islands[3];
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_island_create(&islands[i], &(CCIslandConfig){.name = "early"}), 0);
    for (size_t i = 0; i < array_len(levels); i++) {
        struct history h;
        CHECK_EQ(cc_record_start(&(CCRecordConfig){.level = levels[i], .events = (size_t)64 << (8 + i)}), 0);
        for (int k = 0; k < 3; k++) CHECK_EQ(cc_run(around_an_island, islands[k], NULL), 0);
        take_and_check(&h);
        CHECK(steps_on(&h, "early") >= 3 * 2);
        cc__history_free(&h);
        CHECK_EQ(cc_record_stop(), 0);
    }
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_island_free(islands[i]), 0);
}

static void *in_the_simulation(void *arg) {
    long n = 12;
    (void)arg;
    (void)around_an_island(NULL);
    return some_of_everything(&n);
}

/* In a child process: ids of fibers are not used twice in one process. */
static void simulate_and_write(uint64_t seed, FILE *const files[3]) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_EQ(cc_record_start(NULL), 0);
        CHECK_EQ(cc_sim_run(seed, in_the_simulation, NULL, NULL), 0);
        for (int f = 0; f < 3; f++) CHECK_EQ(cc_record_write(fileno(files[f]), (CCRecordFormat)f), 0);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

static size_t read_all(FILE *file, char *text, size_t size) {
    ssize_t n = pread(fileno(file), text, size, 0);
    CHECK(n > 0 && (size_t)n < size);
    fclose(file);
    return (size_t)n;
}

/* The same seed, the same bytes; another one, others. */
TEST(simulations_repeat) {
    static char text[3][1 << 18];
    FILE *files[3][3];
    for (int i = 0; i < 3; i++) {
        for (int f = 0; f < 3; f++) CHECK((files[i][f] = tmpfile()) != NULL);
        simulate_and_write(i < 2 ? 17 : 18, files[i]);
    }
    for (int f = 0; f < 3; f++) {
        size_t size[3];
        for (int i = 0; i < 3; i++) size[i] = read_all(files[i][f], text[i], sizeof text[i]);
        CHECK_EQ(size[0], size[1]);
        CHECK(memcmp(text[0], text[1], size[0]) == 0);
        CHECK(size[0] != size[2] || memcmp(text[0], text[2], size[0]) != 0);
    }
}

/* One fiber at a time: each record comes before what follows from it, and nothing is left to be inferred. */
TEST(nothing_is_inferred_in_a_simulation) {
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct history h;
        CHECK_EQ(cc_record_start(NULL), 0);
        CHECK_EQ(cc_sim_run(seed, in_the_simulation, NULL, NULL), 0);
        take_and_check(&h);
        CHECK_EQ(h.lost, 0);
        for (size_t i = 0; i < h.steps.count; i++) {
            const struct step *s = cc__step(&h, i);
            /* A joiner that runs its task itself is not woken: it goes on. */
            if (s->inferred) CHECK_EQ(s->kind, STEP_UNBLOCK);
        }
        cc__history_free(&h);
        CHECK_EQ(cc_record_stop(), 0);
    }
}

/* Each level, by the environment: written by a shutdown, while the runtime still has what it takes. */
TEST(environment) {
    static const char *const names[] = {"turns", "times", "stacks"};
    char name[] = "/tmp/record_XXXXXX.txt";
    int fd = mkstemps(name, 4);
    CHECK(fd >= 0);
    CHECK_EQ(setenv("CC_RECORD", name, 1), 0);
    for (size_t i = 0; i < array_len(names); i++) {
        static char text[1 << 17];
        CHECK_EQ(setenv("CC_RECORD_LEVEL", names[i], 1), 0);
        CHECK_EQ(cc_run(some_of_everything, NULL, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        ssize_t n = pread(fd, text, sizeof text - 1, 0);
        CHECK(n > 0);
        text[n] = '\0';
        CHECK(strstr(text, "spawns fiber") != NULL);
        CHECK_EQ(cc_record_stop(), 0);
        CHECK_EQ(ftruncate(fd, 0), 0);
    }
    CHECK_EQ(unlink(name), 0);
    close(fd);
}

/* Each process has a file of its own. */
TEST(environment_with_the_process) {
    char pattern[] = "/tmp/record_XXXXXX", name[64];
    CHECK(mkdtemp(pattern) != NULL);
    snprintf(name, sizeof name, "%s/%%p of %%d%%.txt", pattern);
    CHECK_EQ(setenv("CC_RECORD", name, 1), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_EQ(cc_run(some_of_everything, NULL, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    snprintf(name, sizeof name, "%s/%d of %%d%%.txt", pattern, (int)pid);
    CHECK_EQ(unlink(name), 0);
    CHECK_EQ(rmdir(pattern), 0);
}

/* ---- a fifo ---- */

static void make_fifo(char name[static 40]) {
    snprintf(name, 40, "/tmp/record_%d_fifo.txt", (int)getpid());
    unlink(name);
    CHECK_EQ(mkfifo(name, 0600), 0);
}

/* There is no reader, and never will be: the process reports that, and ends. */
TEST(a_fifo_that_nobody_reads, .timeout = 20) {
    char name[40];
    struct capture capture;
    make_fifo(name);
    CHECK_EQ(setenv("CC_RECORD", name, 1), 0);
    capture_start(&capture);
    CHECK_EQ(cc_run(some_of_everything, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    const char *text = capture_end(&capture);
    CHECK(contains(text, name) && contains(text, "cannot be written") && contains(text, "nobody reads from this fifo"));
    CHECK_EQ(cc_record_snapshot(name), ENXIO);
    CHECK_EQ(unlink(name), 0);
}

/* The pipe holds a page, and is read when it is full: the writer waits for space, and nothing is lost. */
TEST(a_fifo_with_a_slow_reader) {
    char name[40], piece[4096];
    make_fifo(name);
    int fd = open(name, O_RDONLY | O_NONBLOCK), held = 0, status;
    CHECK(fd >= 0);
    int size = fcntl(fd, F_SETPIPE_SZ, 4096);
    CHECK(size >= 4096);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        static long turns = 2000;
        close(fd);
        CHECK_EQ(setenv("CC_RECORD", name, 1), 0);
        CHECK_EQ(cc_run(some_of_everything, &turns, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        _exit(0);
    }
    while (held < size) {
        CHECK_EQ(ioctl(fd, FIONREAD, &held), 0);
        CHECK_EQ(waitpid(pid, &status, WNOHANG), 0);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    FILE *all = tmpfile();
    CHECK(all != NULL);
    CHECK_EQ(fcntl(fd, F_SETFL, 0), 0);
    for (ssize_t n; (n = read(fd, piece, sizeof piece)) != 0;) {
        CHECK(n > 0);
        CHECK_EQ(fwrite(piece, 1, (size_t)n, all), (size_t)n);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    rewind(all);
    long notes = 0;
    for (char line[1024]; fgets(line, sizeof line, all) != NULL;) notes += strstr(line, " of many") != NULL;
    CHECK_EQ(notes, 250);
    fclose(all);
    close(fd);
    CHECK_EQ(unlink(name), 0);
}

/* It has a reader, which reads nothing, and then closes it. */
TEST(a_reader_that_does_not_read, .timeout = 20) {
    static char much[1 << 20];
    struct vec bytes = {0};
    int ends[2];
    CHECK_EQ(pipe2(ends, O_NONBLOCK), 0);
    cc__bytes_add(&bytes, much, sizeof much);
    CHECK_EQ(cc__bytes_write(&bytes, ends[1], 0), EAGAIN);
    CHECK_EQ(cc__bytes_write(&bytes, ends[1], 50), ETIMEDOUT);
    close(ends[0]);
    CHECK_EQ(cc__bytes_write(&bytes, ends[1], 50), EPIPE);
    cc__vec_free(&bytes);
    close(ends[1]);
}

static void *panics(void *arg) {
    (void)arg;
    cc_note("before the panic");
    cc_panic("as planned");
    return NULL;
}

TEST_DIES(panic_shows_the_last_events, "notes: before the panic", .signal = SIGABRT) {
    CHECK_EQ(setenv("CC_PANIC_ABORT", "1", 1), 0);
    CHECK_EQ(setenv("CC_RECORD_LEVEL", "turns", 1), 0);
    (void)cc_run(panics, NULL, NULL);
}

/* The lines of a report, by cc__record_last. */
static char lines[4096];

static void take_line(void *arg, const char *line) {
    (void)arg;
    size_t n = strlen(lines);
    snprintf(lines + n, sizeof lines - n, "%s\n", line);
}

static void *ends_at_once(void *arg) {
    return arg;
}

static void *names_things(void *arg) {
    CC_NURSERY(n, .name = "a nursery with a long name") {
        CHECK_EQ(cc_nursery_spawn(n, ends_at_once, NULL), 0);
        CHECK_EQ(cc_nursery_spawn_ex(n, NULL, ends_at_once, NULL, &(CCSpawnOptions){.name = "worker bee"}), 0);
    }
    CC_NURSERY(n) {
        (void)n;
    }
    CHECK(cc__record_last(cc__worker()->core.owner - 1, 64, take_line, NULL));
    return arg;
}

/* A name is a word of its own, and a line without a name ends with its last word. */
TEST(names_in_the_last_events) {
    CCRuntimeConfig one = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&one), 0);
    CHECK_EQ(cc_record_start(NULL), 0);
    CHECK_EQ(cc_run(names_things, NULL, NULL), 0);
    CHECK(strstr(lines, " begins a nursery with a long name\n") != NULL);
    CHECK(strstr(lines, " begins\n") != NULL);
    CHECK(strstr(lines, " worker bee\n") != NULL);
    CHECK(strstr(lines, "spawns fiber") != NULL && strstr(lines, " \n") == NULL);
    CHECK_EQ(cc_record_stop(), 0);
    CHECK_EQ(cc_runtime_shutdown(1000), 0);
}

/* ---- files that nobody waits for ---- */

static char wanted_file[32];

static void *unlocks_what_is_free(void *arg) {
    static CCMutex mutex;
    cc_note("before the end");
    cc_mutex_unlock(&mutex);
    return arg;
}

static void *panics_for_good(void *arg) {
    cc_note("before the end");
    cc_panic("as planned");
    return arg;
}

/* Until there is something in the file; then the process ends without a message. */
static void *killed_when_written(void *arg) {
    struct stat s;
    while (stat(wanted_file, &s) != 0 || s.st_size == 0) CHECK_EQ(cc_sleep_ms(1), 0);
    raise(SIGKILL);
    return arg;
}

static void *panics_and_goes_on(void *arg) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, panics_for_good, NULL, NULL), 0);
    MAY_FAIL(cc_task_join(&task, NULL));
    return killed_when_written(arg);
}

static void *asks_for_a_dump(void *arg) {
    cc_note("before the end");
    CHECK_EQ(raise(SIGQUIT), 0); /* on this thread: the race detector keeps signals back from threads that wait */
    return killed_when_written(arg);
}

/* The file of CC_RECORD in a process that ends by that signal. */
static void dies_with_a_file(CCTaskFn fn, bool panics_abort, int signal) {
    static char text[1 << 16];
    snprintf(wanted_file, sizeof wanted_file, "/tmp/record_%d.txt", (int)getpid());
    unlink(wanted_file);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        CHECK_EQ(setenv("CC_RECORD", wanted_file, 1), 0);
        CHECK_EQ(setenv("CC_PANIC_ABORT", panics_abort ? "1" : "0", 1), 0);
        (void)cc_run(fn, NULL, NULL);
        _exit(1);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal);
    FILE *file = fopen(wanted_file, "r");
    CHECK(file != NULL);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    fclose(file);
    unlink(wanted_file);
    CHECK(strstr(text, "notes: before the end") != NULL);
}

TEST(a_fatal_error_writes_the_file) {
    dies_with_a_file(unlocks_what_is_free, false, SIGABRT);
}

/* ---- abort ---- */

static void *aborts(void *arg) {
    (void)arg;
    cc_note("before the end");
    abort();
}

/* Not on a worker, and not inside the library. */
static void *has_a_thread_that_aborts(void *arg) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, aborts, NULL), 0);
    for (;;) CHECK_EQ(cc_sleep_ms(1000), 0);
    return arg;
}

/* A signal from outside, as a watchdog sends it. */
static void *is_killed(void *arg) {
    pid_t pid = getpid();
    cc_note("before the end");
    if (fork() == 0) {
        kill(pid, SIGABRT);
        _exit(0);
    }
    for (;;) CHECK_EQ(cc_sleep_ms(1000), 0);
    return arg;
}

TEST(an_abort_writes_the_file) {
    dies_with_a_file(aborts, false, SIGABRT);
}

TEST(an_abort_of_a_thread_writes_the_file) {
    dies_with_a_file(has_a_thread_that_aborts, false, SIGABRT);
}

TEST(an_abort_from_outside_writes_the_file) {
    dies_with_a_file(is_killed, false, SIGABRT);
}

/* The handler that was there before is called, and sees the file. */
static void when_aborted(int sig, siginfo_t *info, void *context) {
    struct stat s;
    (void)context;
    if (sig == SIGABRT && info->si_pid == getpid() && stat(wanted_file, &s) == 0 && s.st_size > 0) raise(SIGKILL);
}

TEST(an_abort_calls_the_handler_from_before) {
    struct sigaction action = {.sa_sigaction = when_aborted, .sa_flags = SA_SIGINFO}, before;
    CHECK_EQ(sigaction(SIGABRT, &action, &before), 0);
    dies_with_a_file(aborts, false, SIGKILL);
    CHECK_EQ(sigaction(SIGABRT, &before, NULL), 0);
}

static sigjmp_buf out;

static void jumps_out(int sig) {
    (void)sig;
    siglongjmp(out, 1);
}

/* A program that goes on after an abort does so; one that ignores the signal does not die of it. */
TEST(an_abort_that_does_not_end_the_process) {
    static void (*const actions[])(int) = {SIG_IGN, jumps_out};
    CHECK_EQ(setenv("CC_RECORD", "/dev/null", 1), 0);
    for (size_t i = 0; i < array_len(actions); i++) {
        struct sigaction action = {.sa_handler = actions[i]}, before, now;
        CHECK_EQ(sigaction(SIGABRT, &action, &before), 0);
        CHECK_EQ(cc_run(some_of_everything, NULL, NULL), 0);
        if (actions[i] == SIG_IGN)
            CHECK_EQ(raise(SIGABRT), 0);
        else if (sigsetjmp(out, 1) == 0)
            abort();
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        CHECK_EQ(sigaction(SIGABRT, &before, &now), 0);
        CHECK(now.sa_handler == actions[i]);
    }
}

/* Not without CC_RECORD. */
TEST(sigabrt_is_left_alone) {
    struct sigaction now;
    unsetenv("CC_RECORD");
    CHECK_EQ(sigaction(SIGABRT, &(struct sigaction){.sa_handler = SIG_DFL}, NULL), 0);
    CHECK_EQ(cc_run(some_of_everything, NULL, NULL), 0);
    CHECK_EQ(sigaction(SIGABRT, NULL, &now), 0);
    CHECK(!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL);
}

/* A forked child has no thread that could write it: it does not wait for one. */
TEST(an_abort_in_a_forked_child, .timeout = 20) {
    snprintf(wanted_file, sizeof wanted_file, "/tmp/record_%d.txt", (int)getpid());
    unlink(wanted_file);
    CHECK_EQ(setenv("CC_RECORD", wanted_file, 1), 0);
    CHECK_EQ(cc_run(some_of_everything, NULL, NULL), 0);
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            abort();
        }
        int status;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        CHECK(access(wanted_file, F_OK) != 0);
    }
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(unlink(wanted_file), 0);
}

TEST(a_fatal_panic_writes_the_file) {
    dies_with_a_file(panics_for_good, true, SIGABRT);
}

TEST(a_panic_that_ends_a_fiber_writes_the_file) {
    dies_with_a_file(panics_and_goes_on, false, SIGKILL);
}

TEST(a_dump_by_a_signal_writes_the_file) {
    dies_with_a_file(asks_for_a_dump, false, SIGKILL);
}

static void *stuck(void *arg) {
    CCChan *ch = arg;
    int v;
    cc_note("nobody will send");
    MAY_FAIL(cc_chan_recv(ch, &v, sizeof v));
    return NULL;
}

TEST_DIES(deadlock_shows_the_last_events, "notes: nobody will send") {
    if (cc__inspect_missing() != NULL) {
        fputs("notes: nobody will send", stderr);
        abort();
    }
    CHECK_EQ(setenv("CC_RECORD_LEVEL", "times", 1), 0);
    CHECK_EQ(setenv("CC_SIM_SEED", "1", 1), 0); /* where a deadlock is found at once */
    (void)cc_run(stuck, cc_chan_create(sizeof(int), 0), NULL);
}
