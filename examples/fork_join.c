/* fork_join.c - a sort that hands one half to a task and does the other half itself. Tasks start tasks recursively. */
#include <ccc/ccc.h>

#include <stdint.h>
#include <stdio.h>

enum { COUNT = 200000, SMALL = 500 };

static void insertion_sort(uint32_t *v, size_t n) {
    for (size_t i = 1; i < n; i++) {
        uint32_t x = v[i];
        size_t at = i;
        for (; at > 0 && v[at - 1] > x; at--) v[at] = v[at - 1];
        v[at] = x;
    }
}

/* Reorders v around a pivot; returns how many elements are left of it. */
static size_t split(uint32_t *v, size_t n) {
    uint32_t pivot = v[n / 2];
    size_t i = 0, j = n - 1;
    for (;; i++, j--) {
        while (v[i] < pivot) i++;
        while (v[j] > pivot) j--;
        if (i >= j) return j + 1;
        uint32_t swapped = v[i];
        v[i] = v[j];
        v[j] = swapped;
    }
}

CC_TASK(sort, {
    uint32_t *v;
    size_t n;
}) {
    if (self->n <= SMALL) {
        insertion_sort(self->v, self->n);
        return NULL;
    }
    size_t left = split(self->v, self->n);
    CCTask other = CC_GO(sort, .v = self->v, .n = left);
    struct sort_args mine = {self->v + left, self->n - left};
    sort(&mine); /* a task's body is a function, which can also be called */
    cc_task_join(&other, NULL);
    return NULL;
}

int main(void) {
    static uint32_t numbers[COUNT];
    uint32_t x = 1;
    uint64_t before = 0, after = 0;
    for (int i = 0; i < COUNT; i++) before += numbers[i] = x = x * 1664525u + 1013904223u;

    CCTask all = CC_GO(sort, .v = numbers, .n = COUNT);
    cc_task_join(&all, NULL);

    int in_order = 1;
    for (int i = 0; i < COUNT; i++) {
        after += numbers[i];
        if (i > 0 && numbers[i - 1] > numbers[i]) in_order = 0;
    }
    printf("%d numbers: %s, %s.\n", COUNT, in_order ? "in order" : "not in order",
           before == after ? "none lost" : "changed");
    return 0;
}
