/* state.c - the memory of the explored code: saved once, restored before each run.
 *
 * There are three kinds. Of the writable segment of the shared object and the arena of allocations, the blocks that
 * were written are restored: every write is known, because atomics go through the stubs and plain accesses are
 * instrumented. The used parts of stacks are restored as a whole. Memory that is allocated during a run is zeroed when
 * it is allocated, and not reused within the run: freed memory stays inaccessible.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK = 256, PAGE = 4096 };
static const size_t ARENA = (size_t)4 << 20, LARGE = (size_t)256 << 20;

/* A range of memory with its image and the blocks that differ from it. */
struct range {
    char *from;
    size_t size;
    char *image;
    uint8_t *dirty;
    uint32_t *list;
    uint32_t count;
};
static struct range segment, arena;

static size_t arena_used, saved_arena_used;
static char *large; /* stacks: as they are, pages that were in use are saved */
static size_t large_used, saved_large_used;
static struct saved_page {
    char *at;
    char image[PAGE];
} * pages;
static size_t page_count;
static struct vthread saved_threads[THREADS_MAX];
static uint64_t saved_clock;
static uint8_t *freed; /* a byte for each 16 of the arena */
static char *freed_list[1024];
static unsigned freed_count, saved_freed_count;

static void *map(size_t size) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) abort();
    return p;
}

static void range_open(struct range *r, char *from, size_t size) {
    *r = (struct range){from, size, map(size + BLOCK), map(size / BLOCK + 2), map((size / BLOCK + 2) * 4), 0};
}

/* As after loading; of the segment only. */
static char *pristine;

void state_open(void *from, size_t size) {
    range_open(&segment, from, size);
    range_open(&arena, map(ARENA), ARENA);
    large = map(LARGE);
    freed = map(ARENA / 16);
    pristine = map(size);
    memcpy(pristine, from, size);
}

void state_forget(void) {
    memcpy(segment.from, pristine, segment.size);
    memset(arena.from, 0, arena_used);
    memset(freed, 0, ARENA / 16);
    madvise(large, large_used + PAGE, MADV_DONTNEED);
    madvise(threads_stack(0), (size_t)THREADS_MAX * STACK_SIZE, MADV_DONTNEED);
    arena_used = large_used = 0;
    freed_count = 0;
}

static bool is_zero(const char *p) {
    for (size_t i = 0; i < PAGE; i += 8)
        if (*(const uint64_t *)(const void *)(p + i) != 0) return false;
    return true;
}

static void save_pages(char *from, size_t size) {
    for (size_t at = 0; at < size; at += PAGE) {
        if (is_zero(from + at)) continue;
        pages = realloc(pages, (page_count + 1) * sizeof *pages);
        if (pages == NULL) abort();
        pages[page_count].at = from + at;
        memcpy(pages[page_count++].image, from + at, PAGE);
    }
}

static void range_save(struct range *r, size_t size) {
    memcpy(r->image, r->from, size);
    memset(r->dirty, 0, r->size / BLOCK + 1);
    r->count = 0;
}

void state_save(void) {
    range_save(&segment, segment.size);
    range_save(&arena, arena.size);
    page_count = 0;
    save_pages(large, large_used);
    save_pages(threads_stack(0), (size_t)THREADS_MAX * STACK_SIZE);
    memcpy(saved_threads, threads, sizeof threads);
    saved_arena_used = arena_used;
    saved_large_used = large_used;
    saved_clock = clock_now;
    saved_freed_count = freed_count;
}

static void range_restore(struct range *r) {
    for (uint32_t i = 0; i < r->count; i++) {
        size_t at = (size_t)r->list[i] * BLOCK, size = r->size - at < BLOCK ? r->size - at : BLOCK;
        memcpy(r->from + at, r->image + at, size);
        r->dirty[r->list[i]] = 0;
    }
    r->count = 0;
}

void state_restore(void) {
    while (freed_count > saved_freed_count) {
        char *p = freed_list[--freed_count];
        size_t size = *(size_t *)(void *)(p - 64);
        memset(freed + (p - arena.from) / 16, 0, (size + 15) / 16);
    }
    range_restore(&segment);
    range_restore(&arena);
    for (size_t i = 0; i < page_count; i++) memcpy(pages[i].at, pages[i].image, PAGE);
    memcpy(threads, saved_threads, sizeof threads);
    arena_used = saved_arena_used;
    large_used = saved_large_used;
    clock_now = saved_clock;
}

static void mark(struct range *r, size_t at, size_t size) {
    for (size_t b = at / BLOCK; b <= (at + size - 1) / BLOCK; b++)
        if (!r->dirty[b]) {
            r->dirty[b] = 1;
            r->list[r->count++] = (uint32_t)b;
        }
}

void state_dirty(const volatile void *addr, size_t size) {
    size_t at = (size_t)((const volatile char *)addr - segment.from);
    if (at < segment.size) {
        mark(&segment, at, size);
        return;
    }
    at = (size_t)((const volatile char *)addr - arena.from);
    if (at < arena.size) mark(&arena, at, size);
}

void ex_touch(const volatile void *addr, size_t size) {
    state_dirty(addr, size);
}

bool state_freed(const volatile void *addr) {
    size_t at = (size_t)((const volatile char *)addr - arena.from);
    return at < arena.size && freed[at / 16] != 0;
}

/* A line before each block holds its size. */
void *ex_alloc(size_t size) {
    size_t whole = 64 + ((size + 63) & ~(size_t)63);
    if (arena_used + whole > arena.size) ex_fail("more than %zu bytes of allocations", arena.size);
    char *p = arena.from + arena_used + 64;
    arena_used += whole;
    state_dirty(p - 64, whole);
    memset(p - 64, 0, whole);
    *(size_t *)(void *)(p - 64) = size;
    return p;
}

void ex_free(void *p) {
    if (p == NULL) return;
    if (state_freed(p)) ex_fail("memory is freed twice (%p)", p);
    size_t size = *(size_t *)(void *)((char *)p - 64);
    if (exploring && current >= 0) {
        memory_freed(p, size);
        races_freed(p, size, __builtin_return_address(0));
    }
    if (freed_count == sizeof freed_list / sizeof *freed_list) return; /* no more is watched */
    freed_list[freed_count++] = p;
    memset(freed + ((char *)p - arena.from) / 16, 1, (size + 15) / 16);
}

/* Small ranges hold records: from the arena. Large ones hold stacks, and are not watched. */
static const size_t SMALL = (size_t)1 << 20;

void ex_release(void *p, size_t size) {
    if (size <= SMALL) ex_free(p);
}

void *ex_reserve(size_t size) {
    if (size <= SMALL) return ex_alloc(size);
    if (large_used + size > LARGE) ex_fail("more than %zu bytes of stacks", LARGE);
    char *p = large + large_used;
    large_used += size;
    return p;
}
