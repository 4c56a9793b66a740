/* broadcast.c - every value to every subscriber: a channel for each.
 *
 * BROADCAST-1  `sending` is held by whoever sends, subscribes or closes: so all subscribers see the same order, and a
 *              subscriber that had room a moment ago has it still. It may be held over a wait for a slow subscriber.
 * BROADCAST-2  An unsubscribe closes the channel before it asks for `sending`: a send that waits there goes on.
 */
#include "base/error.h"
#include "base/mem.h"
#include "sync/list.h"

#include <ccc/cc_broadcast.h>
#include <errno.h>

struct subscriber {
    struct link link;
    CCChan *ch; /* our reference */
};

struct CCBroadcast {
    CCMutex sending;
    struct link subscribers;
    CCChanConfig each;
    CCSlowMode slow;
    bool closed;
    size_t count;
};

static struct subscriber *of(struct link *link) {
    return container_of(link, struct subscriber, link);
}

static CCBroadcast *refuse(int error) {
    cc__errno_set(error);
    return NULL;
}

CCBroadcast *cc_broadcast_create(const CCBroadcastConfig *c) {
    if (c == NULL || c->capacity == 0 || cc__reserved_used(c)) return refuse(EINVAL);
    if (c->slow != CC_SLOW_BLOCK && c->slow != CC_SLOW_DROP_OLD && c->slow != CC_SLOW_DISCONNECT) return refuse(EINVAL);
    CCBroadcast *b = cc__mem_alloc(sizeof *b + CC_CHAN_NAME_MAX);
    if (b == NULL) return refuse(ENOMEM);
    char *name = (char *)(b + 1);
    for (size_t i = 0; c->name != NULL && i + 1 < CC_CHAN_NAME_MAX && c->name[i] != '\0'; i++) name[i] = c->name[i];
    cc__list_init(&b->subscribers);
    b->slow = c->slow;
    b->each = (CCChanConfig){.elem_size = c->elem_size,
                             .capacity = c->capacity,
                             .mode = c->slow == CC_SLOW_DROP_OLD ? CC_CHAN_MODE_DROP_OLD : CC_CHAN_MODE_BLOCK,
                             .on_drop = c->on_drop,
                             .context = c->context,
                             .name = name};
    return b;
}

/* ---- subscribers; under `sending` ---- */

static void remove_held(CCBroadcast *b, struct subscriber *s) {
    cc__list_remove(&s->link);
    b->count--;
    cc_chan_free(s->ch);
    cc__mem_free(s);
}

CCChan *cc_broadcast_subscribe(CCBroadcast *b) {
    CCChan *ch = NULL;
    if (b == NULL) {
        cc__errno_set(EINVAL);
        return NULL;
    }
    int rc = cc_mutex_lock(&b->sending);
    if (rc == 0) {
        struct subscriber *s = b->closed ? NULL : cc__mem_alloc_small(sizeof *s);
        rc = b->closed ? EPIPE : ENOMEM;
        if (s != NULL && (s->ch = cc_chan_create_ex(&b->each)) == NULL) {
            cc__mem_free(s);
        } else if (s != NULL) {
            ch = cc_chan_ref(s->ch);
            cc__list_push_back(&b->subscribers, &s->link);
            b->count++;
        }
        (void)cc_mutex_unlock(&b->sending);
    }
    if (ch == NULL) cc__errno_set(rc);
    return ch;
}

int cc_broadcast_unsubscribe(CCBroadcast *b, CCChan *ch) {
    if (b == NULL || ch == NULL) return EINVAL;
    (void)cc_chan_close(ch); /* BROADCAST-2 */
    (void)cc_mutex_lock_uncancellable(&b->sending);
    struct link *l = cc__get(&b->subscribers.next);
    while (l != &b->subscribers && of(l)->ch != ch) l = cc__get(&l->next);
    if (l != &b->subscribers) remove_held(b, of(l)); /* else it was disconnected */
    (void)cc_mutex_unlock(&b->sending);
    cc_chan_free(ch);
    return 0;
}

/* ---- sending; under `sending` ---- */

static bool all_have_room_held(CCBroadcast *b) {
    for (struct link *l = cc__get(&b->subscribers.next); l != &b->subscribers; l = cc__get(&l->next)) {
        CCChan *ch = of(l)->ch;
        if (!cc_chan_is_closed(ch) && cc_chan_len(ch) >= cc_chan_cap(ch)) return false;
    }
    return true;
}

/* One subscriber. 0; EAGAIN: it has no room, and is to be waited for; EPIPE: it is none any more; ENOMEM. */
static int give_held(CCBroadcast *b, struct subscriber *s, const void *value, size_t size) {
    int rc = cc_chan_send_try(s->ch, value, size);
    if (rc == EAGAIN && b->slow == CC_SLOW_DISCONNECT) (void)cc_chan_close_err(s->ch, rc = ENOBUFS);
    if (rc == 0 || rc == EAGAIN || rc == ENOMEM) return rc;
    remove_held(b, s); /* it was closed, by an unsubscribe or here */
    return EPIPE;
}

/* Those that have room first; then the others are waited for, one after the other. */
static int send_held(CCBroadcast *b, const void *value, size_t size, CCDeadline deadline) {
    struct link full, *l;
    cc__list_init(&full);
    int rc = 0;
    for (size_t n = b->count; n > 0; n--) { /* each goes to the end of a list, or is gone */
        struct subscriber *s = of(cc__get(&b->subscribers.next));
        int one = give_held(b, s, value, size);
        if (one == EPIPE) continue;
        cc__list_remove(&s->link);
        cc__list_push_back(one == EAGAIN ? &full : &b->subscribers, &s->link);
        if (one == ENOMEM) rc = one;
    }
    while ((l = cc__get(&full.next)) != &full) {
        struct subscriber *s = of(l);
        int one = rc == 0 ? cc_chan_send_until(s->ch, value, size, deadline) : 0;
        cc__list_remove(&s->link);
        cc__list_push_back(&b->subscribers, &s->link);
        if (one == ETIMEDOUT || one == ECANCELED || one == ENOMEM) rc = one;
    }
    return rc;
}

static bool good(const CCBroadcast *b, const void *value, size_t size) {
    return b != NULL && size == b->each.elem_size && (value != NULL || size == 0);
}

int cc_broadcast_send_until(CCBroadcast *b, const void *value, size_t size, CCDeadline deadline) {
    if (!good(b, value, size)) return EINVAL;
    int rc = cc_mutex_lock_until(&b->sending, deadline);
    if (rc != 0) return rc;
    rc = b->closed ? EPIPE : send_held(b, value, size, deadline);
    (void)cc_mutex_unlock(&b->sending);
    return rc;
}

int cc_broadcast_send(CCBroadcast *b, const void *value, size_t size) {
    return cc_broadcast_send_until(b, value, size, CC_FOREVER);
}

int cc_broadcast_send_try(CCBroadcast *b, const void *value, size_t size) {
    if (!good(b, value, size)) return EINVAL;
    int rc = cc_mutex_lock_try(&b->sending);
    if (rc != 0) return rc;
    if (b->closed)
        rc = EPIPE;
    else if (b->slow == CC_SLOW_BLOCK && !all_have_room_held(b)) /* BROADCAST-1 */
        rc = EAGAIN;
    else
        rc = send_held(b, value, size, CC_PASSED);
    (void)cc_mutex_unlock(&b->sending);
    return rc;
}

/* ---- the end ---- */

int cc_broadcast_close(CCBroadcast *b) {
    if (b == NULL) return EINVAL;
    (void)cc_mutex_lock_uncancellable(&b->sending);
    b->closed = true;
    for (struct link *l = cc__get(&b->subscribers.next); l != &b->subscribers; l = cc__get(&l->next))
        (void)cc_chan_close(of(l)->ch);
    (void)cc_mutex_unlock(&b->sending);
    return 0;
}

size_t cc_broadcast_subscribers(CCBroadcast *b) {
    if (b == NULL) return 0;
    (void)cc_mutex_lock_uncancellable(&b->sending);
    size_t count = b->count;
    (void)cc_mutex_unlock(&b->sending);
    return count;
}

void cc_broadcast_free(CCBroadcast *b) {
    if (b == NULL) return;
    (void)cc_broadcast_close(b);
    while (!cc__list_empty(&b->subscribers)) remove_held(b, of(cc__get(&b->subscribers.next)));
    cc__mem_free(b);
}
