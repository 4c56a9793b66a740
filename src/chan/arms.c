/* arms.c - a channel as an arm of a select, to send or to receive (wait/arm.h). */
#include "chan/bias.h"

#include <errno.h>

/* `size` is in the channel's second line, which every operation under the lock writes; for common sizes the first line
 * has it too. So a select that polls channels in use by another worker fetches one line of each. */
static bool malformed(const CCCase *c) {
    if (likely(c->size == c->ch->fast_size && c->size != 0 && c->value != NULL)) return false;
    if (c->ch->size == 0) return c->size != 0 && c->value != NULL;
    return c->size != c->ch->size || c->value == NULL;
}

static int not_ready(struct worker *w, const CCChan *ch) {
    return cc__chan_biased_to(w, ch) ? LOOK_BIASED : LOOK_NOT_READY;
}

/* Declared inline for a library that is optimised as one object: a select calls them by name (select/kinds.h). The ring
 * and one list suffice: a full channel has no waiting receiver, an empty one no waiting sender (CHAN-1). */
inline int cc__arm_look_send(struct worker *w, const CCCase *c) {
    CCChan *ch = c->ch;
    if (unlikely(ch == NULL)) return LOOK_BIASED;
    if (unlikely(malformed(c))) return EINVAL;
    if (cc__get(&ch->count) < ch->capacity || !cc__list_empty(&ch->receivers)) return LOOK_READY;
    return ch->mode != CC_CHAN_MODE_BLOCK || cc__get(&ch->closed) ? LOOK_READY : not_ready(w, ch);
}

inline int cc__arm_look_recv(struct worker *w, const CCCase *c) {
    CCChan *ch = c->ch;
    if (unlikely(ch == NULL)) return LOOK_BIASED;
    if (unlikely(malformed(c))) return EINVAL;
    if (cc__get(&ch->count) > 0 || !cc__list_empty(&ch->senders)) return LOOK_READY;
    return cc__get(&ch->closed) || (ch->pool && cc__chan_may_create(ch)) ? LOOK_READY : not_ready(w, ch);
}

static int try_send(const CCCase *c) {
    return cc__chan_try(c->ch, c->value, true);
}

static int try_recv(const CCCase *c) {
    return cc__chan_try(c->ch, c->value, false);
}

static int recv_rest(const CCCase *c) {
    return cc__chan_recv_rest(c->ch, c->value);
}

bool cc__arm_calls_back(const CCCase *c) {
    return (c->kind == CC_CASE_SEND || c->kind == CC_CASE_RECV) && c->ch != NULL && c->ch->pool;
}

void cc__arm_reset_send(const CCCase *c) {
    if (c->ch != NULL && unlikely(c->ch->pool)) cc__chan_reset(c->ch, c->value);
}

static unsigned prepare(struct arm *arm, const CCCase *c) {
    CCChan *ch = c->ch;
    if (unlikely(ch == NULL)) return 0;
    arm->object = ch;
    arm->lock = &ch->lock;
    return WAKE_OBJECT;
}

static void link_to(CCChan *ch, struct arm *arm, struct link *list) {
    if (arm->fiber != NULL) ch->biased_selects = true;
    cc__list_push_back(list, &arm->link);
}

static void link_send(struct arm *arm) {
    CCChan *ch = arm->object;
    link_to(ch, arm, &ch->senders);
}

static void link_recv(struct arm *arm) {
    CCChan *ch = arm->object;
    link_to(ch, arm, &ch->receivers);
}

static void unlink_arm(struct arm *arm) {
    struct worker *w = cc__worker();
    CCChan *ch = arm->object;
    if (cc__chan_bias_enter(w, ch)) {
        cc__chan_unlink_held(ch, arm); /* does not free: a channel without references is not biased */
        cc__bias_leave(&w->runq.bias);
        return;
    }
    cc__chan_lock(ch);
    cc__chan_unlink_locked(ch, arm);
}

static void revoke_locked(struct arm *arm) {
    CCChan *ch = arm->object;
    if (cc__get(&ch->bias) != 0) cc__chan_revoke_locked(ch);
}

static bool used_locked(struct worker *w, struct arm *arm) {
    CCChan *ch = arm->object;
    cc__chan_count_locked(w, ch);
    return ch->may_bias && ch->uses >= ch->select_threshold;
}

static void adopt_locked(struct worker *w, struct arm *arm) {
    CCChan *ch = arm->object;
    ch->bias_by = BIAS_BY_SELECT;
    cc__set(&ch->bias, w->core.tag);
}

static const struct arm_bias bias = {revoke_locked, used_locked, adopt_locked};

const struct arm_ops cc__arm_send = {.look = cc__arm_look_send,
                                     .try = try_send,
                                     .prepare = prepare,
                                     .link = link_send,
                                     .unlink = unlink_arm,
                                     .bias = &bias,
                                     .freeable = true};
const struct arm_ops cc__arm_recv = {.look = cc__arm_look_recv,
                                     .try = try_recv,
                                     .prepare = prepare,
                                     .link = link_recv,
                                     .unlink = unlink_arm,
                                     .bias = &bias,
                                     .freeable = true,
                                     .rest = recv_rest};
