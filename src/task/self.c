/* self.c - what a fiber can say of itself. */
#include "sched/sched.h"

#include <errno.h>
#include <stdio.h>

bool cc_in_fiber(void) {
    return cc__sched_current(cc__worker()) != NULL;
}

CCFiberId cc_fiber_id(void) {
    struct fiber *self = cc__sched_current(cc__worker());
    return self != NULL ? cc__pool_id(self) : 0;
}

int cc_fiber_set_name(const char *name) {
    struct fiber *self = cc__sched_current(cc__worker());
    if (self == NULL) return EPERM;
    struct fiber_cold *cold = cc__get(&cc__get(&self->stack)->cold);
    snprintf(cold->name, sizeof cold->name, "%s", name != NULL ? name : "");
    return 0;
}

const char *cc_fiber_name(void) {
    struct fiber *self = cc__sched_current(cc__worker());
    return self != NULL ? cc__get(&cc__get(&self->stack)->cold)->name : "";
}
