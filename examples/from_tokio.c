/* from_tokio.c - spawn, JoinHandle, select!, timeout, JoinSet, oneshot, broadcast: the same steps as with Tokio. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>

CC_ASYNC(int, double_it, { int n; }) { /* async fn double_it(n: i32) -> Result<i32, Errno> */
    if (self->n < 0) CC_SET_ERROR(EDOM);
    return 2 * self->n;
}

CC_ASYNC(int, forever) { /* std::future::pending().await */
    cc_sleep_until(CC_FOREVER);
    return 0;
}

CC_ONESHOT_OF(Reply, int);

CC_TASK(reply, { Reply *to; }) {
    Reply_send(self->to, 42); /* tx.send(42) */
    return NULL;
}

int main(void) {
    printf("%d\n", CC_CALL(double_it, .n = 1)); /* double_it(1).await */

    CC_FUTURE(double_it, handle);
    CC_START(&handle, double_it, .n = 2); /* let handle = tokio::spawn(double_it(2)) */
    printf("%d\n", CC_AWAIT(&handle));    /* handle.await.unwrap() */

    CC_START(&handle, double_it, .n = -1);
    if (cc_await(&handle, CC_FOREVER) == EDOM) puts("an error, beside the value"); /* match handle.await */

    {
        CC_FUTURE(forever, slow);
        CC_START(&slow, forever);
        if (cc_await(&slow, cc_after_ms(1)) == ETIMEDOUT) puts("timed out"); /* timeout(1 ms, slow).await */
        cc_task_cancel(&slow.future.task);                                   /* slow.abort() */
    } /* unlike a dropped JoinHandle it is not detached: the block waits for it */

    Reply once = {0}; /* oneshot::channel() */
    int value;
    CCTask task = CC_GO(reply, .to = &once);
    if (Reply_recv(&once, &value) == 0) printf("%d\n", value); /* rx.await */
    cc_task_join(&task, NULL);
}
