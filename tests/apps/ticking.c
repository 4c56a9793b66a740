/* ticking.c - a program to be inspected: it sends, receives, sleeps, spawns and joins until it is killed, or for ten
 * minutes; one fiber waits for ever. */
#include <ccc/ccc.h>
#include <stdio.h>
#include <unistd.h>

static void *child(void *arg) {
    cc_yield();
    return arg;
}

static void *tick(void *ticks) {
    for (int i = 0; cc_chan_send(ticks, &i, sizeof i) == 0; i++) {
        cc_block_on(cc_fiber_spawn_task(child, NULL));
        cc_sleep_ms(1);
    }
    return NULL;
}

static void *count(void *ticks) {
    int i;
    while (cc_chan_recv(ticks, &i, sizeof i) == 0) continue;
    return NULL;
}

int main(void) {
    CCChan *ticks = cc_chan_create(sizeof(int), 0);
    CCChan *never = cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof(int), .name = "never"});
    CCTask ticker, counter, patient;
    alarm(600);
    if (cc_spawn(&ticker, tick, ticks, &(CCSpawnOptions){.name = "ticker"}) != 0 ||
        cc_spawn(&counter, count, ticks, &(CCSpawnOptions){.name = "counter"}) != 0 ||
        cc_spawn(&patient, count, never, &(CCSpawnOptions){.name = "patient"}) != 0)
        return 1;
    cc_block_on(ticker);
    cc_block_on(counter);
    cc_block_on(patient);
}
