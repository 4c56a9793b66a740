/* inbox.c - what is in the workers' inboxes, for a dump (CC_DEBUG_INBOX_DUMP).
 *
 * An inbox may be emptied while it is walked, and its members may be on other lists by then. Records stay mapped, so a
 * walk may follow any link; it goes on only where the link leads to a record, and no further than `max`.
 */
#include "diag/diag.h"
#include "sched/sched.h"

#include <stdio.h>

/* The fiber that holds the link; NULL: it is none, but the head of some list. */
static CC_NOINLINE CC_NO_TSAN struct fiber *fiber_at(struct link *link) {
    if (link == NULL) return NULL;
    struct fiber *f = cc__fiber_of(link);
    const volatile uint32_t *slot = &f->slot;
    return cc__pool_at(*slot) == f ? f : NULL;
}

void cc__diag_inboxes(diag_line_fn line, void *arg, unsigned max) {
    char text[160], name[CC_FIBER_NAME_MAX];
    for (unsigned i = 0; i < cc__sched.count; i++) {
        struct worker *w = &cc__sched.workers[i];
        struct fiber *f = cc__get_acquire(&w->remote.inbox); /* pairs with cc__inbox_push */
        snprintf(text, sizeof text, "inbox of worker %u: %u fibers%s", i, cc__get(&w->remote.inbox_len),
                 f != NULL ? ", the last to come first:" : "");
        line(arg, text);
        for (unsigned shown = 0; f != NULL && shown < max; shown++) {
            uint64_t word = cc__get(&f->word);
            cc__diag_name(f, name);
            snprintf(text, sizeof text, "  fiber %u.%u%s%s%s: %s%s", f->slot, cc__get(&f->generation),
                     name[0] ? " '" : "", name, name[0] ? "'" : "", cc__state_name(cc__word_state(word)),
                     word & WORD_FRESH ? ", has not run yet" : "");
            line(arg, text);
            f = fiber_at(cc__get(&f->link.next));
        }
    }
}
