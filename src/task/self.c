/* self.c - what a fiber can ask about itself. */
#include "sched/upcalls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool cc_in_fiber(void) {
    return cc__sched_current(cc__worker()) != NULL;
}

CCFiberId cc_fiber_id(void) {
    struct fiber *self = cc__sched_current(cc__worker());
    return likely(self != NULL) ? cc__pool_id(self) : cc__upcall_hosted_id();
}

int cc_fiber_set_name(const char *name) {
    struct fiber *self = cc__sched_current(cc__worker());
    if (self == NULL) return EPERM;
    char copy[CC_FIBER_NAME_MAX]; /* `name` may be the old one, or a part of it */
    snprintf(copy, sizeof copy, "%s", name != NULL ? name : "");
    memcpy(cc__get(&cc__get(&self->stack)->cold)->name, copy, sizeof copy);
    return 0;
}

int cc_fiber_trim_stack(void) {
    struct fiber *self = cc__sched_current(cc__worker());
    if (self == NULL) return EPERM;
    cc__stack_discard_unused(cc__get(&self->stack));
    return 0;
}

const char *cc_fiber_name(void) {
    struct fiber *self = cc__sched_current(cc__worker());
    return self != NULL ? cc__get(&cc__get(&self->stack)->cold)->name : "";
}
