/* context.h - the real switch, src/arch/context.h, which reports its writes and reads to the explorer, since they are
 * not instrumented. Switching away from a stack is a write, resuming it a read: the two have to be ordered, or it is a
 * race.
 */
#ifndef EXPLORE_ARCH_CONTEXT_H
#define EXPLORE_ARCH_CONTEXT_H

#include_next "arch/context.h"

#include "explore.h"

static inline struct context *ex_leaves(struct context *from) {
    ex_touch(from, sizeof *from);
    *(void *volatile *)&from->sp = NULL;
    return from;
}
static inline struct context *ex_goes_on(struct context *to) {
    (void)*(void *volatile *)&to->sp;
    return to;
}

#define cc__context_switch(from, to, value) (cc__context_switch)(ex_leaves(from), ex_goes_on(to), value)
#define cc__context_jump(to, value) (cc__context_jump)(ex_goes_on(to), value)

#endif
