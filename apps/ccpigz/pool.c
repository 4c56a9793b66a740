/* pool.c - an owned channel of pointers, and the list of all that it has made. */
#include "pool.h"

#include <errno.h>
#include <stdlib.h>

static int make_item(void *slot, void *context) {
    struct pool *pool = context;
    void *item = pool->make(pool->context);
    if (item == NULL) return ENOMEM;
    pool->made[atomic_fetch_add(&pool->count, 1)] = item;
    *(void **)slot = item;
    return 0;
}

int pool_open(struct pool *pool, size_t capacity, void *(*make)(void *context), void (*unmake)(void *item),
              void *context, const char *name) {
    *pool = (struct pool){.capacity = capacity, .make = make, .unmake = unmake, .context = context};
    pool->made = calloc(capacity, sizeof *pool->made);
    pool->free = cc_chan_create_ex(&(CCChanConfig){
        .elem_size = sizeof(void *), .capacity = capacity, .on_create = make_item, .context = pool, .name = name});
    if (pool->made != NULL && pool->free != NULL) return 0;
    pool_close(pool);
    return ENOMEM;
}

void pool_close(struct pool *pool) { /* BUFFER-1 */
    cc_chan_free(pool->free);
    for (size_t i = 0; pool->made != NULL && i < atomic_load(&pool->count); i++) pool->unmake(pool->made[i]);
    free(pool->made);
    *pool = (struct pool){0};
}

void *pool_take(struct pool *pool) {
    void *item;
    return cc_chan_recv(pool->free, &item, sizeof item) == 0 ? item : NULL;
}

void pool_give(struct pool *pool, void *item) {
    cc_chan_send(pool->free, &item, sizeof item); /* There is room: no more were made than fit. */
}
