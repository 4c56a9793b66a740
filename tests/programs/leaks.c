/* leaks.c - CC_LEAK_REPORT=1 reports all unreachable fibers, and no others.
 *
 * Each case is a program whose fibers wait when it exits. Everything is set up by a fiber that has ended by then, so
 * that the only remaining addresses are those that the case leaves on purpose.
 */
#include "child.h"
#include "where.h"

#include "../unit/pprof.h"

#include "sched/idle.h"
#include "wait/blocked.h"

#include <ccc/ccc.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

/* ---- the report ---- */

/* Whether a fiber of that name is among those that can never continue. */
static bool claimed(const struct child *child, const char *name) {
    const char *at = strstr(child->output, " can never continue: nothing ");
    if (at == NULL) return false;
    char quoted[64];
    snprintf(quoted, sizeof quoted, "'%s' waits", name);
    size_t length = strlen(quoted);
    at = strchr(at, '\n');
    while (at != NULL && at[1] == ' ') {
        const char *end = strchr(++at, '\n');
        for (const char *p = at; p + length <= end; p++)
            if (memcmp(p, quoted, length) == 0) return true;
        at = end;
    }
    return false;
}

static void nap(long ms) {
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&ts, &ts) != 0) {
    }
}

struct program {
    CCTaskFn setup;
    void (*rest)(void); /* on the main thread, after it */
};

static void run_program(void *arg) {
    const struct program *p = arg;
    setenv("CC_LEAK_REPORT", "1", 1);
    CHECK_EQ(cc_run(p->setup, NULL, NULL), 0);
    if (p->rest != NULL) p->rest();
    while (!cc__sched_all_asleep()) nap(1);
}

static struct child child;

static void skip_where_nothing_is_looked_for(void) {
    if (UNDER_ASAN || UNDER_TSAN) SKIP("a sanitizer's memory is too large to scan");
    if (under_qemu()) SKIP("qemu has its own threads in the process");
    if (under_valgrind()) SKIP("valgrind's own memory contains the program's addresses, and its threads hardly sleep");
}

static void run(CCTaskFn setup, void (*rest)(void)) {
    skip_where_nothing_is_looked_for();
    run_child(&child, run_program, &(struct program){setup, rest});
    bool good = WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0 && said(&child, "ccc: leaks: ");
    if (!good) show_child(&child);
    CHECK(good);
}

static void check_claim(const char *name, bool expected) {
    bool good = claimed(&child, name) == expected && !said(&child, "not searched for");
    if (!good) {
        printf("'%s' should %sbe claimed\n", name, expected ? "" : "not ");
        show_child(&child);
    }
    CHECK(good);
}

static void claims_after(CCTaskFn setup, void (*rest)(void), const char *name) {
    run(setup, rest);
    /* A stale word is enough to hide a leak, and how many there are depends on the compiler: only the build that users
     * get must find it. */
#if !defined(NDEBUG) || defined(__clang__) || defined(CC_ARCH_UCONTEXT)
    if (!claimed(&child, name)) SKIP("this build leaves an address somewhere");
#endif
    check_claim(name, true);
}

static void claims(CCTaskFn setup, const char *name) {
    claims_after(setup, NULL, name);
}

static void does_not_claim(CCTaskFn setup, const char *name) {
    run(setup, NULL);
    check_claim(name, false);
}

/* ---- the pieces ---- */

static CCTask start(const char *name, CCTaskFn fn, void *arg) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, fn, arg, &(CCSpawnOptions){.name = name}), 0);
    return task;
}

static void leave(const char *name, CCTaskFn fn, void *arg) {
    CHECK_EQ(cc_spawn(NULL, fn, arg, &(CCSpawnOptions){.name = name}), 0);
}

static CCChan *channel(void) {
    CCChan *ch = cc_chan_create(sizeof(uint64_t), 1);
    CHECK(ch != NULL);
    return ch;
}

static void *receives(void *ch) {
    uint64_t v;
    (void)cc_chan_recv(ch, &v, sizeof v);
    return NULL;
}

/* Its channel is passed to a fiber that waits for it; only the fiber that gets the result still refers to it. */
static CCChan *lost_receiver(void) {
    CCChan *ch = channel();
    leave("lost", receives, ch);
    return ch;
}

static void *sleeps_with(void *arg) {
    void *volatile kept = arg;
    (void)cc_sleep_ms(1000 * 1000);
    return kept;
}

/* ---- what is claimed ---- */

static void *leaves_unreachable(void *unused) {
    (void)lost_receiver();
    return unused;
}

TEST(a_receiver_nobody_can_reach) {
    claims(leaves_unreachable, "lost");
    CHECK(said(&child, "only a cancellation can end the wait"));
}

static void write_trace(void) {
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK(null >= 0);
    CHECK_EQ(cc_record_write(null, CC_RECORD_GO), 0);
    close(null);
}

/* The recorder's rings contain the address of what it waits for, and so does a fiber that writes them to a file. */
TEST(a_receiver_that_was_recorded) {
    static const char *const levels[] = {"turns", "times", "stacks"};
    for (size_t i = 0; i < array_len(levels); i++) {
        CHECK_EQ(setenv("CC_RECORD_LEVEL", levels[i], 1), 0);
        claims_after(leaves_unreachable, NULL, "lost");
        claims_after(leaves_unreachable, write_trace, "lost");
    }
}

struct line {
    CCChan *mouth, *ear;
};

static void *talks(void *arg) {
    struct line line = *(struct line *)arg;
    free(arg);
    uint64_t v = 1;
    (void)cc_chan_recv(line.ear, &v, sizeof v);
    (void)cc_chan_send(line.mouth, &v, sizeof v);
    return NULL;
}

static struct line *line_of(CCChan *mouth, CCChan *ear) {
    struct line *line = malloc(sizeof *line);
    CHECK(line != NULL);
    *line = (struct line){mouth, ear};
    return line;
}

static void *two_that_know_each_other(void *unused) {
    CCChan *a = channel(), *b = channel();
    leave("ann", talks, line_of(a, b));
    leave("bob", talks, line_of(b, a));
    return unused;
}

TEST(a_cluster) {
    claims(two_that_know_each_other, "ann");
    check_claim("bob", true);
}

static void *joins(void *task) {
    CCTask copy = *(CCTask *)task;
    free(task);
    (void)cc_task_join(&copy, NULL);
    return NULL;
}

static void *one_that_is_joined(void *unused) {
    CCTask *task = malloc(sizeof *task);
    CHECK(task != NULL);
    *task = start("lost", receives, channel());
    leave("joiner", joins, task);
    return unused;
}

TEST(a_joiner) {
    claims(one_that_is_joined, "lost");
    check_claim("joiner", true);
}

static void *keeps_nursery(void *unused) {
    CC_NURSERY(n) {
        CHECK_EQ(cc_nursery_spawn_ex(n, NULL, receives, channel(), &(CCSpawnOptions){.name = "lost"}), 0);
    }
    return unused;
}

static void *nursery_with_one(void *unused) {
    leave("parent", keeps_nursery, NULL);
    return unused;
}

TEST(a_nursery) {
    claims(nursery_with_one, "lost");
    check_claim("parent", true);
}

static void *selects_two(void *unused) {
    uint64_t v;
    size_t chosen;
    CCCase cases[] = {CC_RECV(channel(), &v, NULL), CC_RECV(channel(), &v, NULL)};
    (void)cc_select(cases, 2, CC_FOREVER, &chosen);
    return unused;
}

static void *select_of_two(void *unused) {
    leave("chooser", selects_two, NULL);
    return unused;
}

TEST(a_select) {
    claims(select_of_two, "chooser");
}

/* ---- addresses that are somewhere ---- */

/* Written and never read, or read once: volatile, or the compiler would remove them. */
static CCChan *volatile global;

static void *in_a_global(void *unused) {
    global = lost_receiver();
    return unused;
}

TEST(not_with_a_global) {
    does_not_claim(in_a_global, "lost");
}

static void *volatile *volatile heap;

static void *in_the_heap(void *unused) {
    heap = malloc(3 * sizeof *heap);
    CHECK(heap != NULL);
    heap[2] = lost_receiver();
    return unused;
}

TEST(not_with_the_heap) {
    does_not_claim(in_the_heap, "lost");
}

static void *in_a_stack(void *unused) {
    leave("sleeper", sleeps_with, lost_receiver());
    return unused;
}

TEST(not_with_the_stack_of_another) {
    does_not_claim(in_a_stack, "lost");
}

/* The sleeper holds the address of a variable of the waiting fiber, and that variable holds the channel. */
struct holder {
    CCChan *ch;
};

static void *waits_at_its_own(void *unused) {
    struct holder holder = {channel()};
    leave("helper", sleeps_with, &holder);
    receives(holder.ch);
    return unused;
}

static void *in_its_own_stack(void *unused) {
    leave("lost", waits_at_its_own, NULL);
    return unused;
}

TEST(not_with_a_pointer_into_its_own_stack) {
    does_not_claim(in_its_own_stack, "lost");
}

static struct holder *volatile global_holder;

static void *shows_its_own(void *unused) {
    struct holder holder = {channel()};
    global_holder = &holder;
    receives(holder.ch);
    return unused;
}

static void *in_its_own_stack_by_a_global(void *unused) {
    leave("lost", shows_its_own, NULL);
    return unused;
}

TEST(not_with_a_global_that_points_into_its_own_stack) {
    does_not_claim(in_its_own_stack_by_a_global, "lost");
}

/* The same across two: the helper refers to a variable of the first, which refers to one of the second. */
static void *hands_on(void *context) {
    struct holder *const chain[] = {context};
    leave("helper", sleeps_with, (void *)(uintptr_t)chain);
    receives(channel());
    return NULL;
}

static void *waits_behind_another(void *unused) {
    struct holder holder = {channel()};
    leave("first", hands_on, &holder);
    receives(holder.ch);
    return unused;
}

static void *in_a_chain_of_stacks(void *unused) {
    leave("second", waits_behind_another, NULL);
    return unused;
}

TEST(not_with_a_chain_of_stacks) {
    does_not_claim(in_a_chain_of_stacks, "second");
}

/* Arguments that were copied into the fiber's block, of which another holds the address. */
struct large {
    CCChan *ch;
    char more[200];
};

static void *waits_with_arguments(void *arg) {
    struct large *large = arg;
    leave("helper", sleeps_with, large);
    return receives(large->ch);
}

static void *in_arguments(void *unused) {
    struct large large = {.ch = channel()};
    CHECK_EQ(cc_spawn(NULL, waits_with_arguments, &large, &(CCSpawnOptions){.name = "lost", .arg_size = sizeof large}),
             0);
    return unused;
}

TEST(not_with_its_arguments) {
    does_not_claim(in_arguments, "lost");
}

static CCTask kept_task;

static void *returns_it(void *unused) {
    (void)unused;
    return lost_receiver();
}

static void *in_a_result(void *unused) {
    kept_task = start("done", returns_it, NULL);
    return unused;
}

TEST(not_with_the_result_of_a_task) {
    does_not_claim(in_a_result, "lost");
}

static void *in_a_ring(void *unused) {
    CCChan *post = cc_chan_create(sizeof(CCChan *), 4), *ch = lost_receiver();
    CHECK_EQ(cc_chan_send(post, &ch, sizeof ch), 0);
    leave("postman", sleeps_with, post);
    return unused;
}

TEST(not_with_a_channel_that_carries_it) {
    does_not_claim(in_a_ring, "lost");
}

static void *offers(void *post) {
    CCChan *ch = lost_receiver();
    (void)cc_chan_send(post, &ch, sizeof ch);
    return NULL;
}

static void *in_a_sender(void *unused) {
    CCChan *post = cc_chan_create(sizeof(CCChan *), 0);
    leave("sender", offers, post);
    leave("postman", sleeps_with, post);
    return unused;
}

TEST(not_with_a_sender_that_offers_it) {
    does_not_claim(in_a_sender, "lost");
    check_claim("sender", false);
}

static void *volatile *volatile mapped;

static void *in_shared_memory(void *unused) {
    mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED);
    mapped[7] = lost_receiver();
    return unused;
}

TEST(not_with_shared_memory) {
    does_not_claim(in_shared_memory, "lost");
}

static void *in_sealed_memory(void *unused) {
    mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED);
    mapped[7] = lost_receiver();
    CHECK_EQ(mprotect((void *)(uintptr_t)mapped, 4096, PROT_READ), 0);
    return unused;
}

TEST(not_with_memory_that_cannot_be_written) {
    does_not_claim(in_sealed_memory, "lost");
}

static void *in_a_file(void *unused) {
    char name[] = "/dev/shm/ccc-leaks-XXXXXX";
    int fd = mkstemp(name);
    if (fd < 0) return unused; /* the case says so */
    CHECK_EQ(unlink(name), 0);
    CHECK_EQ(ftruncate(fd, 4096), 0);
    mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(mapped != MAP_FAILED);
    mapped[7] = lost_receiver();
    return unused;
}

TEST(not_with_a_file_in_memory) {
    if (access("/dev/shm", W_OK) != 0) SKIP("there is no /dev/shm");
    does_not_claim(in_a_file, "lost");
}

static _Thread_local CCChan *volatile thread_local_channel;
static CCChan *volatile handed_over;

static void keep_in_thread_local(void) {
    thread_local_channel = handed_over;
    handed_over = NULL;
}

static void *hand_over(void *unused) {
    handed_over = lost_receiver();
    return unused;
}

TEST(not_with_a_thread_local) {
    run(hand_over, keep_in_thread_local);
    check_claim("lost", false);
}

/* A worker's thread-local, which the next fiber there may read. */
static void *puts_into_thread_local(void *unused) {
    thread_local_channel = lost_receiver();
    return unused;
}

TEST(not_with_a_thread_local_of_a_worker) {
    does_not_claim(puts_into_thread_local, "lost");
}

static CCLocalKey key;

static void *keeps_local(void *unused) {
    CHECK_EQ(cc_local_set(key, lost_receiver()), 0);
    return sleeps_with(unused);
}

static void *in_a_local(void *unused) {
    CHECK_EQ(cc_local_key_create(&key, NULL), 0);
    leave("holder", keeps_local, NULL);
    return unused;
}

TEST(not_with_a_local_value) {
    does_not_claim(in_a_local, "lost");
}

static void *receives_for_a_while(void *ch) {
    uint64_t v;
    (void)cc_chan_recv_until(ch, &v, sizeof v, cc_after_ms(1000 * 1000));
    return NULL;
}

static void *with_a_deadline(void *unused) {
    leave("lost", receives_for_a_while, channel());
    return unused;
}

TEST(not_with_a_deadline) {
    does_not_claim(with_a_deadline, "lost");
}

static void *has_deadline_scope(void *ch) {
    CC_WITH_DEADLINE(cc_after_ms(1000 * 1000)) {
        receives(ch);
    }
    return NULL;
}

static void *in_a_deadline_scope(void *unused) {
    leave("lost", has_deadline_scope, channel());
    return unused;
}

TEST(not_in_a_scope_with_a_deadline) {
    does_not_claim(in_a_deadline_scope, "lost");
}

static void *selects_many(void *unused) {
    enum { MANY = 12 };
    uint64_t v;
    size_t chosen;
    CCCase cases[MANY];
    for (int i = 0; i < MANY; i++) {
        CCChan *ch = channel();
        if (i == MANY - 1) global = ch;
        cases[i] = (CCCase)CC_RECV(ch, &v, NULL);
    }
    (void)cc_select(cases, MANY, CC_FOREVER, &chosen);
    return unused;
}

static void *select_of_many(void *unused) {
    leave("chooser", selects_many, NULL);
    return unused;
}

TEST(not_with_the_last_arm_of_many) {
    does_not_claim(select_of_many, "chooser");
}

/* ---- addresses that only a register has ---- */

enum { REGISTERS = 6 };
static uintptr_t hidden[REGISTERS]; /* no address that the search would find */
static CCEvent never;

static void *hide_six(void *unused) {
    for (int i = 0; i < REGISTERS; i++) {
        CCChan *ch = channel();
        char name[8];
        snprintf(name, sizeof name, "r%d", i);
        leave(name, receives, ch);
        hidden[i] = ~(uintptr_t)ch;
    }
    return unused;
}

/* Keeps them across the call where the compiler likes: in callee-saved registers. */
static __attribute__((noinline)) void with_registers(void (*volatile call)(void)) {
    uintptr_t a = ~hidden[0], b = ~hidden[1], c = ~hidden[2], d = ~hidden[3], e = ~hidden[4], f = ~hidden[5];
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    call();
    __asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
}

static void check_six(void) {
    for (int i = 0; i < REGISTERS; i++) check_claim((char[]){'r', (char)('0' + i), '\0'}, false);
}

static void wait_for_never(void) {
    MAY_FAIL(cc_event_wait(&never));
}

static void *thread_with_registers(void *unused) {
    with_registers(wait_for_never);
    return unused;
}

static void wait_for_threads(unsigned n) {
    struct blocked_seen seen[8];
    while (cc__blocked_list(seen, 8) < n) nap(1);
}

static void start_thread(void *(*fn)(void *)) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, fn, NULL), 0);
    CHECK_EQ(pthread_detach(thread), 0);
    wait_for_threads(1);
}

static void start_thread_with_registers(void) {
    start_thread(thread_with_registers);
}

TEST(not_with_registers_of_a_thread_that_waits) {
    run(hide_six, start_thread_with_registers);
    check_six();
}

static void leave_now(void) {
    while (!cc__sched_all_asleep()) nap(1);
    exit(0);
}

static void leave_with_registers(void) {
    with_registers(leave_now);
}

TEST(not_with_registers_of_the_caller) {
    run(hide_six, leave_with_registers);
    check_six();
}

static void *exits_on_another_stack(void *unused) {
    with_registers(leave_now);
    return unused;
}

static void leave_hosted(void) {
    CCChan *volatile on_the_threads_stack = handed_over;
    handed_over = NULL;
    (void)cc_hosted_call(exits_on_another_stack, NULL, NULL, NULL);
    (void)on_the_threads_stack;
}

static void *hide_six_and_hand_over(void *unused) {
    hide_six(unused);
    return hand_over(unused);
}

TEST(not_from_a_hosted_call) {
    run(hide_six_and_hand_over, leave_hosted);
    check_six();
    check_claim("lost", false);
}

static void *thread_with_stack(void *unused) {
    CCChan *volatile ch = handed_over;
    handed_over = NULL;
    wait_for_never();
    (void)ch;
    return unused;
}

static void start_thread_with_stack(void) {
    start_thread(thread_with_stack);
}

TEST(not_with_the_stack_of_a_thread_that_waits) {
    run(hand_over, start_thread_with_stack);
    check_claim("lost", false);
}

/* ---- strangers ---- */

static atomic_int running;

static void *computes(void *unused) {
    for (;;) atomic_store(&running, 1);
    return unused;
}

static void start_stranger(void) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, computes, NULL), 0);
    while (!atomic_load(&running)) nap(1);
}

TEST(nothing_while_another_thread_runs) {
    run(leaves_unreachable, start_stranger);
    CHECK(!claimed(&child, "lost"));
    CHECK(said(&child, "not searched for: a fiber or another thread is running"));
}

/* ---- the profile ---- */

enum { MANY = 100, NAMED = 32 /* in a dump */ };

static void *many_lost(void *unused) {
    (void)unused;
    for (int i = 0; i < MANY; i++) (void)lost_receiver();
    return NULL;
}

static void write_profile(void) {
    static unsigned char data[1 << 16];
    int fd = memfd_create("profile", MFD_CLOEXEC), rc;
    while (!cc__sched_all_asleep()) nap(1);
    while ((rc = cc_profile_write(fd, CC_PROFILE_LEAKS)) == EBUSY) continue;
    CHECK_EQ(rc, 0);
    ssize_t size = pread(fd, data, sizeof data, 0);
    CHECK(size > 0 && (size_t)size < sizeof data);
    printf("%llu in the profile\n", (unsigned long long)pprof_sum(data, data + size, 0, false));
    close(fd);
}

/* It counts all of them, not only as many as a dump names. Stale words may hide some. */
TEST(the_profile_counts_all) {
    run(many_lost, write_profile);
    const char *at = strstr(child.output, " in the profile\n");
    CHECK(at != NULL);
    while (at > child.output && at[-1] >= '0' && at[-1] <= '9') at--;
    unsigned long counted = strtoul(at, NULL, 10);
    CHECK(counted > NAMED && counted <= MANY);
}
