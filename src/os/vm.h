/* vm.h - address space: reserve, guard, give back.
 *
 * A guard is a range that faults when touched. With MADV_GUARD_INSTALL (Linux 6.13) it costs no mapping of its
 * own; where a start-up probe shows that it does not work (older kernels; emulators that accept any advice and
 * do nothing), mprotect is used, which splits a mapping each time and ends at vm.max_map_count.
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

/* False: the range is not guarded (errno tells nothing more; say it to the user). */
bool cc__vm_guard(void *p, size_t size);
/* The same for many ranges, in one system call where there is one that takes many. True: all are guarded. */
struct vm_range {
    void *at;
    size_t size;
};
bool cc__vm_guard_all(const struct vm_range *ranges, size_t n);
/* True when a guard costs no mapping. */
bool cc__vm_guard_is_free(void);
/* How many guards there may be at a time; the rest of the mappings is the program's, its allocator's and its
 * sanitizer's, which die without. */
size_t cc__vm_guards_max(void);

/* The range will be written soon: backs it at once, which is cheaper than page by page. A hint. */
void cc__vm_populate(void *p, size_t size);
/* The same for many ranges. Does nothing where that would take a system call for each: a fault is as cheap. */
void cc__vm_populate_all(const struct vm_range *ranges, size_t n);

/* How many bytes at the end of the range, in whole pages, begin at the lowest page that has been touched; 0: none
 * was, or the system does not tell. */
size_t cc__vm_touched(const void *p, size_t size);

/* The contents are not needed any more; reads as zero afterwards. Guards stay. */
void cc__vm_discard_all(const struct vm_range *ranges, size_t n);

#endif
