/* cc_sim.h - simulation: a program runs as if on one CPU, by a clock of its own, in an order that a seed decides.
 *
 * CC_SIM_SEED=17 ./program simulates a whole program; this header is for tests that simulate a part of themselves, or want
 * to know. docs/simulation.md shows both, and cc-sim(1) searches seeds.
 *
 * In a simulation the same seed makes the same run. Fibers are switched wherever another thread could have come in
 * between; all times of cc_time.h are simulated: when nobody is ready to run, the clock goes on to the next deadline at
 * once. A deadlock is found when it is there. Nothing is simulated outside of this library: what the program reads,
 * where its allocations lie and what the time of day is may still differ from run to run.
 */
#ifndef CCC_CC_SIM_H
#define CCC_CC_SIM_H

#include <ccc/cc_sched.h>

CC_BEGIN_DECLS

/* Starts the runtime, simulated with that seed, runs fn(arg) as its first fiber, and shuts the runtime down again: other
 * tasks have a second of simulated time to end, then their waits are cancelled as by cc_runtime_shutdown. *result (may
 * be NULL) is what fn returned. The seed counts, whatever CC_SIM_SEED says. What is to be simulated should be created by fn:
 * channels from before are switched at only where they wait.
 *
 * EINVAL: seed is 0 or fn is NULL; EALREADY: the runtime runs; EDEADLK: called from a fiber; ENOTRECOVERABLE: fn ended
 * by a panic; ETIMEDOUT: other tasks did not end, and the runtime goes on; ENOMEM, EAGAIN: no memory or no threads. A
 * second OS thread that uses tasks, channels or locks meanwhile ends the program. OS threads; blocks. */
CC_API int cc_sim_run(uint64_t seed, CCTaskFn fn, void *arg, void **result);

/* The seed of the simulation that is on, 0 if none is: for a program's own random numbers, and to tell what was
 * tested. Any context; does not switch. */
CC_API uint64_t cc_sim_seed(void);

CC_END_DECLS

#endif
