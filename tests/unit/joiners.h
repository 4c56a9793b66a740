/* joiners.h - the number of joiners that wait for a task. */
#ifndef CCC_TESTS_UNIT_JOINERS_H
#define CCC_TESTS_UNIT_JOINERS_H

#include "harness.h"
#include "task/task.h"

/* How many wait in a join of that task. */
static inline int joiners_of(CCTask task) {
    struct fiber *f = cc__task_lock(task);
    CHECK(f != NULL);
    int n = 0;
    struct link *first = cc__get(&f->joiners.first), *l = first;
    for (; l != NULL; n++)
        if ((l = cc__get(&l->next)) == first) l = NULL;
    cc__lock_release(&f->join_lock);
    return n;
}

#endif
