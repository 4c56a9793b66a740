/* gate.h - a fiber waits until the gate is opened; the smallest user of park_if. */
#ifndef CCC_TESTS_UNIT_GATE_H
#define CCC_TESTS_UNIT_GATE_H

#include "harness.h"

#include "wait/wait.h"

struct gate {
    _Atomic uint32_t open;
    _Atomic uint64_t ticket;
    struct fiber *_Atomic fiber;
};

/* Publish, then check: pairs with gate_open, which changes the gate and then checks for a waiter. Both sides are
 * sequentially consistent, and exchanges instead of stores: qemu 7.2 lets such a load overtake such a store on aarch64.
 */
static inline void gate_wait(struct gate *gate) {
    struct fiber *self = cc__sched_current(cc__worker());
    CHECK(self != NULL);
    while (cc__get_acquire(&gate->open) == 0) {
        cc__set(&gate->ticket, cc__park_open(self, PARK_FLAG));
        (void)cc__swap_seq(&gate->fiber, self);
        (void)cc__park_if(self, &gate->open, 0);
        cc__set_seq(&gate->fiber, NULL);
    }
}

/* True: there was a waiter, and this call woke it. Any thread may call it. */
static inline bool gate_open(struct gate *gate) {
    (void)cc__swap_seq(&gate->open, 1);
    struct fiber *waiter = cc__get_seq(&gate->fiber);
    return waiter != NULL && cc__fiber_wake(waiter, cc__get(&gate->ticket), WAKE_OBJECT);
}

/* For the next round, when nobody waits. */
static inline void gate_close(struct gate *gate) {
    cc__set_seq(&gate->open, 0);
}

#endif
