/* local.c - values that belong to one fiber or one OS thread.
 *
 * A key is a slot with a generation, so that a deleted key matches nothing. The values of a fiber are a small table in
 * the order in which they were first set: few fibers have many, and destructors run in that order.
 *
 * LOCAL-1  Only its fiber (thread) accesses a table.
 * LOCAL-2  A value is taken out of the table before its destructor is called: it is destroyed once.
 */
#include "base/mem.h"
#include "task/task.h"

#include <ccc/cc_local.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

typedef void (*destructor_fn)(void *value);

/* ---- keys ---- */

enum { SLOT_BITS = 8, FIRST_SIZE = 4 };

_Static_assert(1 << SLOT_BITS == CC_LOCAL_KEYS_MAX, "a slot's number fits");

static struct {
    struct lock lock;
    struct {
        _Atomic CCLocalKey key; /* 0: free */
        uint32_t generation;    /* lock */
        destructor_fn _Atomic destructor;
    } slots[CC_LOCAL_KEYS_MAX];
} keys;

void cc__local_forget(void) {
    keys.lock = (struct lock){0};
}

static uint32_t slot_of(CCLocalKey key) {
    return key & (CC_LOCAL_KEYS_MAX - 1);
}

static bool exists(CCLocalKey key) {
    return key != 0 && cc__get_acquire(&keys.slots[slot_of(key)].key) == key; /* pairs with its creation */
}

/* ---- tables ---- */

struct fiber_extra {
    uint32_t count, size;
    uint32_t next;   /* destructors: how many are left in this round */
    uint32_t rounds; /* destructors: how many have begun */
    struct local {
        CCLocalKey key;
        void *value;
    } * values;
};

static struct local *find(struct fiber_extra *x, CCLocalKey key) {
    for (uint32_t i = 0; i < x->count; i++)
        if (x->values[i].key == key) return &x->values[i];
    return NULL;
}

/* Removes the values of deleted keys and keeps the order. Not while destructors run. */
static void compact(struct fiber_extra *x) {
    uint32_t kept = 0;
    if (x->rounds > 0) return;
    for (uint32_t i = 0; i < x->count; i++)
        if (exists(x->values[i].key)) x->values[kept++] = x->values[i];
    x->count = kept;
}

static bool grow(struct fiber_extra *x) {
    compact(x);
    if (x->count < x->size) return true;
    uint32_t size = x->size > 0 ? x->size * 2 : FIRST_SIZE;
    struct local *values = cc__mem_alloc_small(size * sizeof *values);
    if (values == NULL) return false;
    if (x->count > 0) memcpy(values, x->values, x->count * sizeof *values);
    cc__mem_free(x->values);
    x->values = values;
    x->size = size;
    return true;
}

static bool add(struct fiber_extra *x, CCLocalKey key, void *value) {
    if (x->count == x->size && !grow(x)) return false;
    x->values[x->count++] = (struct local){key, value};
    return true;
}

/* A round of destructors, or the rest of one after a panic. */
static bool destroy_round(struct fiber_extra *x) { /* LOCAL-2 */
    if (x->next == 0) {
        bool any = false;
        for (uint32_t i = 0; i < x->count; i++) any |= x->values[i].value != NULL;
        if (!any || x->rounds == CC_LOCAL_ROUNDS) return false;
        x->rounds++;
        x->next = x->count;
    }
    while (x->next > 0) {
        struct local *l = &x->values[--x->next];
        void *value = l->value;
        CCLocalKey key = l->key;
        l->value = NULL;
        /* Read the destructor before the key: if the key still exists then, this is its destructor. */
        destructor_fn destructor = cc__get_acquire(&keys.slots[slot_of(key)].destructor);
        if (value != NULL && destructor != NULL && exists(key)) destructor(value);
    }
    return true;
}

static void free_table(struct fiber_extra *x) {
    cc__mem_free(x->values);
    cc__mem_free(x);
}

bool cc__upcall_locals_destroy(struct fiber_cold *cold) {
    return destroy_round(cold->extra);
}

void cc__upcall_locals_free(struct fiber_cold *cold) {
    free_table(cold->extra);
    cold->extra = NULL;
}

/* ---- OS threads ---- */

/* Created at first use, under keys.lock; if the system has none left, the next use retries. */
static pthread_key_t at_thread_end;
static bool have_key;

static _Thread_local struct fiber_extra *threads_own __attribute__((tls_model("initial-exec")));

static void thread_ends(void *x) {
    while (destroy_round(x)) {
    }
    threads_own = NULL;
    free_table(x);
}

/* Never inlined: a fiber may change threads, so the compiler must not cache the address. */
static CC_NOINLINE struct fiber_extra **extra_of_thread(void) {
    struct fiber_extra **at = &threads_own;
    __asm__ volatile("" : "+r"(at));
    return at;
}

static bool register_thread(struct fiber_extra *x) {
    cc__lock_take(&keys.lock);
    if (!have_key) have_key = pthread_key_create(&at_thread_end, thread_ends) == 0;
    bool registered = have_key && pthread_setspecific(at_thread_end, x) == 0;
    cc__lock_release(&keys.lock);
    return registered;
}

/* ---- the interface ---- */

static struct fiber_extra **extra_here(bool *fiber) { /* LOCAL-1 */
    struct fiber *self = cc__sched_current(cc__worker());
    *fiber = self != NULL;
    return self != NULL ? &cc__get(&cc__get(&self->stack)->cold)->extra : extra_of_thread();
}

int cc_local_key_create(CCLocalKey *key, destructor_fn destructor) {
    if (key == NULL) return EINVAL;
    *key = 0;
    cc__lock_take(&keys.lock);
    uint32_t i = 0;
    while (i < CC_LOCAL_KEYS_MAX && cc__get(&keys.slots[i].key) != 0) i++;
    if (i < CC_LOCAL_KEYS_MAX) {
        uint32_t generation = ++keys.slots[i].generation & (UINT32_MAX >> SLOT_BITS);
        if (generation == 0) generation = keys.slots[i].generation = 1; /* so that no key is 0 */
        *key = generation << SLOT_BITS | i;
        cc__set_release(&keys.slots[i].destructor, destructor); /* pairs with destroy_round */
        cc__set_release(&keys.slots[i].key, *key);              /* pairs with exists() */
    }
    cc__lock_release(&keys.lock);
    return i < CC_LOCAL_KEYS_MAX ? 0 : EAGAIN;
}

int cc_local_key_delete(CCLocalKey key) {
    cc__lock_take(&keys.lock);
    bool found = exists(key);
    if (found) cc__set_release(&keys.slots[slot_of(key)].key, 0);
    cc__lock_release(&keys.lock);
    return found ? 0 : EINVAL;
}

int cc_local_set(CCLocalKey key, void *value) {
    bool fiber;
    if (!exists(key)) return EINVAL;
    struct fiber_extra **at = extra_here(&fiber), *x = *at;
    struct local *l = x != NULL ? find(x, key) : NULL;
    if (l != NULL) {
        l->value = value;
        return 0;
    }
    if (value == NULL) return 0;
    if (x == NULL) {
        x = cc__mem_alloc_small(sizeof *x);
        if (x == NULL) return ENOMEM;
        if (!fiber && !register_thread(x)) {
            cc__mem_free(x);
            return ENOMEM;
        }
        *at = x;
    }
    return add(x, key, value) ? 0 : ENOMEM;
}

void *cc_local_get(CCLocalKey key) {
    bool fiber;
    if (!exists(key)) return NULL;
    struct fiber_extra *x = *extra_here(&fiber);
    struct local *l = x != NULL ? find(x, key) : NULL;
    return l != NULL ? l->value : NULL;
}
