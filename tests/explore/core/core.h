/* core.h - the explorer's own parts.
 *
 *   threads.c   virtual threads: which run, which are blocked, the clock, futexes
 *   memory.c    what a load may return: recent stores of each location, vector clocks
 *   races.c     plain accesses: writes, races, uses after free
 *   choice.c    the strategies: which thread next, which value: DFS, random, PCT, replay
 *   state.c     the memory of the explored code: saved once, restored before each run
 *   search.c    one scenario: runs, searches, reports
 *   main.c      the command line, loading
 */
#ifndef EXPLORE_CORE_H
#define EXPLORE_CORE_H

#include "explore.h"

#include "arch/context.h"

#include <stdio.h>

enum { THREADS_MAX = 8, TLS_MAX = 256 };

/* For each thread how much of it is known. */
struct clock {
    uint32_t at[THREADS_MAX];
};

static inline void clock_join(struct clock *to, const struct clock *from) {
    for (int i = 0; i < THREADS_MAX; i++)
        if (from->at[i] > to->at[i]) to->at[i] = from->at[i];
}

enum thread_state { THREAD_FREE, THREAD_READY, THREAD_BLOCKED, THREAD_JOINING, THREAD_ENDED };

struct vthread {
    struct context context;
    enum thread_state state;
    bool daemon; /* may sleep for ever when the others have ended */
    bool spun;   /* waits for another thread to change something */
    bool moved;  /* its last place to switch was a step that others see */
    void *(*fn)(void *);
    void (*body)(void);
    void *arg;
    const volatile void *futex;
    uint64_t until; /* while blocked */
    int joins;
    void *self; /* the explored code's own pointer */
    int error;  /* errno */
    uint32_t priority;
    struct clock ordered; /* what happened before, for races */
    struct clock seen;    /* what must be visible to it: at least that */
    char tls[TLS_MAX];
};

enum { STACK_SIZE = 128 * 1024 };

/* ---- threads.c ---- */

extern struct vthread threads[THREADS_MAX];
extern int current;        /* the thread that runs; -1: the explorer */
extern uint64_t clock_now; /* ns */
extern uint64_t steps;     /* of this run */
extern bool exploring;     /* false: set-up, nothing is chosen */
extern bool no_timer;
extern struct ex_offer offer;

char *threads_stack(int thread);
int threads_add(void (*body)(void), bool daemon);
/* Runs until no thread can run, and in a run all that are no daemons have ended. False: a failure. */
bool threads_run(void);
/* Before a step that may matter to others. NULL: no location, it does. */
void threads_point(const volatile void *addr, bool writes);
void threads_forget(void);
bool threads_left_frame(const volatile void *addr);
/* The stack of another OS thread. */
bool threads_foreign_frame(const volatile void *addr);
extern char failure[1024];

/* ---- choice.c ---- */

enum strategy { BY_DEFAULT, BY_LEARNING, BY_DFS, BY_RANDOM, BY_PCT, BY_REPLAY };
enum memory_mode { MODE_SC, MODE_TSO, MODE_WEAK };

struct settings {
    enum strategy strategy;
    enum memory_mode mode;
    int preemptions; /* DFS: how many a run may have */
    int stale;       /* DFS: how many old values a run may read */
    int depth;       /* PCT */
    bool races;
    bool symmetric; /* without membarrier */
    uint64_t seed;
};
extern struct settings settings;

/* One choice that was not the default: at this step. kind: t a thread that is preempted, b one that is blocked, v a
 * value. */
struct deviation {
    uint64_t step;
    char kind;
    int value;
};
enum { DEVIATIONS_MAX = 4096 };
extern struct deviation deviations[DEVIATIONS_MAX];
extern unsigned deviation_count;
extern struct deviation replay[DEVIATIONS_MAX];
extern unsigned replay_count;

void choice_begin(void);
/* DFS: false, all have been tried. */
bool choice_next(void);
void choice_restart(void); /* DFS: from the beginning */
/* kind as above; candidates[0] is the default. */
int choose_thread(char kind, const int *candidates, int n);
int choose_value(int n);
/* PCT: the thread was preempted in favour of others for spinning. */
void choice_lower(int thread);
void choice_set_length(uint64_t length); /* steps of a typical run */

/* ---- memory.c ---- */

void memory_begin(void);
bool memory_contended(const volatile void *addr);
extern bool memory_learning; /* a location turned out to be contended that was not known to be */
void memory_freed(const void *from, size_t size);
void memory_forget(void);
extern bool memory_barrier_asked; /* the scenario's set-up has asked whether there is a membarrier */

/* ---- races.c ---- */

void races_begin(void);
void races_freed(const void *from, size_t size, const void *where);
/* Where that is in the source. */
const char *races_where(const void *address);

/* ---- state.c ---- */

void state_open(void *segment, size_t size);
void state_forget(void); /* a new scenario: as after loading */
void state_save(void);
void state_restore(void);
void state_dirty(const volatile void *addr, size_t size);
bool state_freed(const volatile void *addr);

/* ---- search.c ---- */

/* The options of the command line. */
struct wishes {
    int dfs; /* preemptions; -1: no */
    uint64_t random, pct, max;
    double seconds; /* for each search */
    bool all, list, quiet, show;
    const char *replay;
};
extern struct wishes want;
extern const struct scenario *scenario; /* the one that is looked at */
extern const char *library, *program;   /* for the commands that are printed */
extern const char *const mode_names[];
extern uint64_t total_runs;

double seconds(void);
void search_prepare(const struct scenario *s);
/* True: it succeeded. */
bool search_run_once(void);
/* Runs all that was selected. False: a failure, which was reported. */
bool search_scenario(const struct scenario *s);
void report_command(FILE *to); /* that replays the last run */
void report_lines(void);       /* its last steps */

struct line {
    uint64_t step;
    int thread;
    const char *what, *at;
    uint64_t value;
    const volatile void *addr;
};
enum { LINES = 48 };
extern struct line lines[LINES];
extern uint64_t line_count;

static inline void note(const char *what, const char *at, const volatile void *addr, uint64_t value) {
    lines[line_count++ % LINES] = (struct line){steps, current, what, at, value, addr};
}

#endif
