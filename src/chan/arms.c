/* arms.c - a channel as an arm of a select. */
#include "chan/bias.h"
#include "chan/step.h"

#include <errno.h>

/* ---- a look, and the operation alone ---- */

static bool malformed(const CCCase *c) {
    return c->size != c->ch->size || (c->value == NULL && c->size > 0);
}

/* What is looked at decides by itself: a full channel has no receiver waiting, an empty one no sender (CHAN-1). */
int cc__arm_look_send(const CCCase *c) {
    CCChan *ch = c->ch;
    if (unlikely(malformed(c))) return EINVAL;
    if (ch->mode != CC_CHAN_MODE_BLOCK || cc__get(&ch->closed)) return LOOK_READY;
    return cc__get(&ch->count) < ch->capacity || !cc__list_empty(&ch->receivers) ? LOOK_READY : LOOK_NOT_READY;
}

int cc__arm_look_recv(const CCCase *c) {
    CCChan *ch = c->ch;
    if (unlikely(malformed(c))) return EINVAL;
    if (ch->pool || cc__get(&ch->closed)) return LOOK_READY;
    return cc__get(&ch->count) > 0 || !cc__list_empty(&ch->senders) ? LOOK_READY : LOOK_NOT_READY;
}

int cc__arm_do_send(const CCCase *c) {
    if (unlikely(c->ch->pool)) cc__chan_reset(c->ch, c->value);
    return cc__chan_send_now(c->ch, c->value);
}

int cc__arm_do_recv(const CCCase *c) {
    return cc__chan_recv_now(c->ch, c->value);
}

/* ---- with others ---- */

static bool poll_send_locked(struct arm *arm, struct wakes *wakes) {
    arm->error = cc__chan_send_locked(arm->object, arm->value, wakes);
    return arm->error != ARM_WAIT;
}

static bool poll_recv_locked(struct arm *arm, struct wakes *wakes) {
    arm->error = cc__chan_recv_locked(arm->object, arm->value, wakes);
    return arm->error != ARM_WAIT;
}

static void link_send_locked(struct arm *arm) {
    CCChan *ch = arm->object;
    arm->linked = true;
    cc__list_push_back(&ch->senders, &arm->link);
}

static void link_recv_locked(struct arm *arm) {
    CCChan *ch = arm->object;
    arm->linked = true;
    cc__list_push_back(&ch->receivers, &arm->link);
}

static void unlink_arm(struct arm *arm) {
    struct worker *w = cc__worker();
    CCChan *ch = arm->object;
    if (cc__chan_bias_enter(w, ch)) {
        cc__step_unlink_inside(arm);
        cc__bias_leave(&w->runq.bias);
        return;
    }
    cc__chan_lock(ch);
    cc__chan_unlink_locked(ch, arm);
}

static int create_item(struct arm *arm) {
    return cc__chan_create_item(arm->object, arm->value);
}

static void seize_locked(struct arm *arm) {
    CCChan *ch = arm->object;
    if (cc__get(&ch->bias) != 0) cc__chan_revoke_locked(ch);
}

static const struct arm_ops send_ops = {poll_send_locked, link_send_locked, unlink_arm, NULL, seize_locked};
static const struct arm_ops recv_ops = {poll_recv_locked, link_recv_locked, unlink_arm, create_item, seize_locked};

static void set_up(struct arm *arm, const CCCase *c, const struct arm_ops *ops) {
    arm->object = c->ch;
    arm->lock = &c->ch->lock;
    arm->value = c->value;
    arm->ops = ops;
}

void cc__arm_send(struct arm *arm, const CCCase *c) {
    if (unlikely(c->ch->pool)) cc__chan_reset(c->ch, c->value);
    set_up(arm, c, &send_ops);
}

void cc__arm_recv(struct arm *arm, const CCCase *c) {
    set_up(arm, c, &recv_ops);
}
