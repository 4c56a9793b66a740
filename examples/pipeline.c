/* pipeline.c - three stages, each a fiber, connected by channels; each stage closes its output when its input is
 * closed. */
#include <ccc/ccc.h>
#include <stdio.h>

struct stage {
    CCChan *in, *out;
};

static void *count(void *arg) {
    struct stage *s = arg;
    for (long n = 1; n <= 10; n++) cc_chan_send(s->out, &n, sizeof n);
    cc_chan_close(s->out);
    return NULL;
}

static void *square(void *arg) {
    struct stage *s = arg;
    long n;
    while (cc_chan_recv(s->in, &n, sizeof n) == 0) { /* until it is closed and drained */
        n *= n;
        cc_chan_send(s->out, &n, sizeof n);
    }
    cc_chan_close(s->out);
    return NULL;
}

static void *add(void *arg) {
    struct stage *s = arg;
    long n, sum = 0;
    while (cc_chan_recv(s->in, &n, sizeof n) == 0) {
        sum += n;
        printf("%ld after %ld\n", sum, n);
    }
    return (void *)sum;
}

int main(void) {
    CCChan *numbers = cc_chan_create(sizeof(long), 4), *squares = cc_chan_create(sizeof(long), 4);
    struct stage stages[] = {{NULL, numbers}, {numbers, squares}, {squares, NULL}};
    CCTask first = cc_fiber_spawn_task(count, &stages[0]), second = cc_fiber_spawn_task(square, &stages[1]);
    long sum = (long)cc_block_on(cc_fiber_spawn_task(add, &stages[2]));
    cc_task_join(&first, NULL);
    cc_task_join(&second, NULL);
    cc_chan_free(numbers);
    cc_chan_free(squares);
    printf("The sum of the first ten squares is %ld.\n", sum);
}
