/* clock.h - the one clock, in nanoseconds: CLOCK_MONOTONIC or, in a simulation (sim/), a time of its own that passes
 * when it is told to.
 */
#ifndef CC_OS_CLOCK_H
#define CC_OS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

uint64_t cc__clock_now(void);

/* The same for a look of the program's: a simulated clock goes on by it, so that a loop which waits for a time ends. */
uint64_t cc__clock_look(void);

/* CLOCK_MONOTONIC in any case: for what waits for the system. */
uint64_t cc__clock_real(void);

bool cc__clock_is_simulated(void);

/* Whether the CPU's counter of cycles (arch/cpu.h) is a clock: of one rate, and the same on all CPUs. Not if the time
 * is simulated. _real: whatever the time is. Keeps errno. */
bool cc__clock_counts_cycles(void);
bool cc__clock_real_counts_cycles(void);

/* From now on the time is simulated, and it is `start`; 0: it is real. */
void cc__clock_simulate(uint64_t start);

/* Simulated time passes, or goes on to a moment unless that is over. Nothing if the time is real. By the one thread
 * that runs. */
void cc__clock_pass(uint64_t ns);
void cc__clock_pass_to(uint64_t moment);

#endif
