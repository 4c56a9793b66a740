/* cc_sim.h - simulation: a program runs as if on one CPU, with a simulated clock, under a schedule that a seed decides.
 *
 * CC_SIM_SEED=17 ./program simulates a whole program; this header is for tests that simulate a part of themselves, or
 * need the seed. docs/simulation.md shows both, and cc-sim(1) searches seeds.
 *
 * In a simulation the same seed makes the same run. Fibers are switched wherever another thread could have
 * interfered; all times of cc_time.h are simulated: when no fiber is ready to run, the clock jumps to the next
 * deadline. A deadlock is detected at once. Nothing is simulated outside of this library: what the program reads,
 * where its allocations lie and what the time of day is may still differ from run to run.
 */
#ifndef CCC_CC_SIM_H
#define CCC_CC_SIM_H

#include <ccc/cc_sched.h>

CC_BEGIN_DECLS

/* Starts the runtime, simulated with that seed, runs fn(arg) as its first fiber, and shuts the runtime down again:
 * other tasks have a second of simulated time to end, then their waits are cancelled as by cc_runtime_shutdown. *result
 * (may be NULL) is what fn returned. The seed overrides CC_SIM_SEED. fn should create what is to be simulated: at
 * channels that existed before, fibers are switched only where they wait.
 *
 * EINVAL: seed is 0 or fn is NULL; EALREADY: the runtime runs; EDEADLK: called from a fiber; ENOTRECOVERABLE: fn ended
 * by a panic; ETIMEDOUT: other tasks did not end, and the runtime goes on; ENOMEM, EAGAIN: no memory or no threads. A
 * second OS thread that uses tasks, channels or locks meanwhile ends the program. OS threads; blocks. */
CC_API int cc_sim_run(uint64_t seed, CCTaskFn fn, void *arg, void **result);

/* The seed of the running simulation, 0 if there is none: for a program's own random numbers, and for
 * messages. Any context; does not switch. */
CC_API uint64_t cc_sim_seed(void);

CC_END_DECLS

#endif
