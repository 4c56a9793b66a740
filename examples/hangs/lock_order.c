/* lock_order.c - two transfers that lock the same two accounts in opposite order. */
#include <ccc/ccc.h>
#include <stdlib.h>

struct account {
    CCMutex lock;
    long cents;
};

static struct account checking = {.cents = 100000}, savings = {.cents = 100000};

static void transfer(struct account *from, struct account *to, long cents) {
    cc_mutex_lock_uncancellable(&from->lock);
    cc_yield(); /* for example a fraud check */
    cc_mutex_lock_uncancellable(&to->lock);
    from->cents -= cents;
    to->cents += cents;
    cc_mutex_unlock(&to->lock);
    cc_mutex_unlock(&from->lock);
}

CC_TASK(standing_order, { struct account *from, *to; }) {
    cc_fiber_set_name(self->from == &checking ? "saver" : "spender");
    for (int i = 0; i < 1000000; i++) transfer(self->from, self->to, 1);
    return NULL;
}

int main(void) {
    CCTask saver = CC_GO(standing_order, .from = &checking, .to = &savings);
    CCTask spender = CC_GO(standing_order, .from = &savings, .to = &checking);
    cc_block_on(saver);
    cc_block_on(spender);
    return checking.cents + savings.cents == 200000 ? EXIT_SUCCESS : EXIT_FAILURE;
}
