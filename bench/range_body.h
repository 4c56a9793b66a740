/* range_body.h - the work of range_sum.c, range_sort.c and range_tree.c, and of the same programs for oneTBB and OpenMP
 * (rivals/tbb.cpp, rivals/openmp.cpp): C and C++. */
#ifndef CCC_BENCH_RANGE_BODY_H
#define CCC_BENCH_RANGE_BODY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { RANGE_TURNS = 5 }; /* of each, one after the other; all count */

/* What is done, as opposed to how it is spread: never inlined, so that all run the same code, aligned alike. */
#define RANGE_WORK static __attribute__((noinline, aligned(64), unused))

/* ---- sum: some work for each number, so that memory is not all there is to wait for ---- */

enum { SUM_N = 20000000 };

static inline uint64_t range_hash(uint64_t x) {
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

RANGE_WORK uint64_t range_sum(size_t begin, size_t end) {
    uint64_t sum = 0;
    for (size_t i = begin; i < end; i++) sum += range_hash(i);
    return sum;
}

/* ---- sort: by halves, down to a grain that all have in common ---- */

enum { SORT_N = 1000000, SORT_GRAIN = 2048 };

/* Quicksort with the median of three, and insertion at the end. */
RANGE_WORK void range_sort_alone(uint64_t *a, size_t n) {
    while (n > 24) {
        uint64_t x = a[0], y = a[n / 2], z = a[n - 1];
        uint64_t pivot = x < y ? (y < z ? y : x < z ? z : x) : (x < z ? x : y < z ? z : y);
        size_t i = 0, k = n - 1;
        for (;;) {
            while (a[i] < pivot) i++;
            while (a[k] > pivot) k--;
            if (i >= k) break;
            uint64_t swap = a[i];
            a[i++] = a[k];
            a[k--] = swap;
        }
        size_t left = k + 1;
        if (left < n - left) {
            range_sort_alone(a, left);
            a += left;
            n -= left;
        } else {
            range_sort_alone(a + left, n - left);
            n = left;
        }
    }
    for (size_t i = 1; i < n; i++) {
        uint64_t x = a[i];
        size_t k = i;
        for (; k > 0 && a[k - 1] > x; k--) a[k] = a[k - 1];
        a[k] = x;
    }
}

RANGE_WORK void range_merge(uint64_t *a, uint64_t *spare, size_t half, size_t n) {
    size_t i = 0, k = half, out = 0;
    memcpy(spare, a, half * sizeof *a);
    while (i < half && k < n) { /* without a branch for each number, which would be guessed wrongly every other time */
        size_t right = a[k] < spare[i];
        a[out++] = right ? a[k] : spare[i];
        k += right;
        i += 1 - right;
    }
    while (i < half) a[out++] = spare[i++];
}

/* ---- trees: the roots are a range, and so are the children of a node; how many there are depends on its hash ---- */

enum { TREE_ROOTS = 40, TREE_CHILDREN = 500, TREE_DEPTH = 6, TREE_LIMIT = 200 };

static inline unsigned range_children(uint64_t node, unsigned depth) {
    return depth == 0 ? TREE_CHILDREN : depth < TREE_LIMIT && range_hash(node) % 1000 < 122 ? 8 : 0;
}

static inline uint64_t range_child(uint64_t node, size_t i) {
    return range_hash(node * 8191 + i + 1);
}

static inline uint64_t range_count_alone(uint64_t node, unsigned depth) {
    uint64_t sum = 1;
    for (unsigned n = range_children(node, depth), i = 0; i < n; i++)
        sum += range_count_alone(range_child(node, i), depth + 1);
    return sum;
}

#endif
