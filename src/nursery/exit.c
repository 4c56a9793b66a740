/* exit.c - what a nursery owns until its end: exit hooks, channels to close, the arena, values. */
#include "base/mem.h"
#include "nursery/nursery.h"

#include <errno.h>
#include <string.h>

/* ---- hooks and channels ---- */

/* Hooks run in reverse order of registration, channels are closed in order. */
static int add_hook(CCNursery *n, struct hook hook) {
    struct hook *h = cc__mem_alloc_small(sizeof *h);
    if (h == NULL) return ENOMEM;
    *h = hook;
    cc__lock_take(&n->scope.lock);
    if (h->ch == NULL) {
        h->next = n->hooks;
        n->hooks = h;
    } else {
        *n->close_end = h;
        n->close_end = &h->next;
    }
    cc__lock_release(&n->scope.lock);
    return 0;
}

int cc_nursery_at_exit(CCNursery *n, void (*fn)(void *arg), void *arg) {
    return n != NULL && fn != NULL ? add_hook(n, (struct hook){.fn = fn, .arg = arg}) : EINVAL;
}

int cc_nursery_autoclose(CCNursery *n, CCChan *ch) {
    return n != NULL && ch != NULL ? add_hook(n, (struct hook){.ch = ch}) : EINVAL;
}

/* Removes the next hook, or without hooks the next channel; NULL: none. One at a time: a hook may register another. */
static struct hook *next_exit(CCNursery *n) {
    cc__lock_take(&n->scope.lock);
    struct hook **list = n->hooks != NULL ? &n->hooks : &n->closing, *h = *list;
    if (h != NULL) *list = h->next;
    if (n->closing == NULL) n->close_end = &n->closing;
    cc__lock_release(&n->scope.lock);
    return h;
}

void cc__nursery_run_exits(CCNursery *n) {
    for (struct hook *next; (next = next_exit(n)) != NULL;) {
        struct hook h = *next;
        cc__mem_free(next); /* before the call, which may panic */
        if (h.fn != NULL)
            h.fn(h.arg);
        else
            (void)cc_chan_close(h.ch);
    }
}

/* ---- the arena ---- */

enum { CHUNK = 4096 };

void *cc_nursery_alloc(CCNursery *n, size_t size) {
    if (n == NULL || size > SIZE_MAX / 2) return NULL;
    size_t rounded = (size + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    if (rounded == 0) rounded = _Alignof(max_align_t); /* a unique address */
    void *memory = NULL;
    cc__lock_take(&n->scope.lock);
    struct chunk *c = n->chunks;
    if (c == NULL || c->size - c->used < rounded) {
        size_t room = rounded > CHUNK ? rounded : CHUNK;
        c = cc__mem_alloc(sizeof *c + room);
        if (c != NULL) {
            c->size = room;
            c->next = n->chunks;
            n->chunks = c;
        }
    }
    if (c != NULL) {
        memory = c->bytes + c->used;
        c->used += rounded;
    }
    cc__lock_release(&n->scope.lock);
    return memory;
}

/* The pointer to the next one is the first member of each. */
static void free_list(void *first) {
    for (void *at = first, *next; at != NULL; at = next) {
        memcpy(&next, at, sizeof next);
        cc__mem_free(at);
    }
}

void cc__nursery_free_all(CCNursery *n) {
    free_list(n->chunks);
    free_list(n->newest);
    free_list(cc__get(&n->scope.values));
}

/* ---- values ---- */

int cc_nursery_set_value(CCNursery *n, const void *key, void *value) {
    if (n == NULL || key == NULL) return EINVAL;
    struct value *v = cc__mem_alloc_small(sizeof *v);
    if (v == NULL) return ENOMEM;
    v->key = key;
    v->value = value;
    /* Nodes are pushed to the front and never removed, so readers need no lock. */
    cc__lock_take(&n->scope.lock);
    v->next = cc__get(&n->scope.values);
    cc__set_release(&n->scope.values, v); /* pairs with cc_value */
    cc__lock_release(&n->scope.lock);
    return 0;
}

void *cc_value(const void *key) {
    for (struct scope *s = cc__scope_current(); s != NULL; s = cc__scope_around(s))
        for (struct value *v = cc__get_acquire(&s->values); v != NULL; v = v->next)
            if (v->key == key) return v->value;
    return NULL;
}
