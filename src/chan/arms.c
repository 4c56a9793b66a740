/* arms.c - a channel as an arm of a select. */
#include "chan/chan.h"

#include <errno.h>

static bool poll_send_locked(struct arm *arm, struct wakes *wakes) {
    arm->error = cc__chan_send_locked(arm->object, arm->value, wakes);
    return arm->error != CHAN_WAIT;
}

static bool poll_recv_locked(struct arm *arm, struct wakes *wakes) {
    arm->error = cc__chan_recv_locked(arm->object, arm->value, wakes);
    return arm->error != CHAN_WAIT;
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

static void leave_locked(struct arm *arm) {
    cc__chan_leave_locked(arm->object, arm);
}

static const struct arm_ops send_ops = {poll_send_locked, link_send_locked, leave_locked};
static const struct arm_ops recv_ops = {poll_recv_locked, link_recv_locked, leave_locked};

static int set_up(struct arm *arm, const CCCase *c, const struct arm_ops *ops) {
    CCChan *ch = c->ch;
    if (c->size != ch->size || (c->value == NULL && c->size > 0)) return EINVAL;
    arm->object = ch;
    arm->lock = &ch->lock;
    arm->value = c->value;
    arm->ops = ops;
    return 0;
}

int cc__arm_send(struct arm *arm, const CCCase *c) {
    return set_up(arm, c, &send_ops);
}

int cc__arm_recv(struct arm *arm, const CCCase *c) {
    /* A pool makes items outside its lock, which a select cannot. */
    if (c->ch->config.on_create != NULL) return EINVAL;
    return set_up(arm, c, &recv_ops);
}
