/* buffers.c - the shared pool of buffers. */
#include "net/buffers.h"

#include "base/mem.h"
#include "base/san.h"
#include "sync/lock.h"

static struct {
    struct lock lock;
    void *kept[BUFFERS_KEPT];
    unsigned count;
} pool;

void *cc__buffer_take(size_t size) {
    void *buffer = NULL;
    if (size == BUFFER_SIZE) {
        cc__lock_take(&pool.lock);
        if (pool.count > 0) buffer = pool.kept[--pool.count];
        cc__lock_release(&pool.lock);
        if (buffer != NULL) cc__san_forbid(buffer, size, false);
    }
    return buffer != NULL ? buffer : cc__mem_alloc_stack(size);
}

void cc__buffer_give(void *buffer, size_t size) {
    if (buffer == NULL) return;
    if (size == BUFFER_SIZE) {
        cc__lock_take(&pool.lock);
        if (pool.count < BUFFERS_KEPT) {
            cc__san_forbid(buffer, size, true);
            pool.kept[pool.count++] = buffer;
            buffer = NULL;
        }
        cc__lock_release(&pool.lock);
    }
    cc__mem_free(buffer);
}

void cc__buffers_forget(void) {
    pool.lock = (struct lock){0};
}
