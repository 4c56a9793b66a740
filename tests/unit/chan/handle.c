/* handle.c - one-sided and typed handles are only other types of the same channel. */
#include "harness.h"

#include <ccc/ccc.h>

#include <errno.h>
#include <string.h>

struct point {
    double x, y, z;
};

CC_CHAN_OF(IntChan, int);
CC_CHAN_OF(PointChan, struct point);

static void *send_points(void *arg) {
    PointChanTx tx = *(PointChanTx *)arg;
    for (int i = 0; i < 100; i++) CHECK_EQ(PointChanTx_send(tx, (struct point){i, 2 * i, 3 * i}), 0);
    CHECK_EQ(PointChanTx_close(tx), 0);
    return NULL;
}

TEST_WORKERS(typed) {
    static const size_t capacities[] = {0, 1, 7};
    for (int k = 0; k < 3; k++) {
        PointChan points = PointChan_create(capacities[k]);
        CHECK(points.ch != NULL);
        PointChanTx tx = PointChan_tx(points);
        PointChanRx rx = PointChan_rx(points);
        CCTask task = cc_fiber_spawn_task(send_points, &tx);
        struct point p;
        int n = 0, rc;
        for (; (rc = PointChanRx_recv(rx, &p)) == 0; n++) CHECK(p.x == n && p.y == 2 * n && p.z == 3 * n);
        CHECK_EQ(rc, EPIPE);
        CHECK_EQ(n, 100);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
        PointChan_free(points);
    }
}

TEST(typed_calls) {
    IntChan c = IntChan_create(2);
    CHECK_EQ(IntChan_send(c, 1), 0);
    CHECK_EQ(IntChan_send_try(c, 2), 0);
    CHECK_EQ(IntChan_send_try(c, 3), EAGAIN);
    CHECK_EQ(IntChan_send_until(c, 3, CC_PASSED), ETIMEDOUT);
    int value = 0;
    CHECK_EQ(IntChan_recv(c, &value), 0);
    CHECK_EQ(value, 1);
    CHECK_EQ(IntChan_recv_try(c, &value), 0);
    CHECK_EQ(value, 2);
    CHECK_EQ(IntChan_recv_try(c, &value), EAGAIN);
    CHECK_EQ(IntChan_recv_until(c, &value, CC_PASSED), ETIMEDOUT);
    CHECK_EQ(IntChan_close(c), 0);
    CHECK_EQ(IntChan_send(c, 4), EPIPE);
    CHECK_EQ(cc_chan_cap(c.ch), 2);
    IntChan_free(c);
}

TEST(one_sided) {
    CCChan *ch = cc_chan_create(sizeof(int), 1);
    CCChanTx tx = cc_chan_tx(ch);
    CCChanRx rx = cc_chan_rx(ch);
    CHECK(tx.ch == ch && rx.ch == ch);
    int value = 3;
    CHECK_EQ(cc_tx_send(tx, &value, sizeof value), 0);
    CHECK_EQ(cc_tx_send_try(tx, &value, sizeof value), EAGAIN);
    CHECK_EQ(cc_tx_send_until(tx, &value, sizeof value, CC_PASSED), ETIMEDOUT);
    value = 0;
    CHECK_EQ(cc_rx_recv(rx, &value, sizeof value), 0);
    CHECK_EQ(value, 3);
    CHECK_EQ(cc_rx_recv_try(rx, &value, sizeof value), EAGAIN);
    CHECK_EQ(cc_rx_recv_until(rx, &value, sizeof value, CC_PASSED), ETIMEDOUT);
    CHECK_EQ(cc_tx_close(tx), 0);
    CHECK_EQ(cc_rx_recv(rx, &value, sizeof value), EPIPE);
    cc_chan_free(ch);
}
