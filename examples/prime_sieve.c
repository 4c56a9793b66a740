/* prime_sieve.c - one fiber for each prime passes on what its prime does not divide. */
#include <ccc/ccc.h>
#include <stdio.h>

enum { COUNT = 25 };

static void *count_up(void *out) {
    for (int n = 2; cc_chan_send(out, &n, sizeof n) == 0; n++) {
    }
    return NULL;
}

CC_TASK(filter, {
    CCChan *in, *out;
    int prime;
}) {
    int n;
    while (cc_chan_recv(self->in, &n, sizeof n) == 0)
        if (n % self->prime != 0 && cc_chan_send(self->out, &n, sizeof n) != 0) break;
    cc_chan_close(self->in); /* tells the previous stage to stop: its next send fails */
    return NULL;
}

int main(void) {
    CCChan *ch[COUNT + 1];
    CCTask tasks[COUNT + 1];
    ch[0] = cc_chan_create(sizeof(int), 0);
    tasks[0] = cc_fiber_spawn_task(count_up, ch[0]);
    for (int i = 0; i < COUNT; i++) {
        int prime;
        if (cc_chan_recv(ch[i], &prime, sizeof prime) != 0) return 1;
        printf("%d%c", prime, i == COUNT - 1 ? '\n' : ' ');
        ch[i + 1] = cc_chan_create(sizeof(int), 0);
        tasks[i + 1] = CC_GO(filter, .in = ch[i], .out = ch[i + 1], .prime = prime);
    }
    cc_chan_close(ch[COUNT]);
    for (int i = 0; i <= COUNT; i++) cc_task_join(&tasks[i], NULL);
    for (int i = 0; i <= COUNT; i++) cc_chan_free(ch[i]);
}
