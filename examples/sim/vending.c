/* vending.c - two customers and one last bar: each checks that there is one before it pays. */
#include <ccc/ccc.h>
#include <stdio.h>
#include <stdlib.h>

static CCMutex machine;
static int bars = 1, sold;

static void pay(CCChan *till) {
    int coin = 1;
    cc_chan_send(till, &coin, sizeof coin);
}

CC_TASK(customer, { CCChan *till; }) {
    if (cc_mutex_lock(&machine) != 0) return NULL;
    int seen = bars;
    cc_mutex_unlock(&machine);
    if (seen == 0) return NULL;
    pay(self->till);
    if (cc_mutex_lock(&machine) != 0) return NULL;
    bars--;
    sold++;
    cc_mutex_unlock(&machine);
    return NULL;
}

int main(void) {
    CCChan *till = cc_chan_create(sizeof(int), 8);
    CC_NURSERY(n) {
        CC_GO_IN(n, customer, .till = till);
        CC_GO_IN(n, customer, .till = till);
    }
    cc_chan_free(till);
    printf("%d sold, %d left\n", sold, bars);
    return bars >= 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
