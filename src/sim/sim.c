/* sim.c - what is simulated and with which seed; the points; and which of the program and the worker runs. */
#include "sim/sim.h"

#include "base/error.h"
#include "base/fatal.h"
#include "base/rng.h"
#include "os/clock.h"
#include "os/signals.h"
#include "sched/island.h"
#include "sched/park.h"
#include "trace/trace.h"

#include <unistd.h>

struct sim_look cc__sim_look = {.one = 1};
struct sim cc__sim;

enum { POINT_NS = 100 };

#define SIM_EPOCH (UINT64_C(1000000) * 1000000000) /* a million seconds: so that times hours ago are valid */
#define NEVER_FREE UINT32_C(0x5349)                /* no lock's word has this value */

/* ---- random numbers ---- */

/* Makes adjacent seeds start far apart. */
static uint64_t mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Called by fibers, the worker and the program, of which one runs: hidden from the race detector. */
CC_NOINLINE CC_NO_TSAN uint32_t cc__sim_draw(uint32_t n) { /* SIM-2 */
    return (uint32_t)((cc__rng_next(&cc__sim.random) >> 32) * n >> 32);
}

CC_NO_TSAN uint64_t cc__sim_entropy(uint64_t otherwise) {
    return (cc__sim_on() ? cc__rng_next(&cc__sim.random) : otherwise) | 1;
}

/* No single strategy finds every bug soon: some need many switches, some need few in the right places, some need one
 * fiber to fall far behind. So the seed decides that too. */
void cc__sim_reseed(void) {
    static const uint16_t often[] = {2, 4, 16, 64};
    cc__sim.random = mix(cc__sim.seed + mix(cc__sim.starts++)) | 1;
    cc__sim.often = often[cc__sim_draw(array_len(often))];
    cc__sim.shuffle = cc__sim_draw(2) == 0 ? 0 : 8u << cc__sim_draw(4);
    cc__sim.ranks = 0;
}

/* ---- on and off ---- */

void cc__sim_set(uint64_t seed, const char *line) {
    cc__sim.seed = seed;
    cc__sim.starts = 0;
    cc__sim.thread_known = false;
    cc__sim_reseed();
    cc__clock_simulate(seed != 0 ? SIM_EPOCH : 0);
    cc__sys_set(seed);
    cc__trace_simulated(seed != 0);
    cc__exit_message_set(line);
    cc__set(&cc__sim_look.zero, seed != 0 ? NEVER_FREE : 0);
    cc__set(&cc__sim_look.one, seed != 0 ? NEVER_FREE : 1);
    cc__set_seq(&cc__sim_look.on, seed != 0);
}

uint64_t cc__sim_seed(void) {
    return cc__sim_on() ? cc__sim.seed : 0;
}

void cc__sim_forget(void) {
    cc__sim.open = false;
}

/* ---- the program and the worker ---- */

static void await_turn(enum sim_turn mine) { /* SIM-1 */
    uint32_t turn;
    while ((turn = cc__get_acquire(&cc__sim.turn)) != mine) /* pairs with give_turn */
        cc__futex_wait(&cc__sim.turn, turn, CC_FUTEX_FOREVER);
}

static void give_turn(enum sim_turn to) {
    cc__set_release(&cc__sim.turn, to); /* releases everything done so far */
    cc__futex_wake(&cc__sim.turn, 1);
}

/* The system schedules the program's threads: what they do cannot be replayed. */
static CC_NORETURN CC_COLD void second_thread(void) {
    cc__fatal("a second thread of the program uses the library, and a simulation (seed %llu) has one thread besides "
              "its fibers. Start fibers in its place, or run the program without CC_SIM_SEED",
              (unsigned long long)cc__sim.seed);
}

static void check_thread(void) {
    if (!cc__sim.thread_known) cc__sim.thread = pthread_self();
    cc__sim.thread_known = true;
    if (!pthread_equal(cc__sim.thread, pthread_self())) second_thread();
}

static CC_NORETURN CC_COLD void hook_waits(void) {
    cc__fatal(
        "a hook of an island waits without a deadline, and in a simulation (seed %llu) nothing else runs until it "
        "returns. on_start and on_end must not wait for fibers",
        (unsigned long long)cc__sim.seed);
}

/* The thread that creates or ends the island waits until the hook has returned: only the island's thread runs (SIM-1).
 */
CC_NO_TSAN void cc__upcall_sim_hook(bool begins) {
    if (begins)
        cc__sim.hooks++;
    else
        cc__sim.hooks--;
}

static void let_world(struct sim_program program) {
    CC_KEEP_ERRNO;
    cc__sim.program = program;
    give_turn(TURN_WORLD);
    await_turn(TURN_PROGRAM);
}

void cc__sim_let_program(bool first) {
    if (!first) give_turn(TURN_PROGRAM);
    await_turn(TURN_WORLD);
}

/* The program waits while the runtime does not run: no fiber or other thread could end that. */
static CC_NORETURN CC_COLD void stuck_alone(void) {
    static _Atomic uint32_t never;
    if (cc__thread_id() != (int)getpid()) second_thread(); /* the first thread may be anywhere */
    cc__upcall_stuck();
    for (;;) cc__futex_wait(&never, 0, CC_FUTEX_FOREVER);
}

void cc__upcall_sim_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t until) {
    if (likely(!cc__sim_on())) {
        cc__futex_wait(word, seen, until);
        return;
    }
    if (cc__sim.hooks != 0) {
        if (until == CC_FUTEX_FOREVER) hook_waits();
        cc__clock_pass_to(until);
        return;
    }
    check_thread();
    if (cc__sim.open)
        let_world((struct sim_program){true, word, seen, until});
    else if (until != CC_FUTEX_FOREVER)
        cc__clock_pass_to(until); /* nothing else can run */
    else
        stuck_alone();
}

bool cc__upcall_sim_yield(void) {
    if (likely(!cc__sim_on())) return false;
    if (cc__sim.hooks != 0) return true;
    check_thread();
    if (cc__sim.open) let_world((struct sim_program){.waits = false});
    return true;
}

void cc__upcall_sim_stop(void) {
    static _Atomic uint32_t never;
    cc__sim.program = (struct sim_program){true, &never, 0, UINT64_MAX};
    give_turn(TURN_WORLD);
}

/* ---- points ---- */

CC_NO_TSAN void cc__upcall_sim_point(void) {
    struct worker *w = cc__worker();
    struct fiber *self = cc__sched_current(w);
    cc__clock_pass(POINT_NS);
    if (cc__sim.muted || cc__sim.hooks != 0) return;
    if (self != NULL) {
        if (cc__worker_is_island(w)) return; /* no other fiber of the island runs between two of its waits */
        if (cc__word_state(cc__get(&self->word)) != FIBER_RUNNING || cc__sim_draw(cc__sim.often) != 0) return;
        if (cc__upcall_holds_mutex(self)) return; /* a fiber that wants the mutex would block the only worker */
        cc__sim.ranks++;
        cc__sched_yield(w, self);
    } else if (w == NULL) {
        check_thread();
        if (!cc__sim.open || cc__sim_draw(cc__sim.often) != 0) return;
        cc__sim.ranks++;
        (void)cc__upcall_sim_yield();
    }
}

CC_NO_TSAN void cc__sim_mute_slow(bool on) {
    cc__sim.muted = on;
}
