/* latest.c - the latest value and the waiters for a newer one: a mutex and a condition variable. */
#include "base/error.h"
#include "base/mem.h"

#include <ccc/cc_broadcast.h>
#include <errno.h>
#include <string.h>

struct CCLatest {
    CCMutex mutex;
    CCCond changed;
    uint64_t version;
    size_t size;
    bool closed;
    _Alignas(max_align_t) unsigned char value[];
};

CCLatest *cc_latest_create(const void *value, size_t size) {
    bool sensible = (value != NULL || size == 0) && size <= SIZE_MAX / 2;
    CCLatest *w = sensible ? cc__mem_alloc(sizeof *w + size) : NULL;
    if (w == NULL) {
        cc__errno_set(value != NULL || size == 0 ? ENOMEM : EINVAL);
        return NULL;
    }
    w->version = 1;
    w->size = size;
    if (size > 0) memcpy(w->value, value, size);
    return w;
}

void cc_latest_free(CCLatest *w) {
    cc__mem_free(w);
}

static bool good(const CCLatest *w, const void *value, size_t size) {
    return w != NULL && size == w->size && (value != NULL || size == 0);
}

int cc_latest_set(CCLatest *w, const void *value, size_t size) {
    if (!good(w, value, size)) return EINVAL;
    (void)cc_mutex_lock_uncancellable(&w->mutex);
    int rc = w->closed ? EPIPE : 0;
    if (rc == 0) {
        if (size > 0) memcpy(w->value, value, size);
        w->version++;
    }
    (void)cc_mutex_unlock(&w->mutex);
    if (rc == 0) (void)cc_cond_broadcast(&w->changed);
    return rc;
}

static int wait_for_change(CCLatest *w, uint64_t *seen, void *value, size_t size, CCDeadline deadline, bool waits) {
    if (!good(w, value, size) || seen == NULL) return EINVAL;
    int rc = 0;
    /* A try does not yield after a long turn, as the lock of a mutex does (NEXT-3). */
    if (waits || cc_mutex_lock_try(&w->mutex) != 0) (void)cc_mutex_lock_uncancellable(&w->mutex);
    while (rc == 0 && w->version == *seen)
        rc = w->closed ? EPIPE : waits ? cc_cond_wait_until(&w->changed, &w->mutex, deadline) : EAGAIN;
    if (w->version != *seen) { /* also if it changed as the wait ended */
        rc = 0;
        *seen = w->version;
        if (size > 0) memcpy(value, w->value, size);
    }
    (void)cc_mutex_unlock(&w->mutex);
    return rc;
}

int cc_latest_wait(CCLatest *w, uint64_t *seen, void *value, size_t size) {
    return wait_for_change(w, seen, value, size, CC_FOREVER, true);
}

int cc_latest_wait_try(CCLatest *w, uint64_t *seen, void *value, size_t size) {
    return wait_for_change(w, seen, value, size, CC_FOREVER, false);
}

int cc_latest_wait_until(CCLatest *w, uint64_t *seen, void *value, size_t size, CCDeadline deadline) {
    return wait_for_change(w, seen, value, size, deadline, true);
}

int cc_latest_close(CCLatest *w) {
    if (w == NULL) return EINVAL;
    (void)cc_mutex_lock_uncancellable(&w->mutex);
    w->closed = true;
    (void)cc_mutex_unlock(&w->mutex);
    (void)cc_cond_broadcast(&w->changed);
    return 0;
}
