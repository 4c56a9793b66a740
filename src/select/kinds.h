/* kinds.h - the kinds of select cases, one line for each CCCaseKind. */
#ifndef CC_SELECT_KINDS_H
#define CC_SELECT_KINDS_H

#include "wait/arm.h"

#include <errno.h>

static int look_never(struct worker *w, const CCCase *c) {
    (void)w, (void)c;
    return LOOK_BIASED;
}
static unsigned prepare_never(struct arm *arm, const CCCase *c) {
    (void)arm, (void)c;
    return 0;
}
static int look_unknown(struct worker *w, const CCCase *c) {
    (void)w, (void)c;
    return EINVAL;
}

static const struct arm_ops arm_none = {.look = look_never, .prepare = prepare_never};
static const struct arm_ops arm_unknown = {.look = look_unknown};

CC_INLINE const struct arm_ops *cc__kind_ops(const CCCase *c) {
    static const struct arm_ops *const kinds[] = {
        [CC_CASE_NONE] = &arm_none,
        [CC_CASE_SEND] = &cc__arm_send,
        [CC_CASE_RECV] = &cc__arm_recv,
        [CC_CASE_JOIN] = &cc__arm_join,
        [CC_CASE_AT] = &cc__arm_at,
        [CC_CASE_CANCEL] = &cc__arm_cancel,
        [CC_CASE_READABLE] = &cc__arm_fd,
        [CC_CASE_WRITABLE] = &cc__arm_fd,
        [CC_CASE_EXITED] = &cc__arm_exited,
        [CC_CASE_KEY] = &cc__arm_key,
        [CC_CASE_EVENT] = &cc__arm_event,
        [CC_CASE_ACQUIRE] = &cc__arm_acquire,
        [CC_CASE_NURSERY_END] = &cc__arm_nursery_end,
    };
    return likely((size_t)c->kind < array_len(kinds)) ? kinds[c->kind] : &arm_unknown;
}

/* Most cases are sends and receives: their look functions are called by name, so that the compiler may inline them. */
CC_INLINE int cc__kind_look(struct worker *w, const CCCase *c) {
    if (likely(c->kind == CC_CASE_RECV)) return cc__arm_look_recv(w, c);
    if (likely(c->kind == CC_CASE_SEND)) return cc__arm_look_send(w, c);
    return cc__kind_ops(c)->look(w, c);
}

#endif
