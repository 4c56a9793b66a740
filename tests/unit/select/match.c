/* match.c - CC_MATCH reads like a switch and does what select does. */
#include "arms.h"

static void *match_body(void *unused) {
    (void)unused;
    CCChan *in = new_chan(sizeof(int), 1), *out = new_chan(sizeof(double), 1);
    int v = 0, closed = -1, which = -9;
    double w = 1.5;
    CC_MATCH(CC_RECV(in, &v, &closed), CC_SEND(out, &w, NULL)) {
    case 0:
        which = 0;
        break;
    case 1:
        which = 1;
        break;
    default:
        which = -1;
    }
    CHECK_EQ(which, 1);
    CC_MATCH_TRY(CC_RECV(in, &v, &closed), CC_SEND(out, &w, NULL)) {
    case CC_MATCH_NONE:
        which = 5;
        break;
    default:
        which = -1;
    }
    CHECK_EQ(which, 5);
    v = 3;
    CHECK_EQ(cc_chan_send(in, &v, sizeof v), 0);
    v = 0;
    CC_MATCH_TRY(CC_RECV(in, &v, &closed)) {
    case 0:
        which = 0;
        break;
    default:
        which = -1;
    }
    CHECK_EQ(which, 0);
    CHECK_EQ(v, 3);
    CHECK_EQ(closed, 0);
    CHECK_EQ(cc_chan_close(in), 0);
    CC_MATCH(CC_RECV(in, &v, &closed)) {
    case 0:
        which = closed;
        break;
    }
    CHECK_EQ(which, EPIPE);
    uint64_t start = cc_now_ns();
    CC_MATCH(CC_SEND(out, &w, NULL), CC_AFTER_MS(2)) {
    case 1:
        which = 77;
        break;
    default:
        which = -1;
    }
    CHECK_EQ(which, 77);
    CHECK(cc_now_ns() - start >= 2000000);
    short wrong = 0;
    CC_MATCH(CC_RECV(in, &wrong, NULL)) {
    case CC_MATCH_FAILED:
        which = 88;
        break;
    default:
        which = -1;
    }
    CHECK_EQ(which, 88);
    CHECK_EQ(cc_chan_len(out), 1);
    cc_chan_free(in);
    cc_chan_free(out);
    return NULL;
}

TEST_WORKERS(match) {
    both_contexts(match_body);
}

static void *seven(void *arg) {
    (void)arg;
    return (void *)7L;
}

/* break and continue belong to the switch and the loop around it, as everywhere. */
static void *loop_body(void *unused) {
    (void)unused;
    CCChan *ch = new_chan(sizeof(int), 4);
    for (int i = 0; i < 4; i++) CHECK_EQ(cc_chan_send(ch, &i, sizeof i), 0);
    CHECK_EQ(cc_chan_close(ch), 0);
    CCTask task = cc_fiber_spawn_task(seven, NULL);
    void *result = NULL;
    int sum = 0, v, error, joined = 0, rounds = 0;
    bool open = true;
    while (open || !joined) {
        CHECK(++rounds < 100);
        CC_MATCH(CC_RECV(open ? ch : NULL, &v, &error),
                 {.kind = joined ? CC_CASE_NONE : CC_CASE_JOIN, .task = &task, .value = &result}) {
        case 0:
            if (error != 0) {
                open = false;
                continue;
            }
            sum += v;
            break;
        case 1:
            joined++;
            break;
        default:
            CHECK(!"no other arm");
        }
    }
    CHECK_EQ(sum, 6);
    CHECK_EQ((long)result, 7);
    CHECK_EQ(joined, 1);
    cc_chan_free(ch);
    return NULL;
}

TEST_WORKERS(in_a_loop) {
    both_contexts(loop_body);
}
