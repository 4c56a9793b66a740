/* parallel_map.c - one task for each part of a range; the arguments are stored in the task. */
#include <ccc/ccc.h>
#include <stdio.h>

static int steps(unsigned long n) {
    int count = 0;
    for (; n != 1; count++) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    return count;
}

CC_TASK(longest, { unsigned long first, last; }) {
    unsigned long best = self->first;
    for (unsigned long n = self->first; n <= self->last; n++)
        if (steps(n) > steps(best)) best = n;
    return (void *)best;
}

int main(void) {
    enum { PARTS = 30, SIZE = 10000 };
    CCTask tasks[PARTS];
    for (unsigned long i = 0; i < PARTS; i++) tasks[i] = CC_GO(longest, .first = i * SIZE + 1, .last = (i + 1) * SIZE);

    unsigned long best = 1;
    for (int i = 0; i < PARTS; i++) {
        unsigned long n = (unsigned long)cc_block_on(tasks[i]);
        if (steps(n) > steps(best)) best = n;
    }
    printf("Up to %d, %lu takes longest to reach 1: %d steps.\n", PARTS * SIZE, best, steps(best));
}
