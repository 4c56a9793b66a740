/* trace.c - the output of each category of CC_TRACE, and of each of the older variables. */
#include "trace/trace.h"
#include "child.h"
#include "parks.h"

#include <ccc/ccc.h>

#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>

static struct child child;

/* ---- a small program, on one worker ---- */

static CCChan *ch;

static void *receive(void *unused) {
    (void)unused;
    cc_fiber_set_name("receiver");
    for (int value; cc_chan_recv(ch, &value, sizeof value) == 0;) {
    }
    return NULL;
}

static void *fail(void *unused) {
    (void)unused;
    return cc_fail(EIO, "part %d is damaged", 7);
}

static void panic(void *unused) {
    (void)unused;
    cc_panic("a test");
}

static void stop(void *unused) {
    (void)unused;
    CHECK(cc_recover(NULL));
}

static void panic_and_stop(void *unused) {
    (void)unused;
    cc_defer(stop, NULL);
    cc_panic("another test");
}

/* A select that finds nothing, and one that waits. */
static void wait_for_nothing(void) {
    CCChan *silent = cc_chan_create(1, 0);
    char value;
    CCCase receive_one = CC_RECV(silent, &value, NULL);
    size_t chosen;
    CHECK_EQ(cc_select_try(&receive_one, 1, &chosen), EAGAIN);
    for (uint64_t before = test_parks("select"); test_parks("select") == before;) {
        CC_MATCH(CC_RECV(silent, &value, NULL), CC_AFTER_MS(1)) {
        case 1:
            break;
        default:
            CHECK(false);
        }
    }
    cc_chan_free(silent);
}

/* A file system without a page cache. */
static void read_proc(void) {
    char byte;
    size_t n;
    int fd;
    CHECK_EQ(cc_file_open(&fd, "/proc/self/status", O_RDONLY, 0), 0);
    CHECK_EQ(cc_file_read(fd, &byte, 1, 0, &n), 0);
    CHECK_EQ(cc_fd_close(fd), 0);
}

static void *body(void *unused) {
    (void)unused;
    int value = 1;
    CCTask task;
    cc_fiber_set_name("parent");
    ch = cc_chan_create(sizeof value, 0);
    CHECK_EQ(cc_spawn(&task, receive, NULL, &(CCSpawnOptions){.name = "recv"}), 0);
    cc_yield(); /* it waits */
    CHECK_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    cc_yield(); /* it waits again */
    do CHECK_EQ(cc_task_join_until(&task, NULL, cc_after_ms(1)), ETIMEDOUT);
    while (test_parks("join") == 0);
    CHECK_EQ(cc_chan_close(ch), 0);
    CHECK_EQ(cc_task_join_until(&task, NULL, cc_after_ms(100000)), 0);
    cc_chan_free(ch);
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.name = "brood"});
    CHECK_EQ(cc_nursery_spawn(n, fail, NULL), 0);
    CHECK_EQ(cc_nursery_wait(n), EIO);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(cc_try(panic, NULL, NULL), ENOTRECOVERABLE);
    CHECK_EQ(cc_try(panic_and_stop, NULL, NULL), 0);
    CHECK_EQ(cc_path_unlink("/none/none"), ENOENT);
    read_proc();
    wait_for_nothing();
    return NULL;
}

struct setting {
    const char *variable, *value;
};

static void run_program(void *arg) {
    const struct setting *s = arg;
    if (s->variable != NULL) CHECK_EQ(setenv(s->variable, s->value, 1), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(body, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static void run_with(const char *variable, const char *value) {
    run_child(&child, run_program, &(struct setting){variable, value});
    if (child.status != 0) show_child(&child);
    CHECK_EQ(child.status, 0);
}

static void check_said(const char *text) {
    if (said(&child, text)) return;
    show_child(&child);
    test_fail(__FILE__, __LINE__, "it did not say \"%s\"", text);
}

/* ---- the lines of each category; what a line of another one would contain ---- */

struct category {
    const char *name, *variable;
    const char *says[5];
    const char *mark;
};

static const struct category categories[] = {
    {"park",
     "CC_PARK_DEBUG",
     {" 'receiver': parks, waits for: channel\n", " 'parent': parks, waits for: join\n"},
     "parks, waits"},
    {"wake",
     "CC_DEBUG_WAKE",
     {" 'parent': wakes fiber ", ", which waits for: channel; by its object\n",
      ", which waits for: join; by its timer\n", ", which waits for: join; by its object\n", "worker 0: wakes fiber "},
     "wakes fiber"},
    {"join",
     "CC_DEBUG_JOIN",
     {" 'parent': join of fiber ", ": waits\n", ": woken by its timer\n", ": woken by its object\n",
      " has ended, wakes its joiners\n"},
     "join of"},
    {"inbox",
     "CC_DEBUG_INBOX",
     {": inbox of worker 0: fiber ", " comes, behind 0\n", "worker 0: inbox of worker 0: 1 taken\n"},
     "inbox of"},
    {"spawn", NULL, {" 'parent': spawns fiber ", " 'recv': ", ": spawns fiber 0."}, "spawns"},
    {"timer", NULL, {"timer of fiber ", ": armed, due in ", ": fires, "}, "timer of"},
    {"nursery",
     NULL,
     {" 'brood': a child fails with error 5: part 7 is damaged\n", ": is cancelled, error 5: part 7 is damaged\n",
      ": waits for 1 children\n", ": woken by its object\n"},
     "nursery 0x"},
    {"panic",
     NULL,
     {": panic begins: a test\n", ": panic ends its scope: a test\n", ": panic is stopped: another test\n",
      ": panic was stopped and leaves its scope: another test\n"},
     "panic "},
    {"file", NULL, {"'parent': file: unlink goes to the pool\n"}, "file: "},
    {"chan", "CC_CHAN_DEBUG", {"elements of 4 bytes, capacity 0\n", ": recv parks, "}, "elements of"},
};

enum { CHECKED = sizeof categories / sizeof *categories };

static void check_category(const struct category *c) {
    for (size_t i = 0; i < 5 && c->says[i] != NULL; i++) check_said(c->says[i]);
}

/* A category prints its own events and nothing else. */
TEST(each_alone, .timeout = 120) {
    for (size_t i = 0; i < CHECKED; i++) {
        const struct category *c = &categories[i];
        run_with("CC_TRACE", c->name);
        check_category(c);
        for (size_t k = 0; k < CHECKED; k++) {
            if (k == i || !said(&child, categories[k].mark)) continue;
            show_child(&child);
            test_fail(__FILE__, __LINE__, "%s says \"%s\"", c->name, categories[k].mark);
        }
    }
}

TEST(older_variables, .timeout = 120) {
    for (size_t i = 0; i < CHECKED; i++) {
        if (categories[i].variable == NULL) continue;
        run_with(categories[i].variable, "1");
        check_category(&categories[i]);
    }
}

TEST(all) {
    run_with("CC_TRACE", "all");
    for (size_t i = 0; i < CHECKED; i++) check_category(&categories[i]);
    check_said("ccc: timing: send: ");
}

TEST(a_list) {
    run_with("CC_TRACE", "park,,spawn,");
    check_category(&categories[0]);
    check_said("spawns fiber");
    CHECK(!said(&child, "wakes"));
    CHECK(!said(&child, "ignoring"));
}

/* Unknown names are reported, with the known ones; the others have effect. */
TEST(unknown_names) {
    run_with("CC_TRACE", "park,wakes,join");
    check_said("ccc: ignoring 'wakes' in CC_TRACE: the categories are park, wake, join, inbox, sysmon, chan, ");
    check_category(&categories[0]);
    check_category(&categories[2]);
}

TEST(off_means_silent) {
    run_with("CC_TRACE", "");
    if (child.output[0] != '\0') show_child(&child);
    CHECK_EQ(child.output[0], '\0');
}

/* ---- fibers that change workers ---- */

static _Atomic int started, enough;

static void *spin(void *unused) {
    (void)unused;
    started = 1;
    while (!enough) {
    }
    return NULL;
}

static void *set_enough(void *unused) {
    (void)unused;
    enough = 1;
    return NULL;
}

/* The second fiber is queued behind the first, which does not end before the second has run: it is stolen. */
static void *block_worker(void *unused) {
    (void)unused;
    CCTask last = cc_fiber_spawn_task(set_enough, NULL);
    CHECK_EQ(cc_task_detach(&last), 0);
    return spin(NULL);
}

static void run_two(void *arg) {
    (void)arg;
    CHECK_EQ(setenv("CC_TRACE", "steal", 1), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2}), 0);
    CHECK_EQ(cc_run(block_worker, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

TEST(steals) {
    run_child(&child, run_two, NULL);
    if (child.status != 0) show_child(&child);
    CHECK_EQ(child.status, 0);
    if (!said(&child, "shares 1 fibers with")) check_said("takes 1 fibers from the queue of worker ");
}

/* ---- what the scaling decides ---- */

/* The fiber spins until one behind it has run, and there is one worker: it takes a second one. */
static void run_overloaded(void *arg) {
    const struct setting *s = arg;
    CHECK_EQ(setenv(s->variable, s->value, 1), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 2}), 0);
    CHECK_EQ(cc_run(block_worker, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

TEST(sysmon, .timeout = 60) {
    static const struct setting settings[] = {{"CC_TRACE", "sysmon"}, {"CC_DEBUG_SYSMON", "1"}};
    for (int i = 0; i < 2; i++) {
        run_child(&child, run_overloaded, (void *)(uintptr_t)&settings[i]);
        if (child.status != 0) show_child(&child);
        CHECK_EQ(child.status, 0);
        check_said(": sysmon: ");
        check_said(": added 1, now 2\n");
    }
}

/* ---- timers that fire on other workers than those that made the fibers ---- */

static void *sleep_a_little(void *ms) {
    CHECK_EQ(cc_sleep_ms((uint64_t)(uintptr_t)ms), 0);
    return NULL;
}

static void run_sleepers(void *arg) {
    enum { SLEEPERS = 40, ROUNDS = 5 };
    (void)arg;
    CHECK_EQ(setenv("CC_TRACE", "timer", 1), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 4}), 0);
    for (uintptr_t round = 0; round < ROUNDS; round++) {
        CCTask tasks[SLEEPERS];
        for (uintptr_t i = 0; i < SLEEPERS; i++)
            CHECK_EQ(cc_spawn(&tasks[i], sleep_a_little, (void *)(1 + i % 3), NULL), 0);
        for (int i = 0; i < SLEEPERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    }
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* Of interest to the race detector. */
TEST(timers_of_other_workers, .timeout = 60) {
    run_child(&child, run_sleepers, NULL);
    if (child.status != 0) show_child(&child);
    CHECK_EQ(child.status, 0);
    check_said(": fires, ");
}

/* ---- the whole list ---- */

static const struct {
    const char *name, *text;
    uint32_t category;
} events[] = {
#define EVENT(id, category, name, text, parameters, arguments) {name, text, TRACE_##category},
#define EVENT_OF EVENT
#include "trace/events.def"
};

enum { EVENTS = sizeof events / sizeof *events };

/* Those that a small program cannot cause reliably. They have their own tests in unit/sched, unit/io. */
static const char *const rare[] = {"spawn_failed",  "park_if",        "steal",     "share",       "workers_kept",
                                   "worker_failed", "worker_retires", "file_ring", "file_no_ring"};

static bool is_rare(const char *name) {
    for (size_t i = 0; i < sizeof rare / sizeof *rare; i++)
        if (strcmp(name, rare[i]) == 0) return true;
    return false;
}

/* Whether the line ends with the text of the event, whatever stands for its arguments. */
static bool tells(const char *line, const char *text) {
    char pattern[400] = "ccc: *: ";
    size_t n = strlen(pattern);
    for (const char *c = text; *c != '\0'; c++) {
        pattern[n++] = *c == '%' ? '*' : *c;
        if (*c == '%') c += strspn(c + 1, "lz") + 1; /* %llu, %zu, %s */
    }
    pattern[n] = '\0';
    return fnmatch(pattern, line, 0) == 0;
}

static bool seen[EVENTS];

/* Every line is of an event in these categories; how many there are. */
static int check_lines(uint32_t allowed) {
    int lines = 0;
    for (char *line = child.output, *end; (end = strchr(line, '\n')) != NULL; line = end + 1, lines++) {
        *end = '\0';
        bool known = (allowed & TRACE_TIMING) != 0 && strncmp(line, "ccc: timing: ", 13) == 0;
        for (size_t i = 0; i < EVENTS; i++) {
            if ((events[i].category & allowed) == 0 || !tells(line, events[i].text)) continue;
            known = seen[i] = true;
        }
        if (!known) test_fail(__FILE__, __LINE__, "a line of no event of its category: %s", line);
    }
    return lines;
}

static void check_whole_category(const char *name, uint32_t category) {
    struct setting setting = {"CC_TRACE", name};
    void (*program)(void *) = category == TRACE_STEAL    ? run_two
                              : category == TRACE_SYSMON ? run_overloaded
                                                         : run_program;
    run_child(&child, program, &setting);
    if (child.status != 0) show_child(&child);
    CHECK_EQ(child.status, 0);
    if (check_lines(category | (category == TRACE_CHAN_VERBOSE ? TRACE_CHAN : 0)) == 0)
        test_fail(__FILE__, __LINE__, "CC_TRACE=%s says nothing", name);
}

/* Every category prints something in a real program, and only its own events; all events of the list occur. */
TEST(every_category, .timeout = 120) {
#define CATEGORY(id, name, meaning) check_whole_category(name, TRACE_##id);
#include "trace/events.def"
    for (size_t i = 0; i < EVENTS; i++)
        if (!seen[i] && !is_rare(events[i].name)) test_fail(__FILE__, __LINE__, "%s was not seen", events[i].name);
}
