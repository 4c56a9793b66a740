/* self.h - the explorer's stub for src/arch/self.h: one pointer per virtual thread. */
#ifndef CC_ARCH_SELF_H
#define CC_ARCH_SELF_H

#include "base/attr.h"
#include "explore.h"

CC_INLINE void *cc__self_get(void) {
    return ex_self_get();
}
CC_INLINE void cc__self_set(void *self) {
    ex_self_set(self);
}

#endif
