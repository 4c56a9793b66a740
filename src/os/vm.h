/* vm.h - address space: reserve, guard, release.
 *
 * A guard is a range that faults when accessed. With MADV_GUARD_INSTALL (Linux 6.13) it needs no mapping of its own.
 * Where a start-up probe shows that this does not work (older kernels; emulators that accept any advice and do
 * nothing), mprotect is used, which splits a mapping each time and is limited by vm.max_map_count.
 */
#ifndef CC_OS_VM_H
#define CC_OS_VM_H

#include <stdbool.h>
#include <stddef.h>

/* Probes the guards. Before the first guard; may be called again. */
void cc__vm_init(void);

extern size_t cc__vm_page_size; /* set by cc__vm_init */
static inline size_t cc__vm_page(void) {
    return cc__vm_page_size;
}

/* Zeroed pages, backed when touched. NULL: no address space. */
void *cc__vm_reserve(size_t size);
void cc__vm_release(void *p, size_t size);

/* False: the range is not guarded (errno has no more information; the caller reports it). */
bool cc__vm_guard(void *p, size_t size);
/* The same for many ranges, in one system call where the system has one. True: all are guarded. */
struct vm_range {
    void *at;
    size_t size;
};
bool cc__vm_guard_all(const struct vm_range *ranges, size_t n);
/* Whether a guard needs no mapping. */
bool cc__vm_guard_is_free(void);
/* How many guards there may be at a time; the other mappings are for the program, its allocator and its sanitizer,
 * which would fail without them. */
size_t cc__vm_guards_max(void);

/* The range will be written soon: backs it now, which is cheaper than page by page. A hint. */
void cc__vm_populate(void *p, size_t size);
/* The same for many ranges. Does nothing where that would take a system call for each: a page fault is as cheap. */
void cc__vm_populate_all(const struct vm_range *ranges, size_t n);

/* How many bytes of the range, in whole pages, lie at or above the lowest page that was touched; 0: none was, or it is
 * unknown. */
size_t cc__vm_touched(const void *p, size_t size);

/* The contents are no longer needed; reads as zero afterwards. Guards stay. */
void cc__vm_discard_all(const struct vm_range *ranges, size_t n);

#endif
