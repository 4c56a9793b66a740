/* futex.h - an OS thread sleeps on a 32-bit word. */
#ifndef CC_OS_FUTEX_H
#define CC_OS_FUTEX_H

#include <stdatomic.h>

#include <stdint.h>

#define CC_FUTEX_FOREVER UINT64_MAX

/* Sleeps while *word == expected, until released or until the CLOCK_MONOTONIC time `until` (ns). May return
 * spuriously. */
void cc__futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t until);

/* Releases up to n sleepers. The word may be freed by now: only its address is used. */
void cc__futex_wake(_Atomic uint32_t *word, int n);

#endif
