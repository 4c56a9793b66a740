/* inbox.c - what is in the workers' inboxes, for a dump (CC_DEBUG_INBOX_DUMP).
 *
 * An inbox may be emptied while it is walked, and its members may be elsewhere by then. A walk goes on only where the
 * link leads to a record, and no further than `max`.
 */
#include "diag/dump.h"
#include "os/safe_copy.h"

/* The fiber that holds the link; NULL: it is none, but the head of some list, or what a fiber waits for. */
static struct fiber *fiber_at(struct link *link) {
    struct fiber *f = link != NULL ? cc__fiber_of(link) : NULL;
    uint32_t slot;
    return f != NULL && cc__safe_copy(&slot, &f->slot, sizeof slot) && cc__pool_at(slot) == f ? f : NULL;
}

void cc__dump_inboxes(struct out *out, unsigned max) {
    char who[96];
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) {
        struct worker *w = &cc__sched.workers[i];
        struct fiber *f = cc__get_acquire(&w->remote.inbox); /* pairs with cc__inbox_push */
        cc__out(out, "inbox of worker %u: %u fibers%s\n", i, cc__get(&w->remote.inbox_len),
                f != NULL ? ", the last to come first:" : "");
        for (unsigned shown = 0; f != NULL && shown < max; shown++) {
            uint64_t word = cc__get(&f->word);
            cc__describe_tenant(f, who, sizeof who);
            cc__out(out, "  %s: %s%s\n", who, cc__state_name(cc__word_state(word)),
                    word & WORD_FRESH ? ", has not run yet" : "");
            f = fiber_at(cc__get(&f->link.next));
        }
    }
}
