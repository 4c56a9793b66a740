/* futures.h - futures and arms of CC_WHEN that a compiler must reject (see typed_channels.h). */
#include <ccc/ccc.h>

struct point {
    int x, y;
};
struct other {
    int x, y;
};

CC_ASYNC(struct point, fetch, { int id; }) {
    struct point p = {self->id, self->id};
    return p;
}
CC_ASYNC(struct point, find, { int id; }) {
    struct point p = {self->id, 0};
    return p;
}
CC_CHAN_OF(IntChan, int);
CC_CHAN_OF(PointChan, struct point);

#if REFUSED == 1
CC_ASYNC(void, nothing) {}
#endif

int tries(IntChan ints, PointChan points, CCTask task);
int tries(IntChan ints, PointChan points, CCTask task) {
    int i = 0;
    unsigned u = 0;
    const int constant = 0;
    struct point p = {0, 0};
    struct other o = {0, 0};
    CC_FUTURE(fetch, f);
    CC_FUTURE(find, g);
    int rc = CC_START(&f, fetch, .id = 1) + CC_START(&g, find, .id = 2);
    p = CC_AWAIT(&f);
    rc += cc_await(&g, CC_FOREVER) + CC_CALL(fetch, .id = 3).x;
    CC_WHEN {
        CC_ON_RECV_OF(ints, &i) {}
        CC_ON_SEND_OF(ints, &constant) {}
        CC_ON_RECV_OF(points, &p) {}
    }
#if REFUSED == 2
    o = CC_AWAIT(&f);
#elif REFUSED == 3
    rc += CC_START(&f, find, .id = 1); /* the future of another function */
#elif REFUSED == 4
    rc += CC_START(&f, fetch, .name = "no such argument");
#elif REFUSED == 5
    rc += cc_await(&task, CC_FOREVER);
#elif REFUSED == 6
    rc += CC_AWAIT(&task);
#elif REFUSED == 7
    rc += CC_AWAIT(f); /* not a pointer */
#elif REFUSED == 8
    CC_WHEN {
        CC_ON_RECV_OF(ints, &u) {}
    }
#elif REFUSED == 9
    CC_WHEN {
        CC_ON_RECV_OF(points, &o) {}
    }
#elif REFUSED == 10
    CC_WHEN {
        CC_ON_RECV_OF(ints, &constant) {}
    }
#elif REFUSED == 11
    CC_WHEN {
        CC_ON_SEND_OF(points, &o) {}
    }
#elif REFUSED == 12
    CC_ON_RECV_OF(ints, &i) { /* outside of a block */
    }
#elif REFUSED == 13
    CC_WHEN {
        CC_ON_AWAIT(&task) {
        }
    }
#elif REFUSED == 14
    { CC_FUTURE(fetch_all, all); /* no such function */ }
#endif
    return rc + (int)u + o.x + p.x + (int)task.id;
}
