/* from_go.c - goroutines, channels, select, WaitGroup, context: the same program as in Go. */
#include <ccc/ccc.h>
#include <stdio.h>

CC_CHAN_OF(Ints, int);

CC_TASK(square, {
    Ints in, out;
    CCWaitGroup *done;
}) {                                                         /* func square(in, out chan int, done *sync.WaitGroup) */
    CC_FOR_RECV_OF(v, self->in) Ints_send(self->out, v * v); /* for v := range in { out <- v * v } */
    cc_wait_group_done(self->done);
    return NULL;
}

CC_TASK(close_when_done, {
    Ints out;
    CCWaitGroup *done;
}) {
    if (cc_wait_group_wait(self->done) == 0) Ints_close(self->out);
    return NULL;
}

int main(void) {
    Ints in = Ints_create(8), out = Ints_create(0); /* make(chan int, 8), make(chan int) */
    CCWaitGroup done = {0};
    CCTask tasks[5];
    for (int i = 0; i < 4; i++) {
        cc_wait_group_add(&done, 1);
        tasks[i] = CC_GO(square, .in = in, .out = out, .done = &done); /* go square(in, out, &done) */
    }
    tasks[4] = CC_GO(close_when_done, .out = out, .done = &done);
    for (int i = 1; i <= 8; i++) Ints_send(in, i); /* in <- i */
    Ints_close(in);

    int sum = 0;
    bool open = true;
    CC_WITH_DEADLINE(cc_after_s(60)) { /* context.WithTimeout */
        while (open) {
            int v;
            CC_WHEN {                    /* select */
                CC_ON_RECV_OF(out, &v) { /* case v, ok := <-out */
                    sum += v;
                }
                CC_ON_CLOSED(out.ch) { /* !ok */
                    open = false;
                }
                CC_ON_CANCEL() { /* case <-ctx.Done() */
                    open = false;
                }
            }
        }
    }
    printf("sum of squares: %d\n", sum);
    cc_join_all(tasks, 5, NULL, CC_FOREVER);
    Ints_free(in);
    Ints_free(out);
}
