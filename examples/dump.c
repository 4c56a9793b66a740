/* dump.c - a program prints a dump of itself: which fiber waits for what, since when, and where. */
#include <ccc/ccc.h>
#include <stdio.h>

static CCMutex ledger;
static CCChan *orders;

CC_TASK(clerk, { int desk; }) {
    cc_fiber_set_name("clerk");
    int order, error = cc_mutex_lock(&ledger);
    if (error != 0) return CC_ERROR(error);
    error = cc_chan_recv(orders, &order, sizeof order);
    printf("desk %d: order %d\n", self->desk, order);
    cc_mutex_unlock(&ledger);
    return CC_ERROR(error);
}

static void *office(void *unused) {
    (void)unused;
    CC_NURSERY(n, .name = "office", .deadline = cc_after_ms(60 * 1000)) {
        CC_GO_IN(n, clerk, .desk = 1);
        cc_sleep_ms(50);
        CC_GO_IN(n, clerk, .desk = 2); /* waits for the mutex that the other clerk holds */
        cc_sleep_ms(50);
        cc_dump(stdout);
        for (int order = 1; order <= 2; order++) cc_chan_send(orders, &order, sizeof order);
    }
    return NULL;
}

int main(void) {
    cc_runtime_init(&(CCRuntimeConfig){.workers = 2, .max_workers = 2});
    orders = cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof(int), .capacity = 1, .name = "orders"});
    CCTask task;
    if (cc_spawn(&task, office, NULL, &(CCSpawnOptions){.name = "manager"}) != 0) return 1;
    cc_block_on(task);
    cc_chan_free(orders);
    return cc_runtime_shutdown(1000);
}
