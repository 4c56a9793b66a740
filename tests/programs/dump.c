/* dump.c - dumps of ten thousand fibers in a dozen shapes, as text and as JSON; of a process whose workers all spin; by
 * a call, by a signal. */
#include "../unit/ending.h"
#include "child.h"
#include "where.h"

#include <ccc/ccc.h>

#include <ctype.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

/* ---- just enough JSON to see that it is some ---- */

static const char *value(const char *at);

static const char *blank(const char *at) {
    while (at != NULL && isspace((unsigned char)*at)) at++;
    return at;
}

static const char *string(const char *at) {
    if (*at++ != '"') return NULL;
    for (; *at != '"'; at++) {
        if (*at == '\0' || (unsigned char)*at < ' ') return NULL;
        if (*at == '\\' && strchr("\"\\/bfnrtu", *++at) == NULL) return NULL;
    }
    return at + 1;
}

/* [a, b], {"k": v, ...} */
static const char *list(const char *at, char close, bool keys) {
    at = blank(at + 1);
    if (*at == close) return at + 1;
    for (;;) {
        if (keys) {
            at = blank(string(blank(at)));
            if (at == NULL || *at++ != ':') return NULL;
        }
        at = blank(value(at));
        if (at == NULL) return NULL;
        if (*at == close) return at + 1;
        if (*at++ != ',') return NULL;
    }
}

static const char *value(const char *at) {
    at = blank(at);
    if (at == NULL) return NULL;
    if (*at == '{') return list(at, '}', true);
    if (*at == '[') return list(at, ']', false);
    if (*at == '"') return string(at);
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0) return at + strlen(words[i]);
    char *end;
    (void)strtod(at, &end);
    return end != at ? end : NULL;
}

static long times(const char *text, const char *word) {
    long n = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word)) n++;
    return n;
}

/* ---- a dozen shapes ---- */

static CCChan *empty, *full;
static CCMutex mutex;
static CCSem sem;
static CCEvent event;
static CCWaitGroup group;
static CCRWLock rwlock, shared;
static CCBarrier barrier = CC_BARRIER_INIT(1000 * 1000);
static CCCond cond;
static CCMutex cond_mutex;
static CCTask server;
static CCNursery *nursery;

static void *receives(void *arg) {
    uint64_t v;
    (void)cc_chan_recv(empty, &v, sizeof v);
    return arg;
}
static void *sends(void *arg) {
    uint64_t v = 1;
    (void)cc_chan_send(full, &v, sizeof v);
    return arg;
}
static void *locks(void *arg) {
    if (cc_mutex_lock(&mutex) == 0) cc_mutex_unlock(&mutex);
    return arg;
}
static void *acquires(void *arg) {
    MAY_FAIL(cc_sem_acquire(&sem));
    return arg;
}
static void *listens(void *arg) {
    MAY_FAIL(cc_event_wait(&event));
    return arg;
}
static void *waits_for_all(void *arg) {
    MAY_FAIL(cc_wait_group_wait(&group));
    return arg;
}
static void *reads(void *arg) {
    if (cc_rwlock_read_lock(&rwlock) == 0) cc_rwlock_read_unlock(&rwlock);
    return arg;
}
static void *writes(void *arg) {
    if (cc_rwlock_write_lock(&shared) == 0) cc_rwlock_write_unlock(&shared);
    return arg;
}
static void *arrives(void *arg) {
    MAY_FAIL(cc_barrier_wait(&barrier));
    return arg;
}
static void *expects(void *arg) {
    if (cc_mutex_lock(&cond_mutex) == 0) {
        MAY_FAIL(cc_cond_wait(&cond, &cond_mutex));
        cc_mutex_unlock(&cond_mutex);
    }
    return arg;
}
static void *sleeps(void *arg) {
    (void)cc_sleep_ms(1000 * 1000);
    return arg;
}
static void *sleeps_forever(void *arg) {
    (void)cc_sleep_until(CC_FOREVER);
    return arg;
}
static void *joins(void *arg) {
    CCTask copy;
    if (cc_task_dup(&server, &copy) == 0) (void)cc_task_join(&copy, NULL);
    return arg;
}
static void *selects(void *arg) {
    uint64_t v, w = 1;
    size_t chosen;
    CCCase cases[] = {CC_RECV(empty, &v, NULL), CC_SEND(full, &w, NULL)};
    (void)cc_select(cases, 2, CC_FOREVER, &chosen);
    return arg;
}
static void *selects_locks(void *arg) {
    size_t chosen;
    CCCase cases[] = {CC_ACQUIRE_CASE(&sem), CC_EVENT_CASE(&event)};
    (void)cc_select(cases, 2, CC_FOREVER, &chosen);
    return arg;
}
static void *selects_in_time(void *arg) {
    uint64_t v;
    size_t chosen;
    CCCase cases[] = {CC_RECV(empty, &v, NULL), CC_AFTER_MS(1000 * 1000), CC_CANCEL()};
    (void)cc_select(cases, 3, CC_FOREVER, &chosen);
    return arg;
}
static void *selects_one(void *arg) {
    uint64_t v;
    size_t chosen;
    CCCase cases[] = {CC_RECV(empty, &v, NULL)};
    (void)cc_select(cases, 1, CC_FOREVER, &chosen);
    return arg;
}
static void *selects_time(void *arg) {
    uint64_t v;
    size_t chosen;
    CCCase cases[] = {CC_RECV((CCChan *)NULL, &v, NULL), CC_AFTER_MS(1000 * 1000)};
    (void)cc_select(cases, 2, CC_FOREVER, &chosen);
    return arg;
}
static void *selects_until(void *arg) {
    size_t chosen;
    (void)cc_select(NULL, 0, cc_after_ms(1000 * 1000), &chosen);
    return arg;
}
static void *selects_cancellation(void *arg) {
    size_t chosen;
    CCCase cases[] = {CC_CANCEL()};
    (void)cc_select(cases, 1, CC_FOREVER, &chosen);
    return arg;
}
static void *is_child(void *arg) {
    return receives(arg);
}

static void *selects_end(void *arg) {
    size_t chosen;
    CCCase cases[] = {CC_NURSERY_END_CASE(nursery)};
    (void)cc_select(cases, 1, CC_FOREVER, &chosen);
    return arg;
}

static const struct {
    const char *name, *reason, *says;
    CCTaskFn fn;
} shapes[] = {
    {"s-recv", "channel", "to receive from channel 'empty'", receives},
    {"s-send", "channel", "to send on channel 'full'", sends},
    {"s-lock", "mutex", "for mutex", locks},
    {"s-sem", "semaphore", "for semaphore", acquires},
    {"s-event", "event", "for event", listens},
    {"s-group", "wait group", "for wait group", waits_for_all},
    {"s-read", "rwlock", "for reader-writer lock", reads},
    {"s-write", "rwlock", ", held by 2 readers", writes},
    {"s-barrier", "barrier", " of 1000000 have arrived", arrives},
    {"s-cond", "condition", "for condition", expects},
    {"s-sleep", "sleep", "for a point in time", sleeps},
    {"s-forever", "sleep", "for a cancellation: it sleeps without a deadline", sleeps_forever},
    {"s-join", "join", "for the end of fiber", joins},
    {"s-select", "select", "for the first of 2 cases: receive from channel 'empty'", selects},
    {"s-permit", "select", "for the first of 2 cases: a permit of semaphore 0x", selects_locks},
    {"s-timed", "select", "for the first of 3 cases: receive from channel 'empty'", selects_in_time},
    {"s-one", "select", "for the first of 1 case: receive from channel 'empty'", selects_one},
    {"s-time", "select", "for a point in time: nothing else can end its select of 2 cases", selects_time},
    {"s-until", "select", "for a point in time, in a select without cases", selects_until},
    {"s-cancel", "select", "for a cancellation: nothing else can end its select of 1 case", selects_cancellation},
    {"s-child", "channel", "to receive from channel 'empty'", is_child},
    {"s-end", "select", " of nursery 'the family'", selects_end}, /* its child is counted by then */
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static CCChan *named_channel(const char *name, size_t capacity) {
    CCChan *ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = 8, .capacity = capacity, .name = name});
    CHECK(ch != NULL);
    return ch;
}

/* All fibers are parked when the workers' count of parks stays at the right number. */
static void await_parked(uint64_t fibers) {
    for (;;) {
        CCStats stats;
        CHECK_EQ(cc_stats(&stats, sizeof stats), 0);
        uint64_t parked = 0;
        for (unsigned i = 0; i < CC_STATS_REASONS; i++) parked += stats.parks_by[i];
        if (parked >= fibers) return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static long each_shape;

static void ten_thousand(void *unused) {
    (void)unused;
    uint64_t v = 0;
    empty = named_channel("empty", 4);
    full = named_channel("full", 1);
    CHECK_EQ(cc_chan_send(full, &v, sizeof v), 0);
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    CHECK_EQ(cc_rwlock_write_lock(&rwlock), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_rwlock_read_lock(&shared), 0);
    CHECK_EQ(cc_wait_group_add(&group, 1), 0);
    nursery = cc_nursery_create_ex(&(CCNurseryConfig){.root = true, .name = "the family"});
    CHECK(nursery != NULL);
    CHECK_EQ(cc_spawn(&server, sleeps, NULL, &(CCSpawnOptions){.name = "server"}), 0);
    for (long i = 0; i < each_shape; i++) {
        for (int k = 0; k < SHAPES; k++) {
            CCSpawnOptions options = {.name = shapes[k].name};
            CHECK_EQ(shapes[k].fn == is_child ? cc_nursery_spawn_ex(nursery, NULL, shapes[k].fn, NULL, &options)
                                              : cc_spawn(NULL, shapes[k].fn, NULL, &options),
                     0);
        }
    }
    await_parked((uint64_t)each_shape * SHAPES + 1);
    CHECK_EQ(cc_dump_json(stdout), 0);
    CHECK_EQ(cc_dump(stderr), 0);
    _exit(0);
}

/* Standard output and standard error of a child, whole. */
static char *slurp(int fd) {
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    CHECK(text != NULL && pread(fd, text, (size_t)size, 0) == size);
    text[size] = '\0';
    return text;
}

TEST(ten_thousand_fibers_in_a_dozen_shapes, .timeout = 120) {
    each_shape = test_scale(834);
    int json_fd = memfd_create("json", 0), text_fd = memfd_create("text", 0);
    CHECK(json_fd >= 0 && text_fd >= 0);
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(dup2(json_fd, STDOUT_FILENO) >= 0 && dup2(text_fd, STDERR_FILENO) >= 0);
        ten_thousand(NULL);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    char *json = slurp(json_fd), *text = slurp(text_fd);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) printf("%s\n", text);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);

    const char *end = blank(value(json));
    CHECK(end != NULL && *end == '\0');
    CHECK_EQ(times(json, "\"state\":\"PARKED\""), each_shape * SHAPES + 1);
    CHECK(strstr(json, "\"fibers_left_out\":0") != NULL);
    for (int k = 0; k < SHAPES; k++) {
        char name[64], reason[96];
        snprintf(name, sizeof name, "\"name\":\"%s\"", shapes[k].name);
        CHECK_EQ(times(json, name), each_shape);
        snprintf(reason, sizeof reason, "\"reason\":\"%s\"", shapes[k].reason);
        CHECK(times(json, reason) >= each_shape);
        CHECK(strstr(text, shapes[k].says) != NULL);
        CHECK(strstr(text, shapes[k].name) != NULL);
    }
    CHECK(strstr(text, "; a point in time; a cancellation") != NULL); /* of s-timed */
    CHECK(strstr(json, "the family") != NULL && strstr(text, "nursery 'the family'") != NULL);
    CHECK(strstr(text, "ccc: end of dump") != NULL);
    /* Bounded: groups are shown once, not each fiber. */
    if (each_shape > 8) CHECK(times(text, "more like them") >= SHAPES);
    CHECK(strlen(text) < 64 * 1024);
#if defined(__x86_64__) && !defined(CC_ARCH_UCONTEXT)
    if (!under_qemu() && !under_valgrind()) CHECK(strstr(json, "\"function\":\"receives\"") != NULL);
#endif
    free(json);
    free(text);
}

/* ---- all workers spin ---- */

static atomic_int spinning;

static void *spin_inside(void *arg) {
    atomic_fetch_add(&spinning, 1);
    for (volatile int forever = 1; forever;) {
    }
    return arg;
}

static void all_spin(void *unused) {
    (void)unused;
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2, .max_workers = 2}), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_spawn(NULL, spin_inside, NULL, &(CCSpawnOptions){.name = "spinner"}), 0);
    while (atomic_load(&spinning) < 2) sched_yield();
    CHECK_EQ(cc_spawn(NULL, receives, NULL, &(CCSpawnOptions){.name = "behind"}), 0);
    CHECK_EQ(cc_dump(stderr), 0);
    _exit(0);
}

TEST(of_a_process_whose_workers_all_spin, .timeout = 60) {
    static struct child child;
    run_child(&child, all_spin, NULL);
    show_child(&child);
    CHECK(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0);
    CHECK(said(&child, "'spinner' runs on worker 0") && said(&child, "'spinner' runs on worker 1"));
    CHECK(said(&child, "has not run yet"));
    CHECK(said(&child, "spin_inside"));
}

/* ---- by a signal ---- */

/* The dump is made by another thread: until its last line is there. */
static void await_dump(void) {
    static char text[32768];
    do {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        ssize_t n = pread(STDERR_FILENO, text, sizeof text - 1, 0);
        CHECK(n >= 0);
        text[n] = '\0';
    } while (strstr(text, "ccc: end of dump") == NULL);
}

static void park_one_and_raise(const char *variable, const char *setting, int signal) {
    if (variable != NULL) setenv(variable, setting, 1);
    empty = named_channel("empty", 4);
    CHECK_EQ(cc_spawn(NULL, receives, NULL, &(CCSpawnOptions){.name = "reader"}), 0);
    await_parked(1);
    CHECK_EQ(raise(signal), 0);
}

static void quit_dumps(void *unused) {
    (void)unused;
    park_one_and_raise(NULL, NULL, SIGQUIT);
    await_dump();
    end_by_cancelling();
}

static void usr1_dumps(void *unused) {
    (void)unused;
    park_one_and_raise("CC_DUMP_SIGNAL", "USR1", SIGUSR1);
    await_dump();
    end_by_cancelling();
}

static void quit_quits(void *unused) {
    (void)unused;
    park_one_and_raise("CC_DUMP_SIGNAL", "0", SIGQUIT);
}

static volatile sig_atomic_t own_quits;
static void own_handler(int signal) {
    (void)signal;
    own_quits++;
}

static void own_handler_stays(void *unused) {
    (void)unused;
    CHECK(signal(SIGQUIT, own_handler) != SIG_ERR);
    park_one_and_raise(NULL, NULL, SIGQUIT);
    CHECK_EQ(own_quits, 1);
}

/* A handler that was installed after the runtime's passes signals on to it; also when the runtime has stopped, or
 * started again. */
static struct sigaction under;

static void pass_on(int sig) {
    under.sa_handler(sig);
}

static void restart_under_a_handler(void *again) {
    struct sigaction action = {.sa_handler = pass_on};
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(sigaction(SIGQUIT, &action, &under), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    if (again == NULL) {
        raise(SIGQUIT);
        return;
    }
    park_one_and_raise(NULL, NULL, SIGQUIT);
    await_dump();
    end_by_cancelling();
}

TEST(a_signal_that_is_passed_on_has_its_effect, .timeout = 60) {
    static struct child child;
    run_child(&child, restart_under_a_handler, NULL);
    show_child(&child);
    CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGQUIT);
    run_child(&child, restart_under_a_handler, &child);
    show_child(&child);
    CHECK(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0 && said(&child, "ccc: end of dump"));
}

TEST(a_signal_asks_for_one, .timeout = 60) {
    static struct child child;
    run_child(&child, quit_dumps, NULL);
    show_child(&child);
    CHECK(WIFEXITED(child.status) && said(&child, "'reader'") && said(&child, "ccc: end of dump"));
    run_child(&child, usr1_dumps, NULL);
    show_child(&child);
    CHECK(WIFEXITED(child.status) && said(&child, "'reader'") && said(&child, "ccc: end of dump"));
    run_child(&child, quit_quits, NULL);
    CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGQUIT && !said(&child, "ccc: dump"));
    run_child(&child, own_handler_stays, NULL);
    show_child(&child);
    CHECK(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0 && !said(&child, "end of dump"));
}

/* ---- misuse ---- */

TEST(refuses_what_it_cannot_do) {
    CHECK_EQ(cc_dump(NULL), EINVAL);
    CHECK_EQ(cc_dump_json(NULL), EINVAL);
    CHECK_EQ(cc_dump(stdout), ESRCH);          /* the runtime does not run */
    CHECK_EQ(cc_run(receives, NULL, NULL), 0); /* no channel: EINVAL inside, and it ends */
    FILE *full_disk = fopen("/dev/full", "we");
    CHECK(full_disk != NULL);
    CHECK_EQ(cc_dump(full_disk), EIO);
    fclose(full_disk);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(cc_dump(stdout), ESRCH);
}

/* From a fiber, which sees itself. */
static void *dumps_itself(void *file) {
    CHECK_EQ(cc_dump(file), 0);
    return NULL;
}

TEST(from_a_fiber) {
    FILE *file = tmpfile();
    CCTask task;
    CHECK(file != NULL);
    CHECK_EQ(cc_spawn(&task, dumps_itself, file,
                      &(CCSpawnOptions){.name = "narcissus", .stack_size = CC_STACK_SIZE_MIN * 4}),
             0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    char text[4096] = "";
    rewind(file);
    CHECK(fread(text, 1, sizeof text - 1, file) > 0);
    CHECK(strstr(text, "'narcissus' runs on worker") != NULL);
    fclose(file);
}
