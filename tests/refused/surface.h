/* surface.h - other uses that a compiler must reject: of async functions, arms, ends of channels, oneshots,
 * combinators, tickers and keys (see typed_channels.h). */
#include <ccc/ccc.h>

struct point {
    int x, y;
};
struct other {
    int x, y;
};
typedef int Three[3];

CC_ASYNC(int, one) {
    return 1;
}
CC_TASK(task, { int x; }) {
    return self;
}
CC_CHAN_OF(IntChan, int);
CC_ONESHOT_OF(PointReply, struct point);
CC_ONESHOT_OF(OtherReply, struct other);

static inline int ordinary(int x) {
    return x;
}
static inline int range(size_t begin, size_t end, void *arg) {
    return begin < end && arg != NULL;
}

#if REFUSED == 1
CC_ASYNC(Three, array) {
    return self->x;
}
#elif REFUSED == 2
CC_CHAN_OF(Nothing, void);
#elif REFUSED == 3
CC_ONESHOT_OF(Nothing, void);
#endif

int tries(IntChan ints, IntChanTx tx, IntChanRx rx, CCChan *ch, CCWakeKey key, CCTask handle);
int tries(IntChan ints, IntChanTx tx, IntChanRx rx, CCChan *ch, CCWakeKey key, CCTask handle) {
    int rc = 0, i = 0;
    uint64_t value = 0;
    CCTicker ticker = {};
    PointReply reply = {};
    CCEvent event = {0, 0, NULL};
    CCSem sem = CC_SEM_INIT(1);
    struct point p = {0, 0};
    struct other o = {0, 0};
    CC_FUTURE(one, f);
    rc += CC_START(&f, one) + CC_CALL(one) + ordinary(0) + cc_parallel_for(0, 1, range, NULL);
    CC_WHEN {
        CC_ON_JOIN(&handle, NULL) {}
        CC_ON_AWAIT(&f) {}
        CC_ON_TICK(&ticker) {}
        CC_ON_KEY(key, &value) {}
        CC_ON_EVENT(&event) {}
        CC_ON_ACQUIRE(&sem) {}
        CC_ON_SEND_OF(tx, &i) {}
        CC_ON_RECV_OF(rx, &i) {
            rc += CC_WHEN_ERROR;
        }
    }
    CC_FOR_RECV_OF(v, ints) i += v;
    rc += PointReply_send(&reply, p) + PointReply_recv(&reply, &p) + cc_wake(key, 1);
#if REFUSED == 4
    rc += CC_CALL(one, .nothing = 1);
#elif REFUSED == 5
    rc += CC_CALL(ordinary); /* not an async function */
#elif REFUSED == 6
    CC_GO(one); /* an async function is started by CC_START */
#elif REFUSED == 7
    rc += CC_START(&handle, one); /* not a future */
#elif REFUSED == 8
    CC_SET_ERROR(1); /* outside of an async function */
#elif REFUSED == 9
    rc += CC_WHEN_ERROR; /* outside of a body */
#elif REFUSED == 10
    CC_WHEN {
        CC_ON_JOIN(&f, NULL) {} /* a future: CC_ON_AWAIT */
    }
#elif REFUSED == 11
    CC_WHEN {
        CC_ON_TICK(&key) {}
    }
#elif REFUSED == 12
    CC_WHEN {
        CC_ON_KEY(value, NULL) {}
    }
#elif REFUSED == 13
    CC_WHEN {
        CC_ON_SEND_OF(rx, &i) {} /* the wrong end */
    }
#elif REFUSED == 14
    CC_WHEN {
        CC_ON_RECV_OF(tx, &i) {}
    }
#elif REFUSED == 15
    CC_MATCH(CC_RECV_OF(tx, &i, NULL)) {
    default:
        break;
    }
#elif REFUSED == 16
    CC_FOR_RECV_OF(v, tx) i += v;
#elif REFUSED == 17
    CC_FOR_RECV_OF(v, ch) i += v; /* not a typed channel */
#elif REFUSED == 18
    rc += PointReply_send(&reply, o);
#elif REFUSED == 19
    rc += cc_wake(value, 1); /* not a key */
#elif REFUSED == 20
    rc += cc_parallel_for(0, 1, range(0, 1, NULL), NULL, 0); /* a call, and too many arguments */
#elif REFUSED == 21
    rc += cc_join_all(&handle, CC_FOREVER); /* the number is missing */
#elif REFUSED == 22
    rc += cc_ticker_wait(&ticker, CC_FOREVER); /* a ticker has no deadline */
#elif REFUSED == 23
    CC_WHEN {
        CC_ON_UNTIL(100) {} /* a number of milliseconds: CC_ON_AFTER_MS */
    }
#elif REFUSED == 24
    rc += cc_await(&f, 100); /* a deadline is cc_after_ms(100) */
#elif REFUSED == 30
    CC_WHEN {
        CC_ON_EVENT(&key) {}
    }
#elif REFUSED == 31
    CC_WHEN {
        CC_ON_ACQUIRE(&event) {} /* an event has no permits */
    }
#elif REFUSED == 32
    CC_WHEN {
        CC_ON_NURSERY_END(&handle) {}
    }
#elif REFUSED == 33
    CC_WHEN {
        CC_ON_RECV(ch, &i) {}
        else {
            rc++;
        }
    }
    /* As pointers older C compilers only warn of these. */
#elif REFUSED == 34
    CC_WHEN {
        CC_ON_EXITED(&handle, NULL) {}
    }
#elif REFUSED == 25 && defined(__cplusplus)
    rc += PointReply_recv(&reply, &o);
#elif REFUSED == 26 && defined(__cplusplus)
    rc += OtherReply_send(&reply, o);
#elif REFUSED == 27 && defined(__cplusplus)
    rc += cc_parallel_for(0, 1, ordinary, NULL);
#elif REFUSED == 28 && defined(__cplusplus)
    rc += cc_ticker_wait(&key);
#elif REFUSED == 29 && defined(__cplusplus)
    rc += cc_join_all(&f, 1, NULL, CC_FOREVER);
#elif REFUSED >= 25 && REFUSED <= 29
#error "C"
#endif
    return rc + i + o.x + p.x + (int)value + (ch != NULL);
}
