/* broadcast.c - sends every value to every subscriber, through a channel for each.
 *
 * BROADCAST-1  A sender holds `sending`, also while it waits for a slow subscriber: so all subscribers see the same
 *              order, and a subscriber that was seen with room still has it.
 * BROADCAST-2  `lock` guards the lists, and is never held during a wait for a subscriber. Subscribe, unsubscribe and
 *              close take only `lock`, so they never wait for a slow subscriber. A send waits with a reference to the
 *              channel; unsubscribe and close close the channel, and the send continues.
 * BROADCAST-3  A subscriber is found by its channel in a table: the cost of an unsubscribe does not depend on how many
 *              others there are. The table grows with them; without memory for that its chains get longer.
 * BROADCAST-4  A copy that on_copy has made belongs to the sender until the channel has taken it. So none is made for a
 *              subscriber without room, unless to wait for it, and one that the channel does not take is dropped.
 */
#include "base/error.h"
#include "base/mem.h"
#include "sync/list.h"

#include <ccc/cc_broadcast.h>
#include <ccc/cc_panic.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

struct subscriber {
    struct link link;
    CCChan *ch;              /* with a reference */
    struct subscriber *next; /* in its chain of the table */
};

enum { FEW_LOG2 = 2 };

struct CCBroadcast {
    CCMutex sending;         /* before `lock` */
    CCMutex lock;            /* of what follows */
    struct link subscribers; /* except those in `full` */
    struct link full;        /* no room for the current value; the sender still has to wait for them */
    CCChanConfig each;
    int (*on_copy)(void *value, void *context);
    size_t delivered; /* under `sending`: by this send */
    CCSlowMode slow;
    bool closed;
    size_t count;
    struct subscriber **table; /* BROADCAST-3: by channel, 1 << log2 chains */
    unsigned log2;
    struct subscriber *few[1 << FEW_LOG2];      /* the first table */
    _Alignas(max_align_t) unsigned char copy[]; /* under `sending`: the value for on_copy; then the name */
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
    size_t room = c->on_copy != NULL ? c->elem_size : 0, fixed = sizeof(CCBroadcast) + CC_CHAN_NAME_MAX;
    CCBroadcast *b = room <= SIZE_MAX - fixed ? cc__mem_alloc(fixed + room) : NULL;
    if (b == NULL) return refuse(ENOMEM);
    char *name = (char *)b->copy + room;
    for (size_t i = 0; c->name != NULL && i + 1 < CC_CHAN_NAME_MAX && c->name[i] != '\0'; i++) name[i] = c->name[i];
    cc__list_init(&b->subscribers);
    cc__list_init(&b->full);
    b->table = b->few;
    b->log2 = FEW_LOG2;
    b->slow = c->slow;
    b->on_copy = c->on_copy;
    b->each = (CCChanConfig){.elem_size = c->elem_size,
                             .capacity = c->capacity,
                             .mode = c->slow == CC_SLOW_DROP_OLD ? CC_CHAN_MODE_DROP_OLD : CC_CHAN_MODE_BLOCK,
                             .on_drop = c->on_drop,
                             .context = c->context,
                             .name = name};
    return b;
}

/* ---- the table; under `lock` ---- */

static struct subscriber **chain_of(struct subscriber **table, unsigned log2, const CCChan *ch) {
    return &table[(uint64_t)(uintptr_t)ch * UINT64_C(0x9e3779b97f4a7c15) >> (64 - log2)];
}

/* The link of a chain that leads to it; it holds NULL if there is no such subscriber. */
static struct subscriber **find_locked(CCBroadcast *b, const CCChan *ch) { /* BROADCAST-3 */
    struct subscriber **at = chain_of(b->table, b->log2, ch);
    while (*at != NULL && (*at)->ch != ch) at = &(*at)->next;
    return at;
}

static void enter_table(struct subscriber **table, unsigned log2, struct subscriber *s) {
    struct subscriber **chain = chain_of(table, log2, s->ch);
    s->next = *chain;
    *chain = s;
}

static void free_table(CCBroadcast *b) {
    if (b->table != b->few) cc__mem_free(b->table);
}

static void grow_locked(CCBroadcast *b) {
    unsigned log2 = b->log2 + 1;
    struct subscriber **table = cc__mem_alloc(sizeof *table << log2), *s;
    if (table == NULL) return;
    for (size_t i = 0; i < (size_t)1 << b->log2; i++)
        while ((s = b->table[i]) != NULL) {
            b->table[i] = s->next;
            enter_table(table, log2, s);
        }
    free_table(b);
    b->table = table;
    b->log2 = log2;
}

/* ---- subscribers; under `lock` ---- */

static void remove_locked(CCBroadcast *b, struct subscriber *s) {
    *find_locked(b, s->ch) = s->next;
    cc__list_remove(&s->link);
    b->count--;
    cc_chan_free(s->ch);
    cc__mem_free(s);
}

static int add_locked(CCBroadcast *b, CCChan **ch) {
    if (b->closed) return EPIPE;
    struct subscriber *s = cc__mem_alloc_small(sizeof *s);
    if (s == NULL) return ENOMEM;
    if ((s->ch = cc_chan_create_ex(&b->each)) == NULL) {
        cc__mem_free(s);
        return ENOMEM;
    }
    *ch = cc_chan_ref(s->ch);
    cc__list_push_back(&b->subscribers, &s->link);
    if (b->count++ >> b->log2 != 0) grow_locked(b);
    enter_table(b->table, b->log2, s);
    return 0;
}

CCChan *cc_broadcast_subscribe(CCBroadcast *b) {
    CCChan *ch = NULL;
    int rc = EINVAL;
    if (b != NULL) {
        (void)cc_mutex_lock_uncancellable(&b->lock);
        rc = add_locked(b, &ch);
        (void)cc_mutex_unlock(&b->lock);
    }
    if (rc != 0) cc__errno_set(rc);
    return ch;
}

int cc_broadcast_unsubscribe(CCBroadcast *b, CCChan *ch) {
    if (b == NULL || ch == NULL) return EINVAL;
    (void)cc_chan_close(ch); /* BROADCAST-2 */
    (void)cc_mutex_lock_uncancellable(&b->lock);
    struct subscriber *s = *find_locked(b, ch);
    if (s != NULL) remove_locked(b, s); /* else it was already disconnected */
    (void)cc_mutex_unlock(&b->lock);
    cc_chan_free(ch);
    return 0;
}

/* ---- copies that own something; under `sending` ---- */

struct copying {
    CCBroadcast *b;
    CCChan *ref; /* of the channel that the send waits for; NULL: `lock` is held */
    bool done;
};

/* A panic or a C++ exception has left on_copy, and so the send. */
static void end_copying(void *copying) {
    struct copying *c = copying;
    if (c->done) return;
    if (c->ref != NULL) {
        cc_chan_free(c->ref);
        (void)cc_mutex_lock_uncancellable(&c->b->lock);
    }
    cc__list_append_all(&c->b->subscribers, &c->b->full);
    (void)cc_mutex_unlock(&c->b->lock);
    (void)cc_mutex_unlock(&c->b->sending);
}

/* 0, or the callback's error. ref: NULL if `lock` is held. */
static CC_NOINLINE int make_copy(CCBroadcast *b, CCChan *ref, const void *value, size_t size) {
    struct copying copying = {b, ref, false};
    CC_DEFER(end_copying, &copying);
    if (size > 0) memcpy(b->copy, value, size);
    int rc = b->on_copy(b->copy, b->each.context);
    copying.done = true;
    return rc >= 0 ? rc : ENOMEM;
}

/* ---- sending; under `sending` ---- */

static bool is_full(CCChan *ch) {
    return !cc_chan_is_closed(ch) && cc_chan_len(ch) >= cc_chan_cap(ch);
}

static bool all_have_room_locked(CCBroadcast *b) {
    for (struct link *l = cc__get(&b->subscribers.next); l != &b->subscribers; l = cc__get(&l->next))
        if (is_full(of(l)->ch)) return false;
    return true;
}

static int put(CCChan *ch, const void *value, size_t size, const CCDeadline *until) {
    return until != NULL ? cc_chan_send_until(ch, value, size, *until) : cc_chan_send_try(ch, value, size);
}

static int put_copy(CCBroadcast *b, CCChan *ch, CCChan *ref, const void *value, size_t size, const CCDeadline *until) {
    if (until == NULL && b->slow != CC_SLOW_DROP_OLD && is_full(ch)) return EAGAIN; /* BROADCAST-4 */
    int rc = make_copy(b, ref, value, size);
    if (rc != 0) return -rc;
    rc = put(ch, b->copy, size, until);
    if (rc != 0 && b->each.on_drop != NULL) b->each.on_drop(b->copy, b->each.context);
    return rc;
}

/* Sends to one channel. As cc_chan_send_until, or _try; negative: an error of on_copy. */
static int deliver(CCBroadcast *b, CCChan *ch, CCChan *ref, const void *value, size_t size, const CCDeadline *until) {
    int rc = b->on_copy != NULL ? put_copy(b, ch, ref, value, size, until) : put(ch, value, size, until);
    b->delivered += rc == 0;
    return rc;
}

/* Sends to one subscriber. 0; EAGAIN: it has no room, so wait for it; EPIPE: no longer subscribed; ENOMEM; negative: an
 * error of on_copy. */
static int give_locked(CCBroadcast *b, struct subscriber *s, const void *value, size_t size) {
    int rc = deliver(b, s->ch, NULL, value, size, NULL);
    if (rc == EAGAIN && b->slow == CC_SLOW_DISCONNECT) (void)cc_chan_close_err(s->ch, rc = ENOBUFS);
    if (rc <= 0 || rc == EAGAIN || rc == ENOMEM) return rc;
    remove_locked(b, s); /* its channel was closed, by an unsubscribe or here */
    return EPIPE;
}

/* Sends to all that have room; moves the others to `full`. */
static int give_all_locked(CCBroadcast *b, const void *value, size_t size) {
    int rc = 0;
    /* A try may leave some in `full`, if the program itself has sent into a subscriber's channel, which is not
     * allowed. */
    cc__list_append_all(&b->subscribers, &b->full);
    for (size_t n = b->count; n > 0; n--) { /* each goes to the end of a list, or is removed */
        struct subscriber *s = of(cc__get(&b->subscribers.next));
        int one = give_locked(b, s, value, size);
        if (one == EPIPE) continue;
        cc__list_remove(&s->link);
        cc__list_push_back(one == EAGAIN ? &b->full : &b->subscribers, &s->link);
        if (one == ENOMEM || one < 0) rc = one < 0 ? -one : one;
    }
    return rc;
}

/* Takes the next one off `full` and returns a reference to its channel. NULL: none is left. */
static CCChan *take_full(CCBroadcast *b) {
    CCChan *ch = NULL;
    (void)cc_mutex_lock_uncancellable(&b->lock);
    if (!cc__list_empty(&b->full)) {
        struct subscriber *s = of(cc__get(&b->full.next));
        ch = cc_chan_ref(s->ch);
        cc__list_remove(&s->link);
        cc__list_push_back(&b->subscribers, &s->link);
    }
    (void)cc_mutex_unlock(&b->lock);
    return ch;
}

static bool is_closed(CCBroadcast *b) {
    (void)cc_mutex_lock_uncancellable(&b->lock);
    bool closed = b->closed;
    (void)cc_mutex_unlock(&b->lock);
    return closed;
}

/* Waits for one subscriber that had no room. 0 also if it has unsubscribed. */
static int wait_for(CCBroadcast *b, CCChan *ch, const void *value, size_t size, CCDeadline deadline) {
    int rc = deliver(b, ch, ch, value, size, &deadline);
    if (rc < 0) return -rc;
    if (rc == 0 || rc == ETIMEDOUT || rc == ECANCELED || rc == ENOMEM) return rc;
    return is_closed(b) ? EPIPE : 0;
}

/* Sends first to those that have room, then waits for the others, one after the other. `full` is empty at the end in
 * any case. */
static int send_held(CCBroadcast *b, const void *value, size_t size, CCDeadline deadline) { /* BROADCAST-2 */
    (void)cc_mutex_lock_uncancellable(&b->lock);
    int rc = b->closed ? EPIPE : give_all_locked(b, value, size);
    bool all_done = cc__list_empty(&b->full);
    (void)cc_mutex_unlock(&b->lock);
    if (all_done) return rc;
    for (CCChan *ch; (ch = take_full(b)) != NULL; cc_chan_free(ch))
        if (rc == 0)
            rc = wait_for(b, ch, value, size, deadline);
        else
            (void)deliver(b, ch, ch, value, size, NULL); /* it may have got room during a wait for another */
    return rc;
}

static bool good(const CCBroadcast *b, const void *value, size_t size) {
    return b != NULL && size == b->each.elem_size && (value != NULL || size == 0);
}

int cc_broadcast_send_count(CCBroadcast *b, const void *value, size_t size, size_t *delivered, CCDeadline deadline) {
    if (delivered != NULL) *delivered = 0;
    if (!good(b, value, size)) return EINVAL;
    int rc = cc_mutex_lock_until(&b->sending, deadline);
    if (rc != 0) return rc;
    b->delivered = 0;
    rc = send_held(b, value, size, deadline);
    if (delivered != NULL) *delivered = b->delivered;
    (void)cc_mutex_unlock(&b->sending);
    return rc;
}

int cc_broadcast_send_until(CCBroadcast *b, const void *value, size_t size, CCDeadline deadline) {
    return cc_broadcast_send_count(b, value, size, NULL, deadline);
}

int cc_broadcast_send(CCBroadcast *b, const void *value, size_t size) {
    return cc_broadcast_send_count(b, value, size, NULL, CC_FOREVER);
}

static int send_try_locked(CCBroadcast *b, const void *value, size_t size) {
    if (b->closed) return EPIPE;
    if (b->slow == CC_SLOW_BLOCK && !all_have_room_locked(b)) return EAGAIN; /* BROADCAST-1 */
    return give_all_locked(b, value, size);
}

int cc_broadcast_send_try(CCBroadcast *b, const void *value, size_t size) {
    if (!good(b, value, size)) return EINVAL;
    int rc = cc_mutex_lock_try(&b->sending);
    if (rc != 0) return rc;
    rc = cc_mutex_lock_try(&b->lock);
    if (rc == 0) {
        rc = send_try_locked(b, value, size);
        (void)cc_mutex_unlock(&b->lock);
    }
    (void)cc_mutex_unlock(&b->sending);
    return rc;
}

/* ---- the end ---- */

static void close_all_locked(struct link *list) {
    for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next)) (void)cc_chan_close(of(l)->ch);
}

int cc_broadcast_close(CCBroadcast *b) {
    if (b == NULL) return EINVAL;
    (void)cc_mutex_lock_uncancellable(&b->lock);
    b->closed = true;
    close_all_locked(&b->subscribers);
    close_all_locked(&b->full);
    (void)cc_mutex_unlock(&b->lock);
    return 0;
}

size_t cc_broadcast_subscribers(CCBroadcast *b) {
    if (b == NULL) return 0;
    (void)cc_mutex_lock_uncancellable(&b->lock);
    size_t count = b->count;
    (void)cc_mutex_unlock(&b->lock);
    return count;
}

void cc_broadcast_free(CCBroadcast *b) {
    if (b == NULL) return;
    (void)cc_broadcast_close(b);
    while (!cc__list_empty(&b->subscribers)) remove_locked(b, of(cc__get(&b->subscribers.next)));
    free_table(b);
    cc__mem_free(b);
}
