/* inbox.c - fibers addressed to one worker. */
#include "sched/inbox.h"

#include "fiber/spec.h"

void cc__inbox_push(struct worker *to, struct fiber *f) {
    if (cc__spec_on()) cc__spec_enqueue(f);
    uint32_t before = cc__add_relaxed(&to->remote.inbox_len, 1);
    cc__event(inbox_push, to->core.owner - 1, cc__pool_id(f), before);
    struct fiber *head = cc__get(&to->remote.inbox);
    do {
        cc__set(&f->link.next, head ? &head->link : NULL);
        /* Releases the fiber to the thread that takes the inbox; seq_cst: a check for sleeping workers follows. */
    } while (!cc__cas_seq(&to->remote.inbox, &head, f));
}

static CC_NOINLINE uint32_t take(struct worker *from, struct link *list) {
    struct fiber *f = cc__swap(&from->remote.inbox, NULL); /* acquires all pushes */
    uint32_t n = 0;
    struct link *end = cc__get(&list->prev);
    for (struct link *l = f ? &f->link : NULL; l != NULL; n++) {
        struct link *older = cc__get(&l->next);
        /* Taken newest first: insert each at the same place, after what the list held before. */
        cc__list_insert(end, l, cc__get(&end->next));
        l = older;
    }
    cc__sub(&from->remote.inbox_len, n);
    if (n > 0) cc__event(inbox_take, from->core.owner - 1, n);
    return n;
}

uint32_t cc__inbox_take(struct worker *from, struct link *list) {
    return cc__get(&from->remote.inbox) == NULL ? 0 : take(from, list);
}

bool cc__inbox_waits_elsewhere(struct worker *w) {
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) {
        struct worker *other = &cc__sched.workers[i];
        if (other != w && !cc__inbox_empty(other)) return true;
    }
    return false;
}
