/* typed_channels.h - code that a compiler must reject: REFUSED is the number of the case; 0: none, which compiles.
 *
 * Without -Werror, as C11 and as C++17; tests/refused/run.sh. */
#include <ccc/ccc.h>

struct point {
    int x, y;
};
struct other {
    int x, y;
};

CC_CHAN_OF(IntChan, int);
CC_CHAN_OF(UintChan, unsigned);
CC_CHAN_OF(PointChan, struct point);

int tries(IntChan ints, UintChan uints, PointChan points, IntChanTx tx, IntChanRx rx);
int tries(IntChan ints, UintChan uints, PointChan points, IntChanTx tx, IntChanRx rx) {
    int i = 0;
    unsigned u = 0;
    float f = 0;
    const int constant = 0;
    struct point p = {0, 0};
    struct other o = {0, 0};
    int rc = IntChan_send(ints, i) + IntChan_recv(ints, &i) + PointChan_send(points, p) + PointChan_recv(points, &p) +
             UintChan_recv(uints, &u) + IntChanTx_send(tx, 1) + IntChanRx_recv(rx, &i);
    CC_MATCH(CC_SEND_OF(ints, &constant, NULL), CC_RECV_OF(ints, &i, NULL), CC_SEND_OF(tx, &i, &rc),
             CC_RECV_OF(rx, &i, NULL), CC_RECV_OF(points, &p, NULL)) {
    default:
        break;
    }
#if REFUSED == 1
    CC_MATCH(CC_RECV_OF(ints, &u, NULL)) {
    default:
        break;
    } /* same size, another type */
#elif REFUSED == 2
    CC_MATCH(CC_RECV_OF(ints, &f, NULL)) {
    default:
        break;
    }
#elif REFUSED == 3
    CC_MATCH(CC_SEND_OF(ints, &u, NULL)) {
    default:
        break;
    }
#elif REFUSED == 4
    CC_MATCH(CC_RECV_OF(points, &o, NULL)) {
    default:
        break;
    }
#elif REFUSED == 5
    CC_MATCH(CC_RECV_OF(rx, &f, NULL)) {
    default:
        break;
    }
#elif REFUSED == 6
    CC_MATCH(CC_RECV_OF(ints, &constant, NULL)) {
    default:
        break;
    } /* would write to it */
#elif REFUSED == 7
    rc += PointChan_send(points, o);
#elif REFUSED == 8
    rc += IntChan_send(uints, 1);
#elif REFUSED == 9
    rc += IntChanTx_send(rx, 1);
#elif REFUSED == 10
    rc += IntChanRx_recv(tx, &i);
#elif REFUSED == 11
    rc += cc_chan_send(ints, &i, sizeof i);
#elif REFUSED == 12 && defined(__cplusplus) /* in C a warning of older compilers, an error of newer ones */
    rc += IntChan_recv(ints, &u);
#elif REFUSED == 12
#error "C"
#endif
    return rc + (int)u + (int)f + constant + o.x;
}
