/* harness.h - named test cases, each in a process of its own, reported as TAP.
 *
 * A test program is one file of cases; main() and the list of cases come from the harness:
 *
 *   TEST(adds) { CHECK_EQ(1 + 1, 2); }
 *   TEST_WORKERS(joins_all, .timeout = 120) { ... }          runs once for each number of workers
 *   TEST_DIES(names_the_rule, "STATE-2", .signal = SIGABRT) { ... }
 *
 * A case passes when its body returns and its process then exits with 0, so a leak or race that a
 * sanitizer reports at exit fails it. What a case prints is shown only when it fails.
 *
 *   program [TEXT]       runs the cases whose name contains TEXT
 *   TEST_WORKER_LIST     numbers of workers for TEST_WORKERS, "1,4"        default 1,2,4,8,16
 *   TEST_TIMEOUT         factor on every timeout                           default 1
 *   TEST_SLOWDOWN        divisor of every count that goes through test_scale
 *   TEST_SEED            makes the random cases repeat a run
 *   TEST_LONG            1: test_rounds takes its larger count
 *   TEST_STOP            1: the program ends with the first case that fails
 *   TEST_ON_TIMEOUT      command run on a case that hangs, before it is killed; its last argument is the
 *                        process id: "gdb -batch -ex 'thread apply all backtrace' -p"
 */
#ifndef CCC_TESTS_HARNESS_H
#define CCC_TESTS_HARNESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* One case. After the name, or the text that TEST_DIES expects, a macro takes `.workers`, `.signal` and `.timeout`. */
struct test_case {
    const char *name;
    int line; /* cases run in the order of the file, whatever the linker does to constructors */
    void (*run)(void);
    const char *dies; /* text that stderr must contain; NULL: the case must live */
    bool workers;     /* once for each number of workers, with CC_WORKERS set */
    int signal;       /* the signal that TEST_DIES expects; 0: any, or an exit status other than 0 */
    double timeout;   /* seconds; 0: TEST_TIMEOUT_DEFAULT */
    struct test_case *next;
};

#define TEST_TIMEOUT_DEFAULT 60.0

#define TEST(case_name, ...) TEST_DEFINE_(case_name, __VA_ARGS__)
#define TEST_WORKERS(case_name, ...) TEST_DEFINE_(case_name, .workers = true, __VA_ARGS__)
#define TEST_DIES(case_name, text, ...) TEST_DEFINE_(case_name, .dies = (text), __VA_ARGS__)

#define TEST_DEFINE_(case_name, ...)                                                                                   \
    static void case_##case_name(void);                                                                                \
    __attribute__((constructor)) static void add_case_##case_name(void) {                                              \
        static struct test_case record = {.name = #case_name, .line = __LINE__, .run = case_##case_name, __VA_ARGS__}; \
        test_add(&record);                                                                                             \
    }                                                                                                                  \
    static void case_##case_name(void)

/* Fails the case with the place and the expression. Any thread, any fiber; does not return on failure. */
#define CHECK(condition) ((condition) ? (void)0 : test_fail(__FILE__, __LINE__, "%s", #condition))

/* The same for two integers, which the message shows. */
#define CHECK_EQ(left, right)                                                                        \
    do {                                                                                             \
        long long left_ = (long long)(left), right_ = (long long)(right);                            \
        if (left_ != right_) {                                                                       \
            test_fail(__FILE__, __LINE__, "%s == %s (%lld and %lld)", #left, #right, left_, right_); \
        }                                                                                            \
    } while (0)

/* A call whose result does not matter to the case: for example a wait that may be cancelled at the end. */
#define MAY_FAIL(call) ((void)!(call))

/* Ends the case as skipped. Any thread. */
#define SKIP(reason) test_skip(reason)

/* Declares the case passed although its body will not return, as when it goes on to call exit(0). */
#define DONE() test_done()

/* n divided by TEST_SLOWDOWN, at least 1: for counts that qemu, valgrind or a sanitizer would stretch. */
long test_scale(long n);

/* Before signals come to the main thread: valgrind extends its stack when it is touched, but not for the frame of a
 * signal that comes just before. */
void test_touch_stack(void);

/* fork() for a child that goes on to use the library. The address sanitizer's locks are not fork-safe: a child hangs
 * if another thread was in its allocator. So under it this waits until all other threads sleep, 5 s at most. */
pid_t test_fork(void);

/* test_scale of the first count, or of the second when TEST_LONG is set. */
long test_rounds(long normal, long in_long_profile);

/* Adds n to what the case has done of something: "channel operations", "parks". The sums of the case are printed
 * behind its verdict, as "# counted N WHAT", for tools/check-long.sh to add up. Any thread. */
void test_count(const char *what, uint64_t n);

/* True in the long profile. */
bool test_long(void);

/* The seed of this case: the same for the same TEST_SEED, which the program prints first. */
uint64_t test_seed(void);

/* The next number of a random sequence; start with *state = test_seed(). */
uint64_t test_random(uint64_t *state);

/* The macros' other halves. */
void test_add(struct test_case *record);
__attribute__((noreturn, format(printf, 3, 4))) void test_fail(const char *file, int line, const char *format, ...);
__attribute__((noreturn)) void test_skip(const char *reason);
void test_done(void);

#endif
