/* atomic.c - what atomic.h hides from the race detector. Empty elsewhere. */
#include "sync/atomic.h"

#ifdef CC_TSAN
CC_NOINLINE CC_NO_TSAN void cc__set_release_hidden(_Atomic uint64_t *p, uint64_t v) {
    cc__set_release(p, v);
}
#else
typedef int cc__nothing_to_hide; /* ISO C wants a declaration */
#endif
