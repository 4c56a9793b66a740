/* context.h - the real switch, src/arch/context.h; the explorer hears of the context that is written, which no
 * instrumentation sees.
 */
#ifndef EXPLORE_ARCH_CONTEXT_H
#define EXPLORE_ARCH_CONTEXT_H

#include_next "arch/context.h"

#include "explore.h"

#define cc__context_switch(from, to, value) (ex_touch(from, sizeof *(from)), (cc__context_switch)(from, to, value))

#endif
