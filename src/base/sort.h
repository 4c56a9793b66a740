/* sort.h - sorts in place. The C library's qsort may allocate memory, and leaves copies of the elements there: the
 * search for unreachable fibers would take them for references.
 */
#ifndef CC_BASE_SORT_H
#define CC_BASE_SORT_H

#include "base/attr.h"

#include <stddef.h>
#include <stdint.h>

CC_INLINE void cc__sort_swap(uint64_t *a, uint64_t *b, size_t words) {
    for (size_t i = 0; i < words; i++) {
        uint64_t word = a[i];
        a[i] = b[i];
        b[i] = word;
    }
}

/* n elements of `size` bytes, a multiple of 8. A heap sort: its worst case is n log n. */
CC_INLINE void cc__sort(void *elements, size_t n, size_t size, int (*compare)(const void *a, const void *b)) {
    size_t words = size / sizeof(uint64_t);
    uint64_t *at = elements;
    for (size_t next = n / 2, end = n; end > 1;) {
        if (next > 0) {
            next--; /* builds the heap */
        } else {
            end--;
            cc__sort_swap(at, at + end * words, words);
        }
        for (size_t parent = next, child; (child = 2 * parent + 1) < end; parent = child) {
            if (child + 1 < end && compare(at + child * words, at + (child + 1) * words) < 0) child++;
            if (compare(at + parent * words, at + child * words) >= 0) break;
            cc__sort_swap(at + parent * words, at + child * words, words);
        }
    }
}

#endif
