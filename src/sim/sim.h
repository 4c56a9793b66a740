/* sim.h - deterministic simulation: the program runs as if on one CPU, with a simulated clock, in an order that is
 * drawn from a seed. The same seed gives the same run (docs/simulation.md; why: docs/decisions/015-simulation.md).
 *
 * There is one worker. The OS thread that uses the library (below: the program) and that worker take turns. All ready
 * fibers, and the program, are in one set, from which the next is drawn (next.c).
 *
 *   the program                                the worker
 *   runs                                       waits for `turn`
 *   waits, or switches at a point              draws: a fiber, runs it until it parks, yields or ends
 *   turn = WORLD -------------------------->   draws: a fiber ...
 *   waits for `turn`                           nothing is ready: the clock advances to the next deadline
 *   runs  <--------------------------------    draws: the program; turn = PROGRAM
 *
 * SIM-1  At most one of the two runs: `turn` says which.
 * SIM-2  Every decision comes from the seed: the random numbers, and a clock that advances only here and when the
 *        program reads it. Addresses, real time and other threads have no influence.
 * SIM-3  Every turn is drawn on the worker's own stack: its poll_at stays 0, so that a fiber that stops does not choose
 *        its successor and no joiner runs its task (sched/next.h). The slot, and the order in which fibers were woken,
 *        have no effect.
 * SIM-4  Every call of the library that can observe a step of another thread is a point: there the running fiber may
 *        have to yield. A point is outside of all internal locks, and has no effect unless the fiber is RUNNING and
 *        holds no pthread mutex, or the caller is the program.
 * SIM-5  Off means free. Rare paths check whether a simulation is on; frequent ones have a branch to a slow path in any
 *        case, which a simulation makes them take: spawns and wakes see a searching worker, channels and selects have
 *        their traced form, a mutex is expected to have a value that it never has (cc__sim_zero).
 */
#ifndef CC_SIM_SIM_H
#define CC_SIM_SIM_H

#include "sched/upcalls.h"

#include <ccc/cc_net.h>
#include <ccc/cc_sim.h>

extern struct sim_look {
    _Alignas(CC_LINE) _Atomic uint32_t on;
    _Atomic uint32_t zero, one; /* 0 and 1; in a simulation a value that no lock's word ever has */
} cc__sim_look;

CC_INLINE bool cc__sim_on(void) {
    return unlikely(cc__get(&cc__sim_look.on) != 0);
}

/* The expected word of a lock that is free: in a simulation nothing matches, and the slow path has the point. */
CC_INLINE uint32_t cc__sim_zero(void) {
    return cc__get(&cc__sim_look.zero);
}

/* The same for one that is held and has no waiters. */
CC_INLINE uint32_t cc__sim_one(void) {
    return cc__get(&cc__sim_look.one);
}

/* Others may run first. Any context; may switch. */
CC_INLINE void cc__sim_point(void) {
    if (cc__sim_on()) cc__upcall_sim_point();
}

/* Around code that must not switch: a fiber that has ended notifies its nursery, with its outcome stored where its
 * context would be saved. Nothing in between parks. */
CC_COLD void cc__sim_mute_slow(bool on);
CC_INLINE void cc__sim_mute(bool on) {
    if (cc__sim_on()) cc__sim_mute_slow(on);
}

/* The start of a sequence of random numbers; never 0. otherwise: used when nothing is simulated. */
uint64_t cc__sim_entropy(uint64_t otherwise);

/* --- hosts, for net/, file/ and rt/; all but the first two only in a simulation --- */

/* The addresses of a host, and how long the lookup takes: 0 or an errno value, after that delay. kind: as in
 * CCResolveHints. */
int cc__sim_resolve(const char *host, uint16_t port, int kind, CCAddr *list, size_t *count, uint64_t *delay);
/* How long a sync of a simulated file takes. */
uint64_t cc__sim_sync_delay(void);

/* A host, and which of its incarnations: a crash ends one. */
struct sim_place {
    uint32_t host, incarnation;
};
/* The caller's host. */
uint32_t cc__sim_host_self(void);
/* The fiber has the next turn; NULL: the program. */
void cc__sim_turn(const struct fiber *f);
/* The fiber was started by the one that had the last turn, unless it is the first of a host. False: its host has
 * crashed since. */
bool cc__sim_spawned(const struct fiber *f);
/* The fiber is the first of a host: it is there before it has run. */
void cc__sim_place(const struct fiber *f, struct sim_place at);
/* Moves the caller there. 0 or ECANCELED: the host has crashed since. */
int cc__sim_move(struct sim_place to);
/* Fills in the numbers of the records of fibers on that host, up to max, and returns how many there are. */
uint32_t cc__sim_on_host(uint32_t host, uint32_t *slots, uint32_t max);

/* As the calls of cc_sim.h. */
int cc__sim_host(const char *name, uint32_t *host);
bool cc__sim_host_exists(uint32_t host);
bool cc__sim_host_is_up(uint32_t host);
int cc__sim_host_start(uint32_t host, struct sim_place *place);
int cc__sim_host_crash(uint32_t host);
/* Until a time; UINT64_MAX: for ever; 0: not any more. */
int cc__sim_cut(uint32_t a, uint32_t b, uint64_t until);
void cc__sim_net_get(CCSimNet *net);
int cc__sim_net_set(const CCSimNet *net);
void cc__sim_stats(CCSimStats *stats);

/* --- for rt --- */

/* Turns simulation on, with this seed: simulated time, and points; `line` is written if the program fails. Without a
 * runtime, or before it starts. Seed 0: turns it off. */
void cc__sim_set(uint64_t seed, const char *line);
/* 0: nothing is simulated. Any thread. */
uint64_t cc__sim_seed(void);
/* Around the start and the end of a simulated runtime. False: no memory. */
bool cc__sim_open(void);
void cc__sim_close(void);
/* A forked child has no worker. */
void cc__sim_forget(void);

/* --- between the files of this room --- */

enum sim_turn { TURN_PROGRAM, TURN_WORLD };

/* The OS thread, while the worker runs. */
struct sim_program {
    bool waits; /* otherwise it is ready */
    _Atomic uint32_t *word;
    uint32_t seen;
    uint64_t until;
};

struct sim {
    uint64_t seed, starts; /* starts: of the runtime with this seed */
    uint64_t random;
    uint32_t often;        /* a point switches once in this many times */
    uint32_t shuffle;      /* 0: draws are uniform; otherwise ranks decide, and change once in this many draws */
    uint64_t ranks;        /* identifies the present ranks */
    _Atomic uint32_t turn; /* futex; enum sim_turn */
    bool open;             /* there is a worker */
    bool muted;            /* points do nothing */
    unsigned hooks;        /* hooks of islands in progress, each in the one before; all other threads wait */
    pthread_t thread;      /* the program's, once known; the same in a forked child */
    bool thread_known;
    struct sim_program program;
};
extern struct sim cc__sim;

/* A number below n. */
uint32_t cc__sim_draw(uint32_t n);
/* The worker lets the program run, and waits for its turn. first: it only waits. */
void cc__sim_let_program(bool first);
/* Begins the random sequence of a start. */
void cc__sim_reseed(void);
/* Resets the simulated operating system, for that seed; 0: there is none. */
void cc__sys_set(uint64_t seed);

#endif
