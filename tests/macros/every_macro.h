/* every_macro.h - every public macro, in code that C11 and C++17 compile without a warning (-Wall -Wextra -Wpedantic).
 *
 * The stage `headers` compiles it alone, by each compiler and standard; tests/programs/every_macro*.c* run it.
 */
#include <ccc/ccc.h>

#include <errno.h>
#include <string.h>

/* What a program says; the test defines it. */
static void must(bool holds, int line);
#define MUST(condition) must((condition), __LINE__)

static int deferred_calls;

static void count_call(void *by) {
    deferred_calls += *(int *)by;
}

/* ---- tasks ---- */

CC_TASK(add, {
    int a, b;
    int *sum;
}) {
    *self->sum = self->a + self->b;
    return self->sum;
}

CC_TASK(idle, { int unused; }) {
    return NULL;
}

CC_TASK(without_arguments) {
    return NULL;
}

CC_CHILD(child_without_arguments) {
    return 0;
}

CC_TASK(nested, {
    struct {
        int x, y;
    } point;
    long more;
}) {
    return self->point.x == 0 && self->more == 0 ? NULL : self;
}

CC_BLOCKING(blocking_sum, {
    int a, b;
    int *sum;
}) {
    *self->sum = self->a + self->b;
    return self->sum;
}

CC_BLOCKING(blocking_without_arguments) {
    return NULL;
}

static void blocking_(void) {
    int sum = 0;
    void *result = &sum;
    MUST(CC_BLOCKING_CALL(blocking_without_arguments, &result) == 0 && result == NULL);
    MUST(CC_BLOCKING_CALL(blocking_sum, &result, .a = 1, .b = 2, .sum = &sum) == 0);
    MUST(result == &sum && sum == 3);
    MUST(CC_BLOCKING_CALL(blocking_sum, NULL, .a = 4, .sum = &sum) == 0 && sum == 4); /* left out: 0 */
    CCBlockingOptions options = {CC_POOL_SLOW, false, 0, NULL, {0, 0, 0, 0}};
    MUST(cc_blocking_ex(blocking_without_arguments_entry, &sum, &result, &options, CC_FOREVER) == 0);
}

static void tasks_(void) {
    int sum = 0, *result;
    CCTask task = CC_GO(add, .a = 1, .b = 2, .sum = &sum);
    result = (int *)cc_block_on(task);
    MUST(result == &sum && sum == 3);
    MUST(cc_block_on(CC_GO(idle)) == NULL);
    MUST(cc_block_on(CC_GO(idle, .unused = 1)) == NULL);
    MUST(cc_block_on(CC_GO(nested)) == NULL);
    MUST(cc_block_on(CC_GO(nested, .more = 1)) != NULL); /* left out: 0 */
    MUST(cc_block_on(CC_GO(without_arguments)) == NULL);
    CCIsland *island = NULL;
    MUST(cc_island_create(&island, NULL) == 0);
    MUST(cc_block_on(CC_GO_ON(island, add, .a = 2, .b = 2, .sum = &sum)) == &sum && sum == 4);
    MUST(cc_block_on(CC_GO_ON(island, nested, .more = 1)) != NULL);
    MUST(cc_block_on(CC_GO_ON(island, idle)) == NULL);
    MUST(cc_block_on(CC_GO_ON(CC_NO_ISLAND, without_arguments)) == NULL);
    MUST(cc_island_free(island) == 0);
}

/* ---- nurseries ---- */

CC_CHILD(check_even, { int number; }) {
    return self->number % 2 == 0 ? 0 : EDOM;
}

CC_CHILD(wait_for_ever, { int unused; }) {
    return cc_sleep_until(CC_FOREVER);
}

static int status_of(void *arg) {
    return *(int *)arg;
}

static int leave_early(int how) {
    CC_NURSERY(n) {
        MUST(CC_GO_IN(n, idle) == 0);
        MUST(CC_GO_IN(n, nested, .more = 0) == 0);
        MUST(CC_GO_IN(n, child_without_arguments) == 0);
        if (how == 1) return 1;
        if (how == 2) break;
        if (how == 3) continue;
        CC_NURSERY(inner) MUST(CC_GO_IN(inner, idle, .unused = 2) == 0);
    }
    return 0;
}

static void nurseries_(void) {
    int rc = -1, status = EIO, fine = 0;
    CC_NURSERY(n, .result = &rc) {
        MUST(CC_GO_IN(n, check_even, .number = 4) == 0);
        MUST(cc_nursery_spawn_status(n, status_of, &fine) == 0);
    }
    MUST(rc == 0);
    CC_NURSERY(n, .result = &rc, .mode = CC_NURSERY_COLLECT, .name = "odd") {
        MUST(CC_GO_IN(n, wait_for_ever) == 0);
        MUST(CC_GO_IN(n, check_even, .number = 5) == 0);
    }
    MUST(rc == EDOM);
    CC_NURSERY(n, .result = &rc) MUST(cc_nursery_spawn_status(n, status_of, &status) == 0);
    MUST(rc == EIO);
    CC_NURSERY(n, .result = &rc, .deadline = cc_after_ms(1)) {
        status = CC_GO_IN(n, wait_for_ever);
        MUST(status == 0 || status == ECANCELED); /* the deadline may have passed already */
    }
    MUST(rc == ETIMEDOUT);
    for (int how = 0; how < 4; how++) MUST(leave_early(how) == (how == 1));
    MUST(CC_ERROR(EIO) == (void *)(intptr_t)EIO);
}

/* ---- blocks ---- */

#define TWICE(fn, arg) \
    CC_DEFER(fn, arg); \
    CC_DEFER(fn, arg)

static void *blocks_(void *arg) {
    int one = 1, ten = 10;
    deferred_calls = 0;
    {
        CC_DEFER(count_call, &one);
        TWICE(count_call, &ten);
        CC_DEFER(count_call, &one);
        CC_DEFER(count_call, &one);
    }
    MUST(deferred_calls == 23);
    CC_WITH_DEADLINE(cc_after_ms(1)) {
        CC_SHIELD {
            CC_SHIELD MUST(cc_sleep_ms(3) == 0);
        }
        CC_WITH_DEADLINE(CC_FOREVER) MUST(cc_sleep_until(CC_FOREVER) == ECANCELED);
    }
    bool late = false;
    CC_WITH_DEADLINE(cc_after_ms(1), &late) MUST(cc_sleep_until(CC_FOREVER) == ECANCELED);
    MUST(late);
    return arg;
}

/* ---- channels and selects ---- */

struct point {
    int x, y;
};

CC_CHAN_OF(IntChan, int);
CC_CHAN_OF(PointChan, struct point);
CC_CHAN_OF(TextChan, const char *);

static void channels_(void) {
    IntChan ints = IntChan_create(1);
    PointChan points = PointChan_create(1);
    TextChan texts = TextChan_create(1);
    IntChanTx tx = IntChan_tx(ints);
    IntChanRx rx = IntChan_rx(ints);
    const int five = 5;
    int value = 0, rc = -1, round;
    struct point p = {1, 2}, q = {0, 0};
    const char *text = "a", *got = NULL;
    CCTask task = CC_GO(idle);
    void *result = &value;

    MUST(IntChan_send(ints, 4) == 0 && IntChan_recv(ints, &value) == 0 && value == 4);
    MUST(PointChan_send(points, p) == 0 && PointChan_recv_try(points, &q) == 0 && q.y == 2);
    MUST(TextChan_send(texts, text) == 0 && TextChan_recv_until(texts, &got, CC_FOREVER) == 0 && got == text);

    CC_MATCH(CC_SEND_OF(tx, &five, &rc), CC_RECV_OF(points, &q, NULL)) {
    case 0:
        break;
    default:
        MUST(false);
    }
    MUST(rc == 0);
    CC_MATCH(CC_RECV_OF(rx, &value, &rc), CC_AFTER_MS(60000)) {
    case 0:
        MUST(rc == 0 && value == 5);
        break;
    default:
        MUST(false);
    }
    CC_MATCH_TRY(CC_RECV(ints.ch, &value, NULL), CC_RECV_OF(texts, &got, NULL), CC_CANCEL()) {
    case CC_MATCH_NONE:
        break;
    default:
        MUST(false);
    }
    CC_MATCH(CC_READABLE_CASE(-1, &rc), CC_WRITABLE_CASE(-1, &rc)) {
    case 0:
    case 1:
        MUST(rc == EBADF);
        break;
    default:
        MUST(false);
    }
    CCChan *tokens = cc_chan_create(0, 1);
    CC_MATCH_TRY(CC_SEND(tokens, NULL, &rc), CC_RECV(tokens, NULL, NULL)) {
    case 0:
        MUST(rc == 0);
        break;
    default:
        MUST(false);
    }
    CC_WHEN {
        CC_ON_SEND(tokens, NULL) {
            MUST(false);
        }
        CC_ON_RECV(tokens, NULL) {
            MUST(CC_WHEN_ERROR == 0 && cc_chan_len(tokens) == 0);
        }
    }
    cc_chan_free(tokens);
    CCChan *signals = cc_chan_create(sizeof(CCSignal), 1);
    CCSignal signal;
    CCProcess *process = NULL;
    CCProcessStatus status;
    CC_MATCH_TRY(CC_RECV_SIGNAL(signals, &signal, &rc), CC_CANCEL()) {
    case CC_MATCH_NONE:
        break;
    default:
        MUST(false);
    }
    CC_MATCH_TRY(CC_EXITED(process, &status, &rc)) {
    case CC_MATCH_FAILED: /* none is malformed */
        break;
    default:
        MUST(false);
    }
    CCWakeKey key = {0, 0};
    uint64_t word = 0;
    CC_MATCH_TRY(CC_KEY_CASE(key, &word, &rc)) {
    case 0:
        MUST(rc == ESRCH);
        break;
    default:
        MUST(false);
    }
    CC_WHEN {
        CC_ON_KEY(key, &word) {
            MUST(CC_WHEN_ERROR == ESRCH);
        }
    }
    CCEvent event = {0, 0, NULL};
    CCSem sem = CC_SEM_INIT(1);
    CC_MATCH_TRY(CC_EVENT_CASE(&event), CC_ACQUIRE_CASE(&sem)) {
    case 1:
        break;
    default:
        MUST(false);
    }
    MUST(cc_event_set(&event) == 0);
    CC_WHEN {
        CC_ON_EVENT(&event) {}
        CC_ON_ACQUIRE(&sem) {
            MUST(false);
        }
    }
    CCNursery *nursery = cc_nursery_create(NULL);
    CC_MATCH(CC_NURSERY_END_CASE(nursery)) {
    case 0:
        break;
    default:
        MUST(false);
    }
    CC_WHEN {
        CC_ON_NURSERY_END(nursery) {
            MUST(CC_WHEN_ERROR == 0);
        }
    }
    CC_WHEN {
        if (process != NULL) CC_ON_EXITED(process, &status) {
            }
        CC_ON_DEFAULT() {}
    }
    MUST(cc_nursery_free(nursery) == 0);
    cc_chan_free(signals);
    value = 6;
    for (round = 0; round < 2; round++) {
        CC_MATCH(CC_SEND(ints.ch, &value, &rc), CC_JOIN(&task, &result, NULL), CC_AT(CC_FOREVER)) {
        case 0:
            MUST(rc == 0);
            break;
        case 1:
            MUST(result == NULL);
            task = CC_GO(idle); /* the handle is used up */
            break;
        case CC_MATCH_FAILED:
        default:
            MUST(false);
        }
    }
    MUST(cc_task_join(&task, NULL) == 0 || task.id == 0);
    IntChan_free(ints);
    PointChan_free(points);
    TextChan_free(texts);
}

static void loops_(void) {
    IntChan ints = IntChan_create(4);
    int sum = 0;
    for (int i = 1; i <= 4; i++) MUST(IntChan_send(ints, i) == 0);
    CC_FOR_RECV(int, v, ints.ch) {
        sum += v;
        if (v == 2) break;
    }
    MUST(sum == 3 && IntChan_close(ints) == 0);
    CC_FOR_RECV_OF(v, ints) {
        if (v == 3) continue;
        CC_FOR_RECV_OF(w, IntChan_rx(ints)) MUST(w == 0); /* none is left */
        sum += v;
    }
    MUST(sum == 7);
    IntChan_free(ints);
}

/* ---- futures, and selects with bodies ---- */

CC_ASYNC(struct point, mirrored, { struct point of; }) {
    struct point p = {self->of.y, self->of.x};
    if (self->of.x < 0) CC_SET_ERROR(EDOM);
    return p;
}

CC_ASYNC(const char *, hello) {
    return "hello";
}

/* A macro's own names are not those of a program. */
CC_ASYNC(int, f, { int value; }) {
    return self->value;
}
CC_ASYNC(int, size) {
    return 9;
}

static void futures_(void) {
    struct point p = {1, 2};
    CC_FUTURE(mirrored, a);
    CC_FUTURE(hello, b);
    CC_FUTURE(f, c);
    CC_FUTURE(size, d);
    MUST(CC_START(&c, f, .value = 8) == 0 && CC_START(&d, size) == 0);
    MUST(CC_AWAIT(&c) == CC_CALL(f, .value = 8) && CC_AWAIT(&d) == CC_CALL(size));
    MUST(CC_CALL(mirrored, .of = p).x == 2 && CC_CALL(hello)[0] == 'h');
    MUST(CC_START(&a, mirrored, .of = {3, 4}) == 0);
    MUST(CC_START(&b, hello) == 0);
    MUST(CC_AWAIT(&a).x == 4 && CC_AWAIT(&b)[0] == 'h');
    p.x = -1;
    MUST(CC_START(&a, mirrored, .of = p) == 0);
    MUST(cc_await(&a, CC_FOREVER) == EDOM && a.value.y == -1);
}

static int when_(IntChan ints, CCDeadline deadline) {
    IntChanRx rx = IntChan_rx(ints);
    const int five = 5;
    int value = 0, arms = 0;
    void *result = &value;
    CCTask task = CC_GO(idle);
    CC_FUTURE(hello, f);
    CC_WHEN {
        CC_ON_RECV_OF(rx, &value) {
            MUST(false);
        }
        CC_ON_SEND_OF(ints, &five) {
            MUST(CC_WHEN_ERROR == 0);
            arms++;
        }
    }
    CC_WHEN {
        CC_ON_SEND(ints.ch, &five) {
            MUST(false);
        }
        CC_ON_RECV(ints.ch, &value) {
            MUST(value == 5);
            arms++;
            CC_WHEN {
                CC_ON_JOIN(&task, &result) {
                    MUST(result == NULL);
                    arms++;
                }
            }
        }
        CC_ON_UNTIL(deadline) {
            MUST(false);
        }
    }
    MUST(CC_START(&f, hello) == 0);
    CC_WHEN_N(3) {
        CC_ON_RECV_OF(ints, &value) {
            MUST(false);
        }
        CC_ON_AWAIT(&f) {
            MUST(CC_AWAIT(&f)[0] == 'h');
            arms++;
        }
        CC_ON_CANCEL() {
            MUST(false);
        }
    }
    CC_WHEN_ORDERED {
        CC_ON_UNTIL(CC_PASSED) {
            arms++;
        }
        CC_ON_AFTER_MS(0) {
            MUST(false);
        }
    }
    CC_WHEN_ORDERED_N(1) {
        CC_ON_UNTIL(CC_PASSED) {
            arms++;
        }
    }
    CC_WHEN {
        CC_ON_RECV_OF(ints, &value) {
            MUST(false);
        }
        CC_ON_CLOSED(ints.ch) {
            MUST(false);
        }
        CC_ON_DEFAULT() {
            arms++;
            break;
        }
    }
    CCTicker ticker;
    MUST(cc_ticker_init(&ticker, 1000, CC_TICKER_DELAY) == 0);
    CC_WHEN {
        CC_ON_TICK(&ticker) {
            arms++;
        }
    }
    CC_WHEN {
        CC_ON_READABLE(-1) {
            MUST(CC_WHEN_ERROR == EBADF);
            arms++;
        }
        CC_ON_WRITABLE(-1) {
            MUST(CC_WHEN_ERROR == EBADF);
            arms++;
        }
    }
    CC_WHEN {
        CC_ON_AFTER_MS(1) {
            return arms + 1;
        }
    }
    return 0;
}

static void whens_(void) {
    IntChan ints = IntChan_create(1);
    MUST(when_(ints, CC_FOREVER) == 10);
    IntChan_free(ints);
}

CC_ONESHOT_OF(PointOnce, struct point);

static void oneshots_(void) {
    PointOnce once;
    memset(&once, 0, sizeof once);
    struct point p = {1, 2}, q = {0, 0};
    MUST(PointOnce_recv_try(&once, &q) == EAGAIN && PointOnce_recv_until(&once, &q, CC_PASSED) == ETIMEDOUT);
    MUST(PointOnce_send(&once, p) == 0 && PointOnce_close(&once, 0) == EPIPE);
    MUST(PointOnce_recv(&once, &q) == 0 && q.y == 2);
}

/* ---- locks ---- */

static CCSem sem = CC_SEM_INIT(2);
static CCBarrier barrier = CC_BARRIER_INIT(1);

static void locks_(void) {
    CCSem two = CC_SEM_INIT(1);
    MUST(cc_sem_acquire(&sem) == 0 && cc_sem_acquire(&two) == 0);
    MUST(cc_barrier_wait(&barrier) == 0);
}

/* ---- the recorder ---- */

static void regions_(void) {
    CC_REGION("outer");
    CC_REGION("inner");
    cc_note("%d regions", 2);
}

static void *all_macros(void *arg) {
    tasks_();
    blocking_();
    nurseries_();
    channels_();
    loops_();
    futures_();
    whens_();
    oneshots_();
    locks_();
    regions_();
    return blocks_(arg);
}
