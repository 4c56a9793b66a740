/* parallel_sort.c - ../parallel_sort.c by functions alone. */
#include <ccc/ccc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 200000, PIECE = 5000, PIECES = N / PIECE };

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

struct range {
    size_t begin, end;
    size_t sorted;
};

/* One half is started, the other one is called. */
static void *sort(void *arg) {
    struct range *r = arg;
    size_t n = r->end - r->begin, middle = r->begin + n / 2;
    if (n < PIECE) {
        qsort(numbers + r->begin, n, sizeof *numbers, compare);
        return NULL;
    }
    struct range left = {.begin = r->begin, .end = middle}, right = {.begin = middle, .end = r->end};
    CCTask task;
    if (cc_spawn(&task, sort, &left, NULL) != 0) abort();
    sort(&right);
    if (cc_task_join(&task, NULL) != 0) abort();
    merge(r->begin, middle, r->end);
    return NULL;
}

static void *fill(void *arg) {
    struct range *r = arg;
    for (size_t i = r->begin; i < r->end; i++) numbers[i] = (unsigned)i * 2654435761u;
    return NULL;
}

static void *count_sorted(void *arg) {
    struct range *r = arg;
    for (size_t i = r->begin; i < r->end; i++) r->sorted += i == 0 || numbers[i - 1] <= numbers[i];
    return NULL;
}

/* Calls the function for pieces of the whole range, and adds up what they have counted. */
static size_t for_pieces(CCTaskFn fn) {
    struct range pieces[PIECES];
    CCTask tasks[PIECES];
    size_t sum = 0;
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = (struct range){.begin = i * PIECE, .end = (i + 1) * PIECE};
        if (cc_spawn(&tasks[i], fn, &pieces[i], NULL) != 0) abort();
    }
    for (size_t i = 0; i < PIECES; i++) {
        if (cc_task_join(&tasks[i], NULL) != 0) abort();
        sum += pieces[i].sorted;
    }
    return sum;
}

static void *nap(void *ms) {
    cc_sleep_ms(*(unsigned *)ms);
    return ms;
}

static size_t race(CCTask *tasks, size_t n) {
    CCCase cases[8] = {{0}};
    size_t winner;
    for (size_t i = 0; i < n; i++) cases[i] = (CCCase){.kind = CC_CASE_JOIN, .task = &tasks[i]};
    if (cc_select(cases, n, CC_FOREVER, &winner) != 0) abort();
    for (size_t i = 0; i < n; i++)
        if (i != winner) cc_task_cancel(&tasks[i]);
    for (size_t i = 0; i < n; i++)
        if (i != winner && cc_task_join(&tasks[i], NULL) != 0) abort();
    return winner;
}

int main(void) {
    struct range all = {.begin = 0, .end = N};
    for_pieces(fill);
    sort(&all);
    printf("%zu of %d numbers are in order.\n", for_pieces(count_sorted), N);

    unsigned ms[] = {60000, 1, 50000};
    CCTask tasks[3];
    for (int i = 0; i < 3; i++)
        if (cc_spawn(&tasks[i], nap, &ms[i], NULL) != 0) abort();
    printf("Number %zu was the first; the others were cancelled.\n", race(tasks, 3));
}
