/* clock.c - the real time, or a simulated one. */
#include "os/clock.h"

#include "base/attr.h"

enum { LOOK_NS = 100 };

/* 0: the time is real. In a simulation it is written by the one thread that runs; others may read it. A race detector
 * would report plain accesses as races, and atomic ones would order the fibers for it. */
static volatile uint64_t simulated;

CC_NO_TSAN uint64_t cc__clock_now(void) {
    uint64_t now = simulated;
    return likely(now == 0) ? cc__clock_real() : now;
}

CC_NO_TSAN uint64_t cc__clock_look(void) {
    cc__clock_pass(LOOK_NS);
    return cc__clock_now();
}

CC_NO_TSAN bool cc__clock_is_simulated(void) {
    return simulated != 0;
}

bool cc__clock_counts_cycles(void) {
    return !cc__clock_is_simulated() && cc__clock_real_counts_cycles();
}

CC_NO_TSAN void cc__clock_simulate(uint64_t start) {
    simulated = start;
}

CC_NO_TSAN void cc__clock_pass(uint64_t ns) {
    if (simulated != 0) simulated += ns;
}

CC_NO_TSAN void cc__clock_pass_to(uint64_t moment) {
    if (simulated != 0 && simulated < moment) simulated = moment;
}
