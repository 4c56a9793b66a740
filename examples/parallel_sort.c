/* parallel_sort.c - a merge sort with futures; a loop and a sum over a range; and the first of several tasks. */
#include <ccc/ccc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 200000 };

static unsigned numbers[N], spare[N];

static int compare(const void *a, const void *b) {
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return x < y ? -1 : x > y;
}

static void merge(size_t begin, size_t middle, size_t end) {
    size_t a = begin, b = middle;
    for (size_t i = begin; i < end; i++)
        spare[i] = b == end || (a < middle && numbers[a] <= numbers[b]) ? numbers[a++] : numbers[b++];
    memcpy(numbers + begin, spare + begin, (end - begin) * sizeof *numbers);
}

/* One half is started, the other one is called. */
CC_ASYNC(int, sort, { size_t begin, end; }) {
    size_t n = self->end - self->begin, middle = self->begin + n / 2;
    if (n < 5000) {
        qsort(numbers + self->begin, n, sizeof *numbers, compare);
        return 0;
    }
    CC_FUTURE(sort, left);
    CC_START(&left, sort, .begin = self->begin, .end = middle);
    CC_CALL(sort, .begin = middle, .end = self->end);
    (void)CC_AWAIT(&left);
    merge(self->begin, middle, self->end);
    return 0;
}

static int fill(size_t begin, size_t end, CC_UNUSED void *arg) {
    for (size_t i = begin; i < end; i++) numbers[i] = (unsigned)i * 2654435761u;
    return 0;
}

static int count_sorted(size_t begin, size_t end, void *count, CC_UNUSED void *arg) {
    for (size_t i = begin; i < end; i++) *(size_t *)count += i == 0 || numbers[i - 1] <= numbers[i];
    return 0;
}

static void add(void *count, const void *right, CC_UNUSED void *arg) {
    *(size_t *)count += *(const size_t *)right;
}

CC_TASK(nap, { unsigned ms; }) {
    cc_sleep_ms(self->ms);
    return NULL;
}

int main(void) {
    cc_parallel_for(0, N, fill, NULL);
    CC_CALL(sort, .begin = 0, .end = N);

    size_t zero = 0, sorted = 0;
    CCReduction counting = {.size = sizeof sorted, .identity = &zero, .range = count_sorted, .combine = add};
    cc_parallel_reduce(0, N, &counting, NULL, &sorted);
    printf("%zu of %d numbers are in order.\n", sorted, N);

    CCTask tasks[] = {CC_GO(nap, .ms = 60000), CC_GO(nap, .ms = 1), CC_GO(nap, .ms = 50000)};
    size_t winner;
    cc_race(tasks, 3, CC_FOREVER, &winner, NULL);
    printf("Number %zu was the first; the others were cancelled.\n", winner);
}
