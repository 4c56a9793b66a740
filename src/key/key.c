/* key.c - wake keys: a record for each open key, looked up by number and checked by ticket.
 *
 *           open                wake, nobody waits
 *   FREE ----------> OPEN ------------------------> WOKEN
 *    ^                |                               |
 *    |   wake that wins a claim, a wait that ends,    |  a wait takes the value,
 *    +----------------+  close                        |  close
 *    +------------------------------------------------+
 *
 * KEY-1  Records are never unmapped, and their tickets only grow: a key of any age can be looked up, and a key whose
 *        ticket differs from the record's is stale.
 * KEY-2  Ticket, WOKEN, value and list are changed under the record's lock. Only the thread that changes a ticket from
 *        odd (open) to even (free) ends the waits that are still on the list and returns the record.
 * KEY-3  A wake returns 0 if it has claimed a wait or stored the value in the record. A wait that ended otherwise
 *        checks for such a value before it closes the key: no wake that returned 0 is lost to a deadline or a
 *        cancellation.
 */
#include "key/key.h"

#include "base/attr.h"
#include "base/mem.h"
#include "sim/sim.h"
#include "wait/arm.h"

#include <ccc/cc_wake_key.h>
#include <errno.h>

struct key {
    struct lock lock;
    _Atomic uint32_t woken;
    _Atomic uint64_t ticket; /* odd: open */
    uint64_t value;
    struct link waiters; /* of struct arm */
    struct key *next;    /* free */
    uint64_t id;         /* constant */
};

/* Chunk k holds FIRST << k records. */
enum { FIRST_SHIFT = 6, FIRST = 1 << FIRST_SHIFT, CHUNKS = 26 };

static struct {
    struct key *_Atomic chunks[CHUNKS];
    struct lock lock;   /* of what follows */
    struct key *free;   /* by `next` */
    uint64_t allocated; /* records that were ever used; the number of the next new one */
} keys;

/* ---- records ---- */

/* Of the record with that number. */
static unsigned chunk_of(uint64_t number, uint64_t *at) {
    uint64_t place = number + FIRST;
    unsigned k = 63 - (unsigned)__builtin_clzll(place);
    *at = place - (UINT64_C(1) << k);
    return k - FIRST_SHIFT;
}

/* NULL: it never existed. */
static struct key *find(uint64_t id) { /* KEY-1 */
    uint64_t at;
    if (id - 1 >= UINT64_C(1) << (FIRST_SHIFT + CHUNKS - 1)) return NULL; /* also for 0 */
    unsigned k = chunk_of(id - 1, &at);
    struct key *chunk = cc__get_acquire(&keys.chunks[k]); /* pairs with take_new_locked */
    return chunk != NULL ? &chunk[at] : NULL;
}

static struct key *take_free(void) {
    cc__lock_take(&keys.lock);
    struct key *key = keys.free;
    if (key != NULL) keys.free = key->next;
    cc__lock_release(&keys.lock);
    return key;
}

static void give_back(struct key *key) {
    cc__lock_take(&keys.lock);
    key->next = keys.free;
    keys.free = key;
    cc__lock_release(&keys.lock);
}

/* A new record. `spare`: memory for a chunk, consumed if needed. NULL: the caller has to provide a chunk of *need
 * records. */
static struct key *take_new_locked(struct key **spare, size_t *need) {
    uint64_t at, number = keys.allocated;
    unsigned k = chunk_of(number, &at);
    if (k >= CHUNKS) {
        *need = 0;
        return NULL;
    }
    struct key *chunk = cc__get(&keys.chunks[k]);
    if (chunk == NULL) {
        *need = (size_t)FIRST << k;
        if (*spare == NULL) return NULL;
        chunk = *spare;
        *spare = NULL;
        cc__set_release(&keys.chunks[k], chunk); /* its records are zero: no key matches them */
    }
    keys.allocated++;
    struct key *key = &chunk[at];
    key->id = number + 1;
    cc__list_init(&key->waiters);
    return key;
}

static struct key *take(void) {
    struct key *key = take_free(), *spare = NULL;
    size_t need = 0;
    while (key == NULL) {
        cc__lock_take(&keys.lock);
        key = take_new_locked(&spare, &need);
        cc__lock_release(&keys.lock);
        if (key != NULL || need == 0) break;
        cc__mem_free(spare); /* another thread has provided the chunk meanwhile */
        spare = cc__mem_alloc(need * sizeof *spare);
        if (spare == NULL) return NULL;
    }
    cc__mem_free(spare);
    return key;
}

void cc__key_forget(void) {
    keys.lock = (struct lock){0};
    for (uint64_t i = 0; i < keys.allocated; i++) {
        struct key *key = find(i + 1);
        key->lock = (struct lock){0};
        cc__list_init(&key->waiters); /* the waiters are not in this process */
    }
}

/* ---- under the record's lock ---- */

static bool is_open_locked(struct key *key, uint64_t ticket) {
    return (ticket & 1) != 0 && cc__get(&key->ticket) == ticket;
}

/* The record of an open key, locked; NULL: the key is closed. */
static struct key *lock_open(CCWakeKey name) {
    struct key *key = find(name.id);
    if (key == NULL || cc__get(&key->ticket) != name.ticket) return NULL;
    cc__lock_take(&key->lock);
    if (is_open_locked(key, name.ticket)) return key;
    cc__lock_release(&key->lock);
    return NULL;
}

/* Unlinks waits until it has claimed one; NULL: none is left. */
static struct arm *claim_locked(struct key *key, struct wakes *wakes, int error) {
    while (!cc__list_empty(&key->waiters)) {
        struct arm *arm = container_of(cc__list_pop_front(&key->waiters), struct arm, link);
        if (cc__arm_claim_locked(wakes, arm, error)) return arm; /* others unlink themselves */
    }
    return NULL;
}

/* Closes the key. Consumes the lock; wakes the waiters in `wakes` and all that are still on the list. */
static void close_locked(struct key *key, struct wakes *wakes) { /* KEY-2 */
    while (claim_locked(key, wakes, ESRCH) != NULL) {
    }
    cc__set(&key->woken, 0);
    cc__set(&key->ticket, cc__get(&key->ticket) + 1);
    cc__lock_release(&key->lock);
    give_back(key);
    if (cc__wakes_any(wakes)) cc__wakes_flush(wakes);
}

static void take_value_locked(struct key *key, uint64_t *value) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    if (value != NULL) *value = key->value;
    close_locked(key, &wakes);
}

static void link_locked(struct arm *arm) {
    struct key *key = arm->object;
    cc__list_push_back(&key->waiters, &arm->link);
    arm->linked = true;
}

static void unlink_locked(struct arm *arm) {
    if (arm->linked) cc__list_remove(&arm->link);
    arm->linked = false;
}

/* ---- the calls ---- */

int cc_wake_key_open(CCWakeKey *name) {
    if (name == NULL) return EINVAL;
    struct key *key = take();
    if (key == NULL) return ENOMEM;
    cc__lock_take(&key->lock); /* stale keys read the ticket */
    uint64_t ticket = cc__get(&key->ticket) + 1;
    cc__set(&key->ticket, ticket);
    cc__lock_release(&key->lock);
    *name = (CCWakeKey){key->id, ticket};
    return 0;
}

int cc_wake(CCWakeKey name, uint64_t value) { /* KEY-3 */
    cc__sim_point();
    struct key *key = lock_open(name);
    if (key == NULL) return ESRCH;
    if (cc__get(&key->woken)) {
        cc__lock_release(&key->lock);
        return ESRCH;
    }
    struct wakes wakes;
    cc__wakes_init(&wakes);
    struct arm *arm = claim_locked(key, &wakes, 0);
    if (arm != NULL) {
        if (arm->value != NULL) *(uint64_t *)arm->value = value;
        close_locked(key, &wakes);
    } else {
        key->value = value;
        cc__set(&key->woken, 1);
        cc__lock_release(&key->lock);
    }
    cc__sim_point();
    return 0;
}

int cc_wake_key_close(CCWakeKey name) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__sim_point();
    struct key *key = lock_open(name);
    if (key == NULL) return ESRCH;
    close_locked(key, &wakes);
    cc__sim_point();
    return 0;
}

/* The deadline or a cancellation has ended the wait, with `rc`. */
static int end_wait(CCWakeKey name, struct arm *arm, int rc) { /* KEY-3 */
    struct key *key = arm->object;
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&key->lock); /* the record may belong to another key by now: then the arm is not linked */
    unlink_locked(arm);
    if (!is_open_locked(key, name.ticket)) {
        cc__lock_release(&key->lock);
    } else if (cc__get(&key->woken)) {
        take_value_locked(key, arm->value);
        rc = 0;
    } else {
        close_locked(key, &wakes);
    }
    return rc;
}

static int wait_within(CCWakeKey name, uint64_t *value, uint64_t deadline, bool wait) {
    cc__sim_point();
    struct key *key = lock_open(name);
    if (key == NULL) return ESRCH;
    if (cc__get(&key->woken)) {
        take_value_locked(key, value);
        return 0;
    }
    struct waiter waiter;
    int rc = wait ? cc__waiter_init(&waiter, cc__worker(), deadline) : EAGAIN;
    if (rc != 0) {
        cc__lock_release(&key->lock);
        return rc;
    }
    struct arm arm = {.waiter = &waiter, .value = value, .object = key, .lock = &key->lock};
    link_locked(&arm);
    enum wake_reason reason = cc__wait_locked(&waiter, &key->lock, (struct wait_what){PARK_KEY, key});
    if (reason == WAKE_OBJECT) return arm.error;
    return end_wait(name, &arm, reason == WAKE_TIMER ? ETIMEDOUT : ECANCELED);
}

int cc_wake_key_wait(CCWakeKey key, uint64_t *value) {
    return wait_within(key, value, WAIT_FOREVER, true);
}

int cc_wake_key_wait_try(CCWakeKey key, uint64_t *value) {
    return wait_within(key, value, 0, false);
}

int cc_wake_key_wait_until(CCWakeKey key, uint64_t *value, CCDeadline deadline) {
    return wait_within(key, value, cc__wait_deadline(deadline), true);
}

/* ---- as an arm of a select ---- */

static CCWakeKey key_of(const CCCase *c) {
    return (CCWakeKey){c->key_id, c->key_ticket};
}

static int look(struct worker *w, const CCCase *c) {
    (void)w;
    struct key *key = find(c->key_id);
    if (key == NULL || !is_open_locked(key, c->key_ticket)) return LOOK_READY; /* with ESRCH */
    return cc__get(&key->woken) ? LOOK_READY : LOOK_NOT_READY;
}

static int try(const CCCase *c) {
    int rc = wait_within(key_of(c), c->value, 0, false);
    return rc == EAGAIN ? ARM_WAIT : rc;
}

static unsigned prepare(struct arm *arm, const CCCase *c) {
    struct key *key = find(c->key_id);
    arm->object = key;
    if (key == NULL) return 0;
    arm->lock = &key->lock;
    return WAKE_OBJECT;
}

/* Another arm ended the wait: the key stays open. */
static void unlink_arm(struct arm *arm) {
    cc__lock_take(arm->lock);
    unlink_locked(arm);
    cc__lock_release(arm->lock);
}

const struct arm_ops cc__arm_key = {
    .look = look, .try = try, .prepare = prepare, .link = link_locked, .unlink = unlink_arm};
