/* exit.c - what a nursery takes along when it ends: hooks, channels, memory. */
#include "base/mem.h"
#include "nursery/nursery.h"

#include <errno.h>
#include <string.h>

/* ---- hooks and channels ---- */

int cc_nursery_at_exit(CCNursery *n, void (*fn)(void *arg), void *arg) {
    if (n == NULL || fn == NULL) return EINVAL;
    struct hook *h = cc__mem_alloc_small(sizeof *h);
    if (h == NULL) return ENOMEM;
    h->fn = fn;
    h->arg = arg;
    cc__lock_take(&n->scope.lock);
    h->next = n->hooks;
    n->hooks = h;
    cc__lock_release(&n->scope.lock);
    return 0;
}

int cc_nursery_autoclose(CCNursery *n, CCChan *ch) {
    if (n == NULL || ch == NULL) return EINVAL;
    struct hook *h = cc__mem_alloc_small(sizeof *h);
    if (h == NULL) return ENOMEM;
    h->ch = ch;
    cc__lock_take(&n->scope.lock);
    *n->close_end = h;
    n->close_end = &h->next;
    cc__lock_release(&n->scope.lock);
    return 0;
}

/* The next one, off its list: hooks, then channels; NULL: none. One at a time, because a hook may register another. */
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
    if (rounded == 0) rounded = _Alignof(max_align_t); /* each its own address */
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

void cc__nursery_free_all(CCNursery *n) {
    for (struct chunk *c = n->chunks, *next; c != NULL; c = next) {
        next = c->next;
        cc__mem_free(c);
    }
    for (struct failure *f = n->failures, *next; f != NULL; f = next) {
        next = f->next;
        cc__mem_free(f);
    }
    for (struct value *v = cc__get(&n->scope.values), *next; v != NULL; v = next) {
        next = v->next;
        cc__mem_free(v);
    }
}

/* ---- values ---- */

int cc_nursery_set_value(CCNursery *n, const void *key, void *value) {
    if (n == NULL || key == NULL) return EINVAL;
    struct value *v = cc__mem_alloc_small(sizeof *v);
    if (v == NULL) return ENOMEM;
    v->key = key;
    v->value = value;
    /* The newest comes first, and nothing is taken away: readers need no lock. */
    cc__lock_take(&n->scope.lock);
    v->next = cc__get(&n->scope.values);
    cc__set_release(&n->scope.values, v); /* pairs with cc_value */
    cc__lock_release(&n->scope.lock);
    return 0;
}

void *cc_value(const void *key) {
    for (struct scope *s = cc__scope_current(); s != NULL; s = s->parent)
        for (struct value *v = cc__get_acquire(&s->values); v != NULL; v = v->next)
            if (v->key == key) return v->value;
    return NULL;
}
