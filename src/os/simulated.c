/* simulated.c - which operating system there is: the real one, or a simulated one. */
#include "os/simulated.h"

/* As the simulated clock: whoever changes it is alone, and a race detector would take an atomic access for order. */
static const struct os_simulated *volatile current;

CC_NO_TSAN const struct os_simulated *cc__os_simulation(void) {
    return current;
}

CC_NO_TSAN void cc__os_simulate(const struct os_simulated *simulation) {
    current = simulation;
}
