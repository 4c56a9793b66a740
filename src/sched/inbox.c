/* inbox.c - fibers addressed to one worker. */
#include "sched/inbox.h"

void cc__inbox_push(struct worker *to, struct fiber *f) {
    cc__add_relaxed(&to->remote.inbox_len, 1);
    struct fiber *head = cc__get(&to->remote.inbox);
    do {
        cc__set(&f->link.next, head ? &head->link : NULL);
        /* Releases the fiber to whoever takes the inbox; seq_cst: a push is followed by a look for sleeping
         * workers. */
    } while (!cc__cas_seq(&to->remote.inbox, &head, f));
}

uint32_t cc__inbox_take(struct worker *from, struct link *list) {
    if (cc__get(&from->remote.inbox) == NULL) return 0;
    struct fiber *f = cc__swap(&from->remote.inbox, NULL); /* acquires all pushes */
    uint32_t n = 0;
    struct link *end = cc__get(&list->prev);
    for (struct link *l = f ? &f->link : NULL; l != NULL; n++) {
        struct link *older = cc__get(&l->next);
        /* Each older one goes before the last: behind what the list held. */
        cc__list_insert(end, l, cc__get(&end->next));
        l = older;
    }
    cc__sub(&from->remote.inbox_len, n);
    return n;
}
