/* every_macro.h - every public macro, in code that C11 and C++17 compile without a warning (-Wall -Wextra -Wpedantic).
 *
 * The stage `headers` compiles it alone, by each compiler and standard; tests/programs/every_macro*.c* run it.
 */
#include <ccc/ccc.h>

#include <errno.h>

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
    CC_MATCH_TRY(CC_RECV(ints.ch, &value, NULL), CC_RECV_OF(texts, &got, NULL), CC_ON_CANCEL()) {
    case CC_MATCH_NONE:
        break;
    default:
        MUST(false);
    }
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

/* ---- locks ---- */

static CCSem sem = CC_SEM_INIT(2);
static CCBarrier barrier = CC_BARRIER_INIT(1);

static void locks_(void) {
    CCSem two = CC_SEM_INIT(1);
    MUST(cc_sem_acquire(&sem) == 0 && cc_sem_acquire(&two) == 0);
    MUST(cc_barrier_wait(&barrier) == 0);
}

static void *all_macros(void *arg) {
    tasks_();
    nurseries_();
    channels_();
    locks_();
    return blocks_(arg);
}
