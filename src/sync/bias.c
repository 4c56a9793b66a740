/* bias.c - the expensive half of the biased lock. */
#include "sync/bias.h"

#include "arch/cpu.h"
#include "sync/policy.h"

void cc__bias_enter_slow(struct bias *bias) {
    cc__set_release(&bias->owner, CC__BIAS_WAITING); /* lets the revoker in */
    cc__lock_take(&bias->others);
    cc__set(&bias->owner, CC__BIAS_INSIDE); /* no revoker reads it before the unlock */
    cc__lock_release(&bias->others);
    cc__barrier_light(); /* BIAS-5 */
}

bool cc__bias_revoke(struct bias *bias) { /* BIAS-3 */
    if (cc__get(&bias->owner) == CC__BIAS_WAITING || !cc__lock_try(&bias->others)) return false;
    cc__set(&bias->revoked, 1);
    cc__barrier_heavy();
    for (int i = 0; i < BIAS_SPINS; i++) {
        if (cc__get_acquire(&bias->owner) != CC__BIAS_INSIDE) return true; /* pairs with cc__bias_leave */
        cc__cpu_relax();
    }
    cc__bias_release(bias);
    return false;
}

void cc__bias_release(struct bias *bias) {
    cc__set_release(&bias->revoked, 0); /* pairs with cc__bias_enter */
    cc__lock_release(&bias->others);
}
