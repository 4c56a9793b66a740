/* races.c - plain accesses, as the compiler's race instrumentation reports them: which memory a run has written, which
 * accesses race, which use freed memory.
 *
 * The explored code is compiled with -fsanitize=thread, and this file replaces the sanitizer's library. A race is a
 * write and another access of one byte by two threads that are not ordered by release and acquire, in any schedule: so
 * a missing release is found although the run itself succeeds. Freeing memory counts as a write of all of it. For
 * another thread's frame, whose return is not visible, see THREADS-5.
 */
#include "core.h"

#include <dlfcn.h>
#include <string.h>

enum { CELLS = 1 << 13, RECORDS = 8 };

struct access {
    uint32_t when;
    uint8_t thread, mask;
    bool write;
    const void *where;
};
struct cell {
    uintptr_t at; /* address / 8 */
    uint32_t run;
    uint8_t count, next;
    struct access list[RECORDS];
};
static struct cell cells[CELLS];
static uint32_t run_number = 1;
static uint16_t in_use[CELLS]; /* in this run */
static unsigned in_use_count;

void races_begin(void) {
    run_number++;
    in_use_count = 0;
}

static struct cell *find(uintptr_t at) {
    size_t i = at * UINT64_C(0x9e3779b97f4a7c15) >> 51;
    for (int probes = 0; cells[i].run == run_number && cells[i].at != at; probes++) {
        if (probes == 64) break; /* full: forgets an old one */
        i = (i + 1) % CELLS;
    }
    struct cell *c = &cells[i];
    if (c->run != run_number || c->at != at) {
        if (c->run != run_number) in_use[in_use_count++] = (uint16_t)i;
        c->at = at;
        c->run = run_number;
        c->count = c->next = 0;
    }
    return c;
}

/* Where in the source, if addr2line is there; its offset in the object else. */
const char *races_where(const void *where) {
    static char texts[4][160];
    static unsigned turn;
    char *text = texts[turn++ % 4], command[400];
    Dl_info info;
    if (dladdr(where, &info) == 0) return "?";
    size_t offset = (size_t)((const char *)where - (const char *)info.dli_fbase) - 1;
    snprintf(text, sizeof texts[0], "%s+%#zx", info.dli_fname, offset);
    snprintf(command, sizeof command, "addr2line -e '%s' %#zx 2>/dev/null", info.dli_fname, offset);
    char line[160] = "";
    FILE *pipe = popen(command, "r");
    if (pipe == NULL) return text;
    if (fgets(line, sizeof line, pipe) != NULL && line[0] != '?') {
        line[strcspn(line, "\n")] = '\0';
        const char *from = strstr(line, "/src/");
        if (from == NULL) from = strstr(line, "/tests/");
        snprintf(text, sizeof texts[0], "%s", from != NULL ? from + 1 : line);
    }
    pclose(pipe);
    return text;
}

static void report(const struct access *before, const char *what, const void *where, const void *addr) {
    ex_fail("a race on %p: %s by thread %d at %s, %s by thread %d at %s, not ordered", addr,
            before->write ? "written" : "read", before->thread, races_where(before->where), what, current,
            races_where(where));
}

static void look(struct cell *c, uint8_t mask, bool write, const void *where, const void *addr) {
    struct vthread *t = &threads[current];
    struct access *own = NULL;
    for (int i = 0; i < c->count; i++) {
        struct access *a = &c->list[i];
        if (a->thread == current) {
            if (a->write == write && a->mask == mask) own = a;
        } else if ((a->mask & mask) != 0 && (a->write || write) && a->when > t->ordered.at[a->thread]) {
            report(a, write ? "written" : "read", where, addr);
        }
    }
    if (own == NULL) own = c->count < RECORDS ? &c->list[c->count++] : &c->list[c->next++ % RECORDS];
    /* What follows the last release is not published by it. */
    *own = (struct access){t->ordered.at[current] + 1, (uint8_t)current, mask, write, where};
}

void races_freed(const void *from, size_t size, const void *where) {
    if (!settings.races) return;
    uintptr_t first = (uintptr_t)from / 8, last = ((uintptr_t)from + size - 1) / 8;
    for (unsigned k = 0; k < in_use_count; k++) {
        const struct cell *c = &cells[in_use[k]];
        if (c->at < first || c->at > last) continue;
        for (int i = 0; i < c->count; i++) {
            const struct access *a = &c->list[i];
            if (a->thread != current && a->when > threads[current].ordered.at[a->thread])
                report(a, "freed", where, from);
        }
    }
}

static void accessed(const volatile void *addr, size_t size, bool write, const void *where) {
    if (write) state_dirty(addr, size);
    if (!exploring || current < 0) return;
    if (threads_foreign_frame(addr)) threads_point(addr, write);
    if (state_freed(addr)) ex_fail("memory that was freed is %s at %s", write ? "written" : "read", races_where(where));
    if (threads_left_frame(addr))
        ex_fail("a frame that its thread has left is %s at %s", write ? "written" : "read", races_where(where));
    if (!settings.races || (size_t)((const volatile char *)addr - offer.tls) < offer.tls_size) return;
    uintptr_t at = (uintptr_t)addr, end = at + size;
    while (at < end) {
        unsigned from = at % 8, n = end - at < 8 - from ? (unsigned)(end - at) : 8 - from;
        look(find(at / 8), (uint8_t)(((1u << n) - 1) << from), write, where, (const void *)addr);
        at += n;
    }
}

#define WHERE __builtin_return_address(0)
#define ACCESS(N)                                    \
    void __tsan_read##N(void *p);                    \
    void __tsan_read##N(void *p) {                   \
        if (exploring) accessed(p, N, false, WHERE); \
    }                                                \
    void __tsan_write##N(void *p);                   \
    void __tsan_write##N(void *p) {                  \
        accessed(p, N, true, WHERE);                 \
    }                                                \
    void __tsan_unaligned_read##N(void *p);          \
    void __tsan_unaligned_read##N(void *p) {         \
        if (exploring) accessed(p, N, false, WHERE); \
    }                                                \
    void __tsan_unaligned_write##N(void *p);         \
    void __tsan_unaligned_write##N(void *p) {        \
        accessed(p, N, true, WHERE);                 \
    }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __tsan_read_range(void *p, size_t size);
void __tsan_read_range(void *p, size_t size) {
    if (size > 0) accessed(p, size, false, WHERE);
}
void __tsan_write_range(void *p, size_t size);
void __tsan_write_range(void *p, size_t size) {
    if (size > 0) accessed(p, size, true, WHERE);
}
void __tsan_init(void);
void __tsan_init(void) {}
void __tsan_func_entry(void *p);
void __tsan_func_entry(void *p) {
    (void)p;
}
void __tsan_func_exit(void);
void __tsan_func_exit(void) {}

void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size) {
    if (size > 0) {
        accessed(from, size, false, WHERE);
        accessed(to, size, true, WHERE);
    }
    return memcpy(to, from, size);
}
void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size) {
    if (size > 0) {
        accessed(from, size, false, WHERE);
        accessed(to, size, true, WHERE);
    }
    return memmove(to, from, size);
}
void *__wrap_memset(void *to, int c, size_t size);
void *__wrap_memset(void *to, int c, size_t size) {
    if (size > 0) accessed(to, size, true, WHERE);
    return memset(to, c, size);
}
