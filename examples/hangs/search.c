/* search.c - a binary search that does not end when the number is not in the table. */
#include <ccc/ccc.h>
#include <stdio.h>

enum { SIZE = 1000 };
static int table[SIZE];

static int find(int wanted) {
    int low = 0, high = SIZE;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (table[middle] == wanted) return middle;
        if (table[middle] < wanted)
            low = middle; /* should be middle + 1 */
        else
            high = middle;
    }
    return -1;
}

CC_TASK(look_up, { int number; }) {
    printf("%d is at %d\n", self->number, find(self->number));
    return NULL;
}

int main(void) {
    for (int i = 0; i < SIZE; i++) table[i] = 2 * i;
    cc_block_on(CC_GO(look_up, .number = 501));
}
