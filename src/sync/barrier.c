/* barrier.c - the heavy half of the asymmetric barrier. */
#include "sync/barrier.h"

#include "os/membarrier.h"

bool cc__barrier_asymmetric;

void cc__barrier_init(bool membarrier) {
    cc__barrier_asymmetric = membarrier && cc__membarrier_register();
}

void cc__barrier_heavy(void) {
    cc__full_fence();
    if (likely(cc__barrier_asymmetric)) cc__membarrier();
}
