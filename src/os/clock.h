/* clock.h - the one clock, in nanoseconds: CLOCK_MONOTONIC or, in a simulation (sim/), a simulated time that advances
 * only when told to.
 */
#ifndef CC_OS_CLOCK_H
#define CC_OS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

uint64_t cc__clock_now(void);

/* The same for a call by the program: it advances a simulated clock, so that a loop which waits for a time ends. */
uint64_t cc__clock_look(void);

/* Always CLOCK_MONOTONIC: for waits for the system. */
uint64_t cc__clock_real(void);

bool cc__clock_is_simulated(void);

/* Whether the CPU's cycle counter (arch/cpu.h) can be used as a clock: it has a constant rate, and is the same on all
 * CPUs. False if the time is simulated. _real: simulated or not. Keeps errno. */
bool cc__clock_counts_cycles(void);
bool cc__clock_real_counts_cycles(void);

/* From now on the time is simulated, starting at `start`; 0: it is real. */
void cc__clock_simulate(uint64_t start);

/* Advances the simulated time, by `ns` or to a moment that is not yet over. Does nothing if the time is real. By the
 * only thread that runs. */
void cc__clock_pass(uint64_t ns);
void cc__clock_pass_to(uint64_t moment);

#endif
