/* cache.c - 200 clients of a cache of 4096 values behind one mutex, which forgets the value that was not used for the
 * longest time. A client whose lookup finds nothing computes the value outside the lock, and stores it. One operation:
 * a lookup. Two workers take longer than one: nearly all the work is behind the mutex, and its data in the cache of one
 * CPU. */
#include "work.h"

enum { CLIENTS = 200, VALUES = 4096, KEYS = 16384, BUCKETS = 8192, MISS_STEPS = 20 };

struct entry {
    uint32_t key;
    uint32_t newer, older; /* a ring, with entry 0 as its head */
    uint32_t chain;        /* the next one of the bucket; 0: none */
    uint64_t value;
};

static struct {
    CCMutex lock;
    uint32_t used;
    uint32_t buckets[BUCKETS];
    struct entry entries[VALUES + 1];
    uint64_t hits, misses;
} cache;

static uint32_t *bucket_of(uint32_t key) {
    return &cache.buckets[(key * 2654435761u >> 16) % BUCKETS];
}

static uint32_t find(uint32_t key) {
    uint32_t i = *bucket_of(key);
    while (i != 0 && cache.entries[i].key != key) i = cache.entries[i].chain;
    return i;
}

static void take_out(uint32_t i) {
    struct entry *e = &cache.entries[i];
    cache.entries[e->newer].older = e->older;
    cache.entries[e->older].newer = e->newer;
}

static void put_first(uint32_t i) {
    uint32_t first = cache.entries[0].older;
    cache.entries[i].newer = 0;
    cache.entries[i].older = first;
    cache.entries[first].newer = i;
    cache.entries[0].older = i;
}

static bool look_up(uint32_t key, uint64_t *value) {
    bench_check(cc_mutex_lock(&cache.lock), "cc_mutex_lock");
    uint32_t i = find(key);
    if (i != 0) {
        take_out(i);
        put_first(i);
        *value = cache.entries[i].value;
        cache.hits++;
    } else {
        cache.misses++;
    }
    cc_mutex_unlock(&cache.lock);
    return i != 0;
}

static uint32_t make_room(void) {
    if (cache.used < VALUES) return ++cache.used;
    uint32_t oldest = cache.entries[0].newer;
    uint32_t *from = bucket_of(cache.entries[oldest].key);
    while (*from != oldest) from = &cache.entries[*from].chain;
    *from = cache.entries[oldest].chain;
    take_out(oldest);
    return oldest;
}

static void store(uint32_t key, uint64_t value) {
    bench_check(cc_mutex_lock(&cache.lock), "cc_mutex_lock");
    if (find(key) == 0) {
        uint32_t i = make_room(), *bucket = bucket_of(key);
        cache.entries[i].key = key;
        cache.entries[i].value = value;
        cache.entries[i].chain = *bucket;
        *bucket = i;
        put_first(i);
    }
    cc_mutex_unlock(&cache.lock);
}

CC_TASK(client, { uint64_t number, lookups; }) {
    uint64_t seed = self->number + 1, value;
    for (uint64_t i = 0; i < self->lookups; i++) {
        uint32_t key = (uint32_t)((work_random(&seed) % KEYS) * (work_random(&seed) % KEYS) / KEYS);
        if (!look_up(key, &value))
            store(key, work_compute(key, MISS_STEPS));
        else if (value != work_compute(key, MISS_STEPS))
            bench_fail("the value of another key");
    }
    return NULL;
}

static void *run(void *lookups) {
    CC_NURSERY(n)
    for (uint64_t i = 0; i < CLIENTS; i++)
        bench_check(CC_GO_IN(n, client, .number = i, .lookups = *(uint64_t *)lookups), "CC_GO_IN");
    return NULL;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "cache");
    uint64_t each = bench_scaled(&w.bench, 2000000) / CLIENTS + 1, listed = 0;
    work_run(&w, run, &each);
    for (uint32_t i = cache.entries[0].older; i != 0; i = cache.entries[i].older) listed++;
    if (cache.hits + cache.misses != each * CLIENTS || listed != cache.used) bench_fail("the cache is damaged");
    return work_end(&w, each * CLIENTS);
}
