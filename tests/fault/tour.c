/* tour.c - a program that uses every kind of object of the library once, while each of its system calls fails in turn:
 * a documented error, no leak, and no effect on the next tour.
 *
 * Each tour is a process of its own, so that calls that are made once per process fail as well. It runs twice there:
 * with the failure, and then without, where everything must succeed. In the end the process holds what one holds in
 * which nothing failed.
 */
#include "fail.h"
#include "harness.h"

#include "../programs/where.h"
#include "base/attr.h"

#include <ccc/ccc.h>

#include <dirent.h>
#include <string.h>
#include <sys/wait.h>

/* ---- what a step may answer ---- */

static _Atomic bool failing; /* during the first tour */

/* Passes the result on if it is 0, or a shortage during the failing tour. */
static int may_at(int rc, int line) {
    if (rc != 0 && !(atomic_load(&failing) && (rc == ENOMEM || rc == EAGAIN)))
        test_fail(__FILE__, line, "a call returned %d (%s)", rc, strerror(rc));
    return rc;
}
#define MAY(call) may_at((call), __LINE__)

static void *give_back(void *arg) {
    return arg;
}

/* ---- the stops ---- */

static void stop_tasks(void) {
    static const CCSpawnOptions kinds[] = {
        {0}, {.name = "named"}, {.arg_size = 200}, {.stack_size = 64 * 1024}, {.stack_size = 2 * 1024 * 1024}};
    static char bytes[200];
    for (size_t i = 0; i < array_len(kinds); i++) {
        CCTask task;
        if (MAY(cc_spawn(&task, give_back, bytes, &kinds[i])) != 0) continue;
        (void)MAY(cc_task_join_until(&task, NULL, cc_after_ms(3600 * 1000)));
        if (task.id != 0) (void)MAY(cc_task_join(&task, NULL)); /* it was the wait that found no memory */
        CHECK_EQ(task.id, 0);
        (void)MAY(cc_spawn(NULL, give_back, NULL, NULL));
    }
    (void)MAY(cc_sleep_until(cc_after_ns(20000)));
}

struct line {
    CCChan *ch;
    int values;
};

static void *send_all(void *arg) {
    struct line *line = arg;
    for (int i = 0; i < line->values; i++) {
        int rc = MAY(cc_chan_send_until(line->ch, &i, sizeof i, cc_after_ms(3600 * 1000)));
        if (rc != 0) CHECK_EQ(cc_chan_send(line->ch, &i, sizeof i), 0); /* which needs nothing */
    }
    return NULL;
}

/* Receives until the sender has ended: by a select of both, which also ends if the sender never ran. */
static void receive_all(struct line *line) {
    CCTask task;
    if (MAY(cc_spawn(&task, send_all, line, NULL)) != 0) return;
    int next = 0, rc;
    while (task.id != 0) {
        int value = -1, end = 0;
        size_t chosen;
        CCCase cases[] = {CC_RECV(line->ch, &value, NULL), CC_JOIN(&task, NULL, &end)};
        rc = MAY(cc_select(cases, 2, cc_after_ms(3600 * 1000), &chosen));
        if (rc != 0) { /* no memory for the timer: without a deadline there is none */
            if (cc_chan_recv_try(line->ch, &value, sizeof value) == 0) CHECK_EQ(value, next++);
            cc_yield();
            continue;
        }
        (void)MAY(cases[chosen].error);
        if (chosen == 0) CHECK_EQ(value, next++);
    }
    int value;
    while (cc_chan_recv_try(line->ch, &value, sizeof value) == 0) CHECK_EQ(value, next++);
    CHECK(next == line->values || next == 0); /* all, or the sender got no stack */
}

static int make_item(void *item, void *context) {
    (void)context;
    memset(item, 1, 300);
    return 0;
}

static void stop_channels(void) {
    static const CCChanConfig kinds[] = {
        {.elem_size = sizeof(int)},
        {.elem_size = sizeof(int), .capacity = 3, .name = "named"},
        {.elem_size = sizeof(int), .capacity = 5000, .mode = CC_CHAN_MODE_DROP_OLD},
    };
    for (size_t i = 0; i < array_len(kinds); i++) {
        struct line line = {cc_chan_create_ex(&kinds[i]), 10};
        if (line.ch == NULL) {
            (void)MAY(errno);
            continue;
        }
        receive_all(&line);
        cc_chan_free(line.ch);
    }
    CCChanConfig pool = {.elem_size = 300, .capacity = 4, .on_create = make_item};
    CCChan *ch = cc_chan_create_ex(&pool);
    char item[300] = {0};
    if (ch != NULL && MAY(cc_chan_recv(ch, item, sizeof item)) == 0) CHECK(item[0] == 1 && item[299] == 1);
    cc_chan_free(ch);
    ch = cc_chan_create_ex(&(CCChanConfig){.capacity = 2, .ordered = true});
    CCTask task = {0};
    void *result = NULL;
    if (ch != NULL && MAY(cc_spawn(&task, give_back, &task, NULL)) == 0 && MAY(cc_chan_send_task(ch, &task)) == 0 &&
        MAY(cc_chan_recv_task(ch, &result)) == 0)
        CHECK(result == &task);
    cc_chan_free(ch);
}

static void stop_select(void) {
    enum { ARMS = CC_SELECT_MAX };
    CCChan *ch[8];
    for (size_t i = 0; i < array_len(ch); i++) ch[i] = cc_chan_create(sizeof(int), i); /* NULL is an arm that waits */
    static _Thread_local int value;
    CCCase cases[ARMS];
    for (size_t i = 0; i < ARMS; i++)
        cases[i] = (CCCase){.kind = CC_CASE_RECV, .ch = ch[i % array_len(ch)], .value = &value, .size = sizeof value};
    cases[ARMS - 1] = (CCCase)CC_AT(cc_after_ns(20000));
    size_t chosen = 0;
    if (MAY(cc_select(cases, ARMS, CC_FOREVER, &chosen)) == 0) CHECK_EQ(chosen, ARMS - 1);
    int rc = cc_select(cases, ARMS - 1, cc_after_ns(20000), &chosen);
    if (rc != ETIMEDOUT) (void)MAY(rc);
    for (size_t i = 0; i < array_len(ch); i++) cc_chan_free(ch[i]);
}

static void nothing(void *arg) {
    (void)arg;
}

static void stop_nurseries(void) {
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.name = "tour", .deadline = cc_after_ms(3600 * 1000)});
    CCChan *ch = cc_chan_create(1, 1);
    if (n != NULL) {
        for (int i = 0; i < 3; i++) (void)MAY(cc_nursery_spawn(n, give_back, NULL));
        (void)MAY(cc_nursery_at_exit(n, nothing, NULL));
        if (ch != NULL) (void)MAY(cc_nursery_autoclose(n, ch));
        if (cc_nursery_alloc(n, 20000) == NULL) CHECK(atomic_load(&failing));
        (void)MAY(cc_nursery_set_value(n, &ch, ch));
        (void)MAY(cc_nursery_set_deadline(n, cc_after_ms(7200 * 1000)));
        (void)MAY(cc_nursery_wait(n));
        CHECK_EQ(cc_nursery_children(n), 0);
    } else {
        CHECK(atomic_load(&failing));
    }
    CHECK_EQ(cc_nursery_free(n), 0);
    cc_chan_free(ch);
    int rc = -1;
    CC_NURSERY(inner, .result = &rc)(void) MAY(cc_nursery_spawn(inner, give_back, NULL));
    (void)MAY(rc);
}

static void stop_locks(void) {
    CCMutex mutex = {0};
    CCCond cond = {0};
    CCSem sem = {0};
    CCEvent event = {0};
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    int rc = cc_cond_wait_until(&cond, &mutex, cc_after_ns(20000));
    if (rc != ETIMEDOUT) (void)MAY(rc);
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    rc = cc_sem_acquire_until(&sem, cc_after_ns(20000));
    if (rc != ETIMEDOUT) (void)MAY(rc);
    rc = cc_event_wait_until(&event, cc_after_ns(20000));
    if (rc != ETIMEDOUT) (void)MAY(rc);
}

static void panic_now(void *arg) {
    (void)MAY(cc_defer(nothing, arg));
    cc_panic("on purpose");
}

static void stop_locals_and_panics(void) {
    CCLocalKey key;
    CHECK_EQ(cc_local_key_create(&key, nothing), 0);
    int rc = MAY(cc_local_set(key, &key));
    CHECK(cc_local_get(key) == (rc == 0 ? &key : NULL));
    (void)MAY(cc_local_set(key, NULL));
    CHECK_EQ(cc_local_key_delete(key), 0);
    CCPanic why;
    CHECK_EQ(cc_try(panic_now, NULL, &why), ENOTRECOVERABLE);
    CHECK_EQ(strcmp(why.message, "on purpose"), 0);
    void *result = NULL;
    if (MAY(cc_hosted_call(give_back, &key, &result, NULL)) == 0) CHECK(result == &key);
}

static void drop(void *arg, void *result) {
    (void)arg, (void)result;
}

static void stop_blocking(void) {
    void *result = NULL;
    CCPool *pool = NULL;
    if (MAY(cc_blocking(give_back, &result, &result)) == 0) CHECK(result == &result);
    (void)MAY(cc_blocking_until(give_back, NULL, NULL, cc_after_ms(3600 * 1000)));
    (void)MAY(cc_pool_create(&pool, 1));
    CCBlockingOptions options = {.pool = pool, .may_abandon = true, .cleanup = drop, .arg_size = sizeof result};
    (void)MAY(cc_blocking_ex(give_back, &result, NULL, &options, CC_FOREVER));
    CHECK_EQ(cc_pool_free(pool), 0);
    int fd = -1;
    char c = 0;
    size_t n;
    if (MAY(cc_file_open(&fd, "/dev/zero", O_RDONLY, 0)) == 0) CHECK_EQ(cc_file_read(fd, &c, 1, 0, &n), 0);
    if (fd >= 0) CHECK_EQ(cc_fd_close(fd), 0);
}

/* Other tests check the text; here there must be one, or an error. */
static void stop_reports(void) {
    static char page[512 * 1024];
    FILE *file = fmemopen(page, sizeof page, "w");
    CHECK(file != NULL);
    (void)MAY(cc_dump(file));
    (void)MAY(cc_dump_json(file));
    fclose(file);
    CCStackStats stacks;
    CHECK_EQ(cc_stats_stacks(&stacks, sizeof stacks), 0);
    CHECK_EQ(cc_trace_start("all"), 0);
    (void)MAY(cc_run(give_back, NULL, NULL));
    cc_trace_stop();
}

static void *tour_of_all(void *arg) {
    stop_tasks();
    stop_channels();
    stop_select();
    stop_nurseries();
    stop_locks();
    stop_locals_and_panics();
    stop_blocking();
    return arg;
}

static bool reporting; /* reports alone: they take long, because they read the program's debug information */

/* From start to shutdown; in a fiber and on this thread. */
static void tour(void) {
    if (MAY(cc_runtime_init(&(CCRuntimeConfig){.workers = 2})) == 0) {
        if (reporting) {
            stop_reports();
        } else {
            (void)MAY(cc_run(tour_of_all, NULL, NULL));
            (void)tour_of_all(NULL);
        }
    }
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* ---- one process ---- */

/* What all of them see. */
static struct shared {
    struct fail_site sites[FAIL_SITES]; /* with the counts of all */
    long calls;                         /* of the last tour that was armed for none */
    long blocks, mapped, fds;           /* what it left */
    long failed;                        /* calls, by the last process */
} * shared;

static long descriptors(void) {
    DIR *dir = opendir("/proc/self/fd");
    long n = 0;
    CHECK(dir != NULL);
    while (readdir(dir) != NULL) n++;
    closedir(dir);
    return n;
}

/* Arms the n-th call, or the n-th from one place; 0: none. */
static void live(struct fail_site *site, long n, bool for_ever) {
    fail_begin();
    memset(fail.sites, 0, sizeof fail.sites);
    atomic_store(&failing, n > 0);
    if (site != NULL)
        fail_arm_site(site, n);
    else if (n > 0)
        fail_arm(n, FAIL_EVERYTHING, for_ever);
    if (for_ever) atomic_store(&fail.on, true);
    tour();
    shared->failed = fail_disarm();
    long calls = 0;
    for (int i = 0; i < FAIL_SITES; i++) {
        struct fail_site *s = &fail.sites[i];
        calls += s->called;
        if (s->at == NULL) continue;
        struct fail_site *all = &shared->sites[i]; /* hashed alike: the same addresses in all of them */
        for (int k = i; all->at != NULL && all->at != s->at; all = &shared->sites[k]) k = (k + 1) % FAIL_SITES;
        atomic_store(&all->at, s->at);
        atomic_store(&all->kind, s->kind);
        all->called += s->called;
        all->failed += s->failed;
    }
    atomic_store(&failing, false);
    tour();
    if (n == 0) {
        shared->calls = calls;
        shared->blocks = fail.blocks;
        shared->mapped = fail.mapped;
        shared->fds = descriptors();
    }
    /* What is read of the debug information stays for ever; if it could not be read it is less. */
    CHECK(fail.blocks == shared->blocks || (reporting && fail.blocks < shared->blocks));
    CHECK(fail.mapped == shared->mapped || (reporting && fail.mapped < shared->mapped));
    CHECK_EQ(descriptors(), shared->fds);
}

/* The number of calls that failed in it. A process that hangs is ended by its alarm, and fails the case. */
static long live_in_a_child(struct fail_site *site, long n, bool for_ever) {
    fflush(stdout);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(under_valgrind() || under_qemu() ? 120 : 30);
        live(site, n, for_ever);
        exit(0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (status != 0)
        test_fail(__FILE__, __LINE__, "call %ld%s of %s %p: the process ended with %s %d", n, for_ever ? " and on" : "",
                  site != NULL ? "the place" : "all,", site != NULL ? atomic_load(&site->at) : NULL,
                  WIFSIGNALED(status) ? "signal" : "status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return shared->failed;
}

static void begin(void) {
    fail_needs_all();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    CHECK_EQ(live_in_a_child(NULL, 0, false), 0);
    CHECK(shared->calls > 20);
}

/* ---- cases ---- */

static bool came(const void *at) {
    for (int i = 0; i < FAIL_SITES; i++)
        if (shared->sites[i].at == at) return true;
    return false;
}

/* Every place that calls the system fails: at its first call, at a later one, and at all of them. Where a tour takes
 * long, some places at their first. */
static void every_place(long least) {
    begin();
    /* Call sites of two tours: what happens in one on a busy machine, for example an added worker, may not happen
     * again. */
    struct fail_site found[FAIL_SITES];
    memcpy(found, shared->sites, sizeof found);
    memset(shared->sites, 0, sizeof shared->sites);
    CHECK_EQ(live_in_a_child(NULL, 0, false), 0);
    for (int i = 0; i < FAIL_SITES; i++)
        if (!came(found[i].at)) found[i].at = NULL;
    long places = 0, idle = 0;
    bool slow = under_valgrind() || under_qemu() || (reporting && !test_long());
    uint64_t rng = test_seed();
    for (int i = 0; i < FAIL_SITES; i++) {
        if (found[i].at == NULL || (slow && test_random(&rng) % 4 != 0)) continue;
        places++;
        /* What happened once may not happen again: a worker sleeps in one run and not in another. */
        long failed = 0;
        for (int tries = 0; tries < 20 && failed == 0; tries++) failed = live_in_a_child(&found[i], 1, false);
        if (failed == 0) idle++;
        if (slow) continue;
        (void)live_in_a_child(&found[i], 1 + (found[i].called + 1) / 2, false);
        (void)live_in_a_child(&found[i], 1, true);
    }
    test_count("places that call the system, failed", (uint64_t)(places - idle));
    test_count("places that came once and not again", (uint64_t)idle);
    CHECK(slow || places - idle >= least);
    CHECK(idle <= 1 + places / 8);
}

TEST(every_place_that_works, .timeout = 600) {
    every_place(15);
}

TEST(every_place_that_reports, .timeout = 600) {
    if (under_valgrind() || under_qemu()) SKIP("reading the debug information takes too long here");
    reporting = true;
    every_place(15);
}

/* The n-th call, whatever it is: all of them in the long profile, some otherwise. */
static void every_call(bool for_ever) {
    begin();
    uint64_t rng = test_seed();
    long most = test_rounds(40, 100000), stride = shared->calls / most, n = 1, tours = 0, failed = 1;
    for (; failed > 0; n += 1 + (stride > 0 ? (long)(test_random(&rng) % (2 * (uint64_t)stride)) : 0), tours++)
        failed = live_in_a_child(NULL, n, for_ever);
    test_count("tours with a failure", (uint64_t)tours);
}

TEST(every_call_alone, .timeout = 3600) {
    every_call(false);
}

TEST(every_call_and_all_behind_it, .timeout = 3600) {
    every_call(true);
}
