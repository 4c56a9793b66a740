/* errors.c WORD - errors that the address sanitizer has to report in a fiber, and correct code that it must accept.
 *
 * heap, stack, freed, returned, leak: an error of that kind, after the fiber was parked and resumed.
 * channel, nursery, mutex: a call on an object that was freed.
 * receive, read, line: a buffer that was freed or is too small.
 * panic:  frames that are left without a return.
 * parked: memory that only parked fibers refer to when the program ends.
 */
#include <ccc/ccc.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 100, PARKED = 50, DEPTH = 50 };

static volatile char sink;

/* The report has to name the line that is marked with the error. */
__attribute__((noinline)) static void heap(void) {
    char *p = malloc(10);
    for (int i = 0; i < ROUNDS; i++) cc_yield();
    sink = p[10 + (p == NULL)]; /* error: heap */
    free(p);
}

__attribute__((noinline)) static void stack(void) {
    char buffer[16];
    volatile int end = sizeof buffer;
    memset(buffer, 1, sizeof buffer);
    for (int i = 0; i < ROUNDS; i++) cc_yield();
    sink = buffer[end]; /* error: stack */
}

__attribute__((noinline)) static void freed(void) {
    char *volatile p = malloc(10);
    free(p);
    cc_yield();
    sink = p[3]; /* error: freed */
}

static char *volatile kept;

__attribute__((noinline)) static void keep(void) {
    char buffer[16];
    memset(buffer, 1, sizeof buffer);
    kept = buffer;
}

__attribute__((noinline)) static void returned(void) {
    keep();
    cc_yield();
    sink = *kept; /* error: returned */
}

/* In calls of the library: the report names the line that calls it. */
__attribute__((noinline)) static void channel(void) {
    CCChan *ch = cc_chan_create(1, 1);
    cc_chan_free(ch);
    (void)cc_chan_send_try(ch, "", 1); /* error: channel */
}

__attribute__((noinline)) static void nursery(void) {
    CCNursery *n = cc_nursery_create(NULL);
    cc_nursery_free(n);
    cc_nursery_cancel(n); /* error: nursery */
}

__attribute__((noinline)) static void mutex(void) {
    CCMutex *m = calloc(1, sizeof *m);
    free(m);
    sink = (char)cc_mutex_lock(m); /* error: mutex */
}

__attribute__((noinline)) static void receive(void) {
    CCChan *ch = cc_chan_create(4, 1);
    void *volatile p = malloc(4);
    free(p);
    (void)cc_chan_send(ch, "abc", 4);
    (void)cc_chan_recv(ch, p, 4); /* error: receive */
}

__attribute__((noinline)) static void read_file(void) {
    int fd;
    size_t n;
    char *volatile p = malloc(2);
    if (cc_file_open(&fd, "/proc/self/exe", O_RDONLY, 0) != 0) abort();
    sink = (char)cc_file_read(fd, p, 64, 0, &n); /* error: read */
}

__attribute__((noinline)) static void line(void) {
    CCConn *a, *b;
    CCReader reader;
    char *text;
    size_t n;
    if (cc_socketpair(&a, &b) != 0 || cc_write(a, "word\n", 5, NULL) != 0) abort();
    cc_reader_init(&reader, b, 0);
    if (cc_reader_line(&reader, &text, &n) != 0) abort();
    cc_reader_free(&reader);
    sink = text[0]; /* error: line */
}

/* Several: a register or a dead word may hold the last. */
__attribute__((noinline)) static void leak(void) {
    for (int i = 0; i < ROUNDS; i++) {
        char *volatile p = malloc(77);
        p = NULL;
        (void)p;
        cc_yield();
    }
}

__attribute__((noinline)) static void descend(int depth) {
    char buffer[256];
    memset(buffer, depth, sizeof buffer);
    if (depth == 0) cc_panic("at the bottom");
    descend(depth - 1);
    sink = buffer[depth];
}

static void *panic(void *arg) {
    descend(DEPTH);
    return arg;
}

/* The same stacks again and again: a frame's red zones must not outlive it. */
static void panics(void) {
    for (int i = 0; i < ROUNDS; i++) {
        CCTask task;
        if (cc_spawn(&task, panic, NULL, NULL) != 0 || cc_task_join(&task, NULL) == 0) abort();
    }
}

static CCChan *started;

static void *park(void *never) {
    char *volatile p = malloc(100);
    char byte;
    (void)cc_chan_send(started, "", 1);
    (void)cc_chan_recv(never, &byte, 1);
    free(p);
    return NULL;
}

static void *run(void *arg) {
    static const struct {
        const char *word;
        void (*fn)(void);
    } errors[] = {
        {"heap", heap},       {"stack", stack},     {"freed", freed}, {"returned", returned},
        {"leak", leak},       {"panic", panics},    {"line", line},   {"read", read_file},
        {"channel", channel}, {"nursery", nursery}, {"mutex", mutex}, {"receive", receive},
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(arg, errors[i].word) == 0) errors[i].fn();
    return NULL;
}

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "parked") == 0) {
        static CCChan *never;
        char byte;
        started = cc_chan_create(1, 0);
        never = cc_chan_create(1, 0);
        for (int i = 0; i < PARKED; i++)
            if (cc_spawn(NULL, park, never, NULL) != 0 || cc_chan_recv(started, &byte, 1) != 0) return 1;
        return 0;
    }
    return cc_run(run, (void *)word, NULL);
}
