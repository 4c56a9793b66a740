/* spawn.c - where a fiber that has just become runnable goes.
 *
 * On a worker: to its own queues; a fresh one among the fresh, a woken one into the slot. From other threads: to the inbox of a worker,
 * a sleeping one if there is one, else the fiber's last one; to the global queue when that inbox is long.
 */
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/runq.h"

/* Addressed to one worker, from a thread that is none. */
static void send(struct fiber *f, unsigned preferred) {
    struct worker *to = &cc__sched.workers[preferred % cc__sched.count];
    if (cc__get(&to->remote.inbox_len) >= INBOX_LONG)
        cc__inject_put(f);
    else
        cc__inbox_push(to, f);
    /* It may be busy while another one sleeps: that one finds the inbox. */
    if (!cc__idle_notify_worker(to)) cc__idle_notify(NULL);
}

void cc__sched_spawn(struct worker *w, struct fiber *f) {
    if (likely(w != NULL)) {
        cc__state_spawn(f, w->core.owner);
        cc__count(w, spawned);
        cc__bias_enter(&w->runq.bias);
        cc__list_push_front(&w->runq.fresh, &f->link);
        cc__runq_add_owner(&w->runq, 1);
        cc__bias_leave(&w->runq.bias);
        cc__runq_tell(w, 1);
    } else {
        cc__state_spawn(f, 0);
        cc__add_seq(&cc__sched.foreign_spawned, 1);
        send(f, cc__add_relaxed(&cc__sched.round_robin, 1));
    }
}

void cc__sched_ready(struct fiber *f) {
    struct worker *w = cc__worker();
    if (likely(w != NULL)) {
        struct runq *q = &w->runq;
        cc__bias_enter(&q->bias);
        struct fiber *before = cc__get(&q->slot);
        if (before != NULL) cc__list_push_back(&q->fifo, &before->link);
        cc__set(&q->slot, f);
        cc__runq_add_owner(q, 1);
        cc__bias_leave(&q->bias);
        cc__runq_tell(w, 1);
    } else {
        unsigned last = cc__word_owner(cc__get(&f->word));
        send(f, last > 0 ? last - 1 : cc__add_relaxed(&cc__sched.round_robin, 1));
    }
}

void cc__sched_ready_chain(struct fiber *first, uint32_t n) {
    struct worker *w = cc__worker();
    if (n == 1 || w == NULL) {
        while (first != NULL) {
            struct link *next = cc__get(&first->link.next);
            cc__sched_ready(first);
            first = next ? cc__fiber_of(next) : NULL;
        }
        return;
    }
    struct link list;
    cc__list_init(&list);
    for (struct link *l = &first->link; l != NULL;) {
        struct link *next = cc__get(&l->next);
        cc__list_push_back(&list, l);
        l = next;
    }
    cc__runq_append(w, &list, n);
    cc__runq_tell(w, 0);
}
