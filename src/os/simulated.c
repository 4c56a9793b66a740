/* simulated.c - selects the operating system: the real one, or a simulated one. */
#include "os/simulated.h"

/* As the simulated clock: only one thread runs when it changes, and an atomic access would order fibers for a race
 * detector. */
static const struct os_simulated *volatile current;

CC_NO_TSAN const struct os_simulated *cc__os_simulation(void) {
    return current;
}

CC_NO_TSAN void cc__os_simulate(const struct os_simulated *simulation) {
    current = simulation;
}
