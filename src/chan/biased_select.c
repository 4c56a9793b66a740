/* biased_select.c - a select among channels that are all biased to its worker.
 *
 * They have one guard, the worker's biased lock: looking at all of them, linking to all of them and unlinking from
 * all of them are one section each, and no compare-and-swap is needed anywhere (CHANBIAS-4). Whatever does not fit in here
 * (a deadline that has to be waited for, a task's end, a channel that is not biased) is for select/select.c.
 *
 * BSELECT-1  A select that has to wait makes all its channels biased together, or none: one that is biased beside
 *           one that is not would be revoked by the next select.
 * BSELECT-2  An arm unlinks inside, or, where its channel has lost its bias meanwhile, under that channel's lock.
 */
#include "chan/bias.h"
#include "chan/step.h"

#include "base/rng.h"

#include <errno.h>

_Static_assert(ARM_FEW <= 32, "a bit for each case");

static bool malformed(const CCCase *c) {
    return c->size != c->ch->size || (c->value == NULL && c->size > 0);
}

/* Inside. LOOK_READY, LOOK_NOT_READY; ARM_ELSEWHERE: it is not biased to this worker. */
CC_INLINE int look(struct worker *w, const CCCase *c) {
    CCChan *ch = c->ch;
    bool recv = c->kind == CC_CASE_RECV;
    if (unlikely(!recv && c->kind != CC_CASE_SEND)) return c->kind == CC_CASE_NONE ? LOOK_NOT_READY : ARM_ELSEWHERE;
    if (unlikely(ch == NULL)) return LOOK_NOT_READY;
    if (unlikely(!cc__chan_biased_to(w, ch) || malformed(c) || cc__get(&ch->closed))) return ARM_ELSEWHERE;
    size_t count = cc__get(&ch->count);
    bool ready =
        recv ? count > 0 || !cc__list_empty(&ch->senders) : count < ch->capacity || !cc__list_empty(&ch->receivers);
    return ready ? LOOK_READY : LOOK_NOT_READY;
}

/* One of the bits. The worker's numbers are its own. */
static CC_NOINLINE uint32_t draw(struct worker *w, uint32_t bits, uint32_t count) {
    for (uint32_t k = (uint32_t)((cc__rng_next(&w->rng) >> 32) * count >> 32); k > 0; k--) bits &= bits - 1;
    return bits;
}

/* Every arm but the one that was served (BSELECT-2). The fiber may be on another worker now. */
CC_INLINE void unlink_all(struct arm *arms, uint32_t count, const struct arm *served) {
    struct worker *w = cc__worker();
    uint32_t elsewhere = 0;
    cc__bias_enter(&w->runq.bias);
    for (uint32_t i = 0; i < count; i++) {
        if (&arms[i] == served) continue;
        if (likely(cc__chan_biased_to(w, arms[i].object)))
            cc__step_unlink_inside(&arms[i]);
        else
            elsewhere |= UINT32_C(1) << i;
    }
    cc__bias_leave(&w->runq.bias);
    for (uint32_t i = 0; unlikely(elsewhere != 0); i++, elsewhere >>= 1) {
        if ((elsewhere & 1) == 0) continue;
        cc__chan_lock(arms[i].object);
        cc__chan_unlink_locked(arms[i].object, &arms[i]);
    }
}

/* Inside; leaves. None of the cases is ready. */
static CC_NOINLINE int wait_inside(struct worker *w, CCCase *cases, uint32_t n, size_t *chosen) {
    struct fiber *self = cc__sched_current(w);
    struct waiter waiter;
    struct arm arms[ARM_FEW];
    struct arms all = {.first = arms};
    uint32_t winner = UINT32_MAX;
    cc__waiter_init_sole(&waiter, self);
    for (uint32_t i = 0; i < n; i++) {
        CCChan *ch = cases[i].ch;
        if (unlikely(ch == NULL || cases[i].kind == CC_CASE_NONE)) continue;
        struct arm *arm = &arms[all.count++];
        arm->kind = (uint8_t)cases[i].kind;
        arm->linked = true;
        arm->claim_lost = false;
        arm->object = ch;
        arm->fiber = self;
        arm->value = cases[i].value;
        arm->waiter = &waiter;
        arm->chosen = &winner;
        arm->index = i;
        ch->biased_selects = true;
        cc__list_push_back(cases[i].kind == CC_CASE_RECV ? &ch->receivers : &ch->senders, &arm->link);
    }
    enum wake_reason reason = cc__wait_select_biased(w, self, &all);
    struct arm *served = NULL;
    if (likely(reason == WAKE_OBJECT))
        for (served = arms; served->index != winner; served++) {
        }
    unlink_all(arms, all.count, served);
    return likely(served != NULL) ? cc__case_chosen(cases, winner, served->error, chosen) : ECANCELED;
}

/* Inside: a bit for each case that is ready. ARM_ELSEWHERE, or how many those are. */
CC_INLINE int look_at_all(struct worker *w, const CCCase *cases, size_t n, uint32_t *ready) {
    int count = 0;
    *ready = 0;
    for (size_t i = 0; i < n; i++) {
        int seen = look(w, &cases[i]);
        if (seen == LOOK_NOT_READY) continue;
        if (unlikely(seen == ARM_ELSEWHERE)) return seen;
        *ready |= UINT32_C(1) << i;
        count++;
    }
    return count;
}

int cc__select_biased(struct worker *w, CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, bool wait,
                      size_t *chosen) {
    uint32_t ready;
    int count, rc = ARM_ELSEWHERE;
    cc__bias_enter(&w->runq.bias);
    while ((count = look_at_all(w, cases, n, &ready)) > 0) { /* CHANBIAS-1 */
        if (count > 1 && order == CC_SELECT_FAIR) ready = draw(w, ready, (uint32_t)count);
        size_t index = (size_t)__builtin_ctz(ready);
        CCCase *c = &cases[index];
        rc = c->kind == CC_CASE_RECV ? cc__step_recv(w, c->ch, c->value, INSIDE, NULL)
                                     : cc__step_send(w, c->ch, c->value, INSIDE, NULL);
        if (likely(rc == 0)) return cc__case_chosen(cases, index, 0, chosen);
        if (rc != ARM_WAIT) break; /* a thread waits there */
        /* Those who waited there have been claimed already: their arms are off the list, so this ends. */
    }
    if (count == 0 && likely(wait && deadline == WAIT_FOREVER)) return wait_inside(w, cases, (uint32_t)n, chosen);
    cc__bias_leave(&w->runq.bias);
    return count == 0 && !wait ? EAGAIN : ARM_ELSEWHERE;
}

void cc__chan_adopt_locked(struct worker *w, struct arm *arms, uint32_t count) {
    bool due = true;
    for (uint32_t i = 0; i < count; i++) {
        CCChan *ch = arms[i].object;
        if (!ch->may_bias) return;
        cc__chan_count_locked(w, ch);
        if (ch->uses < ch->select_threshold) due = false;
    }
    for (uint32_t i = 0; due && i < count; i++) { /* BSELECT-1 */
        CCChan *ch = arms[i].object;
        ch->bias_by = BIAS_BY_SELECT;
        cc__set(&ch->bias, w->core.tag);
    }
}
