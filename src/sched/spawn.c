/* spawn.c - where a fiber that has just become runnable goes.
 *
 * On a worker: to its own queues; a fresh one among the fresh, a woken one into the slot. From other threads:
 * to the inbox of a worker, a sleeping one if there is one, else the fiber's last one; to the global queue when
 * that inbox is long.
 */
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/runq.h"
#include "sched/upcalls.h"

static struct worker *addressee(unsigned preferred) {
    struct worker *to = &cc__sched.workers[preferred % cc__get(&cc__sched.count)];
    return likely(cc__worker_open(to)) ? to : &cc__sched.workers[preferred % cc__sched.base]; /* it has retired */
}

/* Addressed to one worker, from a thread that is none. */
static void send(struct fiber *f, struct worker *to) {
    if (cc__get(&to->remote.inbox_len) >= INBOX_LONG)
        cc__inject_put(f);
    else
        cc__inbox_push(to, f);
    /* It may be busy while another one sleeps: that one finds the inbox. */
    if (!cc__idle_notify_worker(to)) cc__idle_notify(NULL);
    if (cc__sched.simulated) cc__upcall_sim_point();
}

void cc__sched_spawn(struct worker *w, struct fiber *f, enum fiber_args args) {
    if (likely(w != NULL)) {
        cc__runq_spawn(w, f, args);
    } else {
        cc__state_spawn(f, 0, args);
        cc__add_seq(&cc__sched.foreign_spawned, 1);
        send(f, addressee(cc__add_relaxed(&cc__sched.round_robin, 1)));
    }
}

void cc__sched_ready(struct fiber *f) {
    cc__held_check_flush();
    struct worker *w = cc__worker();
    if (likely(w != NULL)) {
        cc__bias_enter(&w->runq.bias);
        cc__runq_slot_owner(&w->runq, f);
        cc__count(w, wakes_local);
        cc__bias_leave(&w->runq.bias);
        cc__runq_tell(w, 1);
    } else {
        unsigned last = cc__word_owner(cc__get(&f->word));
        cc__upcall_hold();
        struct worker *to = addressee(last > 0 ? last - 1 : cc__add_relaxed(&cc__sched.round_robin, 1));
        cc__add_relaxed(&to->remote.woken, 1);
        send(f, to);
        cc__upcall_leave();
    }
}

void cc__sched_ready_all(struct link *list, uint32_t n) {
    cc__held_check_flush();
    struct worker *w = cc__worker();
    if (w == NULL) {
        while (!cc__list_empty(list)) cc__sched_ready(cc__fiber_of(cc__list_pop_front(list)));
        return;
    }
    if (cc__spec_on())
        for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next)) cc__spec_enqueue(cc__fiber_of(l));
    cc__bias_enter(&w->runq.bias);
    cc__list_append_all(&w->runq.fifo, list);
    cc__runq_add_owner(&w->runq, n);
    cc__count_n(w, wakes_local, n);
    cc__bias_leave(&w->runq.bias);
    cc__runq_tell(w, 0);
}
