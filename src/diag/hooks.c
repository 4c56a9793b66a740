/* hooks.c - what the runtime's watchman is told; nothing is made of it yet. */
#include "sched/driver.h"

void cc__driver_stalled(struct worker *w, uint64_t ns) {
    (void)w, (void)ns;
}

void cc__driver_asked(void) {}

bool cc__driver_quiet(unsigned look) {
    (void)look;
    return false;
}
