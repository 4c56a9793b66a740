/* key.c - wake keys: woken before, during and after their wait, from any context; late keys, and reused records. */
#include "../contexts.h"
#include "../crew.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

_Static_assert(sizeof(CCWakeKey) == 16, "a key is sixteen bytes");

static CCWakeKey new_key(void) {
    CCWakeKey key = {0};
    CHECK_EQ(cc_wake_key_open(&key), 0);
    CHECK(key.id != 0 && key.ticket != 0);
    return key;
}

static void woken_before(void) {
    CCWakeKey key = new_key();
    uint64_t value = 0;
    CHECK_EQ(cc_wake_key_wait_try(key, &value), EAGAIN);
    CHECK_EQ(cc_wake(key, 7), 0);
    CHECK_EQ(cc_wake(key, 8), ESRCH); /* one wake */
    CHECK_EQ(cc_wake_key_wait(key, &value), 0);
    CHECK_EQ(value, 7);
    CHECK_EQ(cc_wake_key_wait(key, &value), ESRCH);
    CHECK_EQ(cc_wake(key, 9), ESRCH);
    key = new_key();
    CHECK_EQ(cc_wake(key, 7), 0);
    CHECK_EQ(cc_wake_key_wait_try(key, NULL), 0);
    CHECK_EQ(cc_wake_key_close(key), ESRCH);
    errno = 77;
    CHECK_EQ(cc_wake(key, 7), ESRCH);
    CHECK_EQ(errno, 77);
}

TEST_WORKERS(woken_before) {
    in_both_contexts(woken_before);
}

static void timed_out(void) {
    CCWakeKey key = new_key();
    uint64_t value = 5;
    CHECK_EQ(cc_wake_key_wait_until(key, &value, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(cc_wake(key, 1), ESRCH); /* late */
    CHECK_EQ(cc_wake_key_wait_until(key, &value, CC_PASSED), ESRCH);
    CHECK_EQ(value, 5);
    key = new_key();
    CHECK_EQ(cc_wake(key, 6), 0);
    CHECK_EQ(cc_wake_key_wait_until(key, &value, CC_PASSED), 0);
    CHECK_EQ(value, 6);
}

TEST_WORKERS(timed_out) {
    in_both_contexts(timed_out);
}

static void closed(void) {
    CCWakeKey key = new_key(), none = {0, 0}, wild = {UINT64_MAX, 1}, far = {1000000, 1};
    CHECK_EQ(cc_wake_key_close(key), 0);
    CHECK_EQ(cc_wake_key_close(key), ESRCH);
    CHECK_EQ(cc_wake(key, 0), ESRCH);
    CHECK_EQ(cc_wake_key_wait(key, NULL), ESRCH);
    CHECK_EQ(cc_wake(none, 0), ESRCH);
    CHECK_EQ(cc_wake(wild, 0), ESRCH);
    CHECK_EQ(cc_wake(far, 0), ESRCH);
    CHECK_EQ(cc_wake_key_wait(none, NULL), ESRCH);
    CHECK_EQ(cc_wake_key_close(none), ESRCH);
    CHECK_EQ(cc_wake_key_open(NULL), EINVAL);
    /* The ticket of a free record. */
    CHECK_EQ(cc_wake((CCWakeKey){key.id, key.ticket + 1}, 0), ESRCH);
    CHECK_EQ(cc_wake_key_wait((CCWakeKey){key.id, key.ticket + 1}, NULL), ESRCH);
}

TEST_WORKERS(closed) {
    in_both_contexts(closed);
}

/* Before the runtime has started, and after it has stopped. */
TEST(without_runtime) {
    closed();
    woken_before();
    timed_out();
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CCWakeKey key = new_key();
    CHECK_EQ(cc_runtime_shutdown(60000), 0);
    CHECK_EQ(cc_wake(key, 3), 0);
    uint64_t value = 0;
    CHECK_EQ(cc_wake_key_wait(key, &value), 0);
    CHECK_EQ(value, 3);
}

/* ---- with a waiter ---- */

CC_TASK(waits, {
    CCWakeKey key;
    uint64_t value;
}) {
    uint64_t value = 0;
    CHECK_EQ(cc_wake_key_wait(self->key, &value), 0);
    CHECK_EQ(value, self->value);
    return NULL;
}

CC_TASK(wakes, {
    CCWakeKey key;
    uint64_t value;
}) {
    CHECK_EQ(cc_wake(self->key, self->value), 0);
    return NULL;
}

TEST_WORKERS(many_pairs) {
    enum { PAIRS = 200 };
    CCTask tasks[2 * PAIRS];
    for (uint64_t i = 0; i < PAIRS; i++) {
        CCWakeKey key = new_key();
        tasks[i] = CC_GO(waits, .key = key, .value = i);
        tasks[PAIRS + i] = CC_GO(wakes, .key = key, .value = i);
    }
    CHECK_EQ(cc_join_all(tasks, 2 * PAIRS, NULL, CC_FOREVER), 0);
}

/* A library that calls back from a thread of its own. */
static void wake_all(int index, void *shared) {
    CCWakeKey *keys = shared;
    for (int i = index; i < 64; i += 2) CHECK_EQ(cc_wake(keys[i], (uint64_t)i), 0);
}

TEST_WORKERS(woken_by_threads) {
    CCTask tasks[64];
    CCWakeKey keys[64];
    struct crew crew;
    for (uint64_t i = 0; i < 64; i++) {
        keys[i] = new_key();
        tasks[i] = CC_GO(waits, .key = keys[i], .value = i);
    }
    crew_start(&crew, 2, wake_all, keys);
    CHECK_EQ(cc_join_all(tasks, 64, NULL, CC_FOREVER), 0);
    crew_join(&crew);
}

/* A thread waits, a fiber wakes. */
TEST_WORKERS(thread_waits) {
    CCWakeKey key = new_key();
    CCTask task = CC_GO(wakes, .key = key, .value = 12);
    uint64_t value = 0;
    CHECK_EQ(cc_wake_key_wait_until(key, &value, cc_after_s(600)), 0);
    CHECK_EQ(value, 12);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

/* Several wait for one key: one gets it, the others find it expired. */
static _Atomic int got, over;

CC_TASK(competes, { CCWakeKey key; }) {
    uint64_t value = 0;
    int rc = cc_wake_key_wait(self->key, &value);
    CHECK(rc == 0 ? value == 99 : rc == ESRCH);
    atomic_fetch_add(rc == 0 ? &got : &over, 1);
    return NULL;
}

TEST_WORKERS(one_of_several) {
    CCTask tasks[8];
    CCWakeKey key = new_key();
    atomic_store(&got, 0);
    atomic_store(&over, 0);
    for (int i = 0; i < 8; i++) tasks[i] = CC_GO(competes, .key = key);
    cc_sleep_ms(1);
    CHECK_EQ(cc_wake(key, 99), 0);
    CHECK_EQ(cc_join_all(tasks, 8, NULL, CC_FOREVER), 0);
    CHECK_EQ(atomic_load(&got), 1);
    CHECK_EQ(atomic_load(&over), 7);
}

CC_TASK(finds_it_over, { CCWakeKey key; }) {
    CHECK_EQ(cc_wake_key_wait(self->key, NULL), ESRCH);
    return NULL;
}

TEST_WORKERS(closed_under_a_wait) {
    CCWakeKey key = new_key();
    CCTask task = CC_GO(finds_it_over, .key = key);
    cc_sleep_ms(1);
    CHECK_EQ(cc_wake_key_close(key), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

CC_CHILD(waits_to_be_cancelled, { CCWakeKey key; }) {
    int rc = cc_wake_key_wait(self->key, NULL);
    CHECK_EQ(rc, ECANCELED);
    CHECK_EQ(cc_wake(self->key, 0), ESRCH);
    return rc;
}

TEST_WORKERS(cancelled) {
    int rc;
    CC_NURSERY(n, .result = &rc) {
        for (int i = 0; i < 10; i++) CC_GO_IN(n, waits_to_be_cancelled, .key = new_key());
        cc_sleep_ms(1);
        cc_nursery_cancel(n);
    }
    CHECK_EQ(rc, ECANCELED);
}

/* ---- as an arm ---- */

static void arms(void) {
    CCWakeKey a = new_key(), b = new_key();
    uint64_t value = 0, other = 0;
    int rc = -1, seen = 0;
    CC_MATCH_TRY(CC_KEY_CASE(a, &value, &rc), CC_KEY_CASE(b, &other, NULL)) {
    case CC_MATCH_NONE:
        seen = 1;
        break;
    default:
        break;
    }
    CHECK_EQ(seen, 1);
    CHECK_EQ(cc_wake(a, 4), 0);
    CC_WHEN {
        CC_ON_KEY(a, &value) {
            CHECK_EQ(CC_WHEN_ERROR, 0);
            seen = 2;
        }
        CC_ON_KEY(b, &other) {
            seen = 3;
        }
    }
    CHECK_EQ(seen, 2);
    CHECK_EQ(value, 4);
    CC_WHEN { /* it has expired, and the other one is still open */
        CC_ON_KEY(a, &value) {
            CHECK_EQ(CC_WHEN_ERROR, ESRCH);
            seen = 4;
        }
    }
    CHECK_EQ(seen, 4);
    CC_WHEN {
        CC_ON_KEY(b, &other) {
            seen = 5;
        }
        CC_ON_AFTER_MS(1) {
            seen = 6;
        }
    }
    CHECK_EQ(seen, 6);
    CHECK_EQ(cc_wake(b, 8), 0); /* another arm was chosen: the key is still valid */
    CHECK_EQ(cc_wake_key_wait(b, &other), 0);
    CHECK_EQ(other, 8);
}

TEST_WORKERS(arms) {
    in_both_contexts(arms);
}

CC_TASK(selects, {
    CCWakeKey key;
    CCChan *never;
}) {
    uint64_t value = 0;
    int v;
    CC_WHEN {
        CC_ON_RECV(self->never, &v) {
            CHECK(false);
        }
        CC_ON_KEY(self->key, &value) {
            CHECK_EQ(CC_WHEN_ERROR, 0);
        }
        CC_ON_KEY(self->key, &value) { /* twice: either */
            CHECK_EQ(CC_WHEN_ERROR, 0);
        }
    }
    CHECK_EQ(value, 21);
    return NULL;
}

TEST_WORKERS(arm_is_woken) {
    CCChan *never = cc_chan_create(sizeof(int), 0);
    for (int i = 0; i < 20; i++) {
        CCWakeKey key = new_key();
        CCTask task = CC_GO(selects, .key = key, .never = never);
        if (i % 2 == 0) cc_sleep_ms(1);
        CHECK_EQ(cc_wake(key, 21), 0);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
    cc_chan_free(never);
}

/* ---- late keys against reused records ---- */

enum { OLD = 64, REUSERS = 4, KEYS = OLD / REUSERS };

static bool all_reused(_Atomic uint8_t *reused) {
    int n = 0;
    for (int i = 1; i <= OLD; i++) n += atomic_load(&reused[i]);
    return n == OLD;
}

/* Expired keys, whose records others use: none of them is accepted, and the others are not affected. Each
 * fiber has KEYS keys open at a time, so that all records of the old ones are in use. */
CC_TASK(reuses, {
    _Atomic bool *stop;
    _Atomic uint8_t *reused; /* by the record's number */
}) {
    while (!atomic_load(self->stop)) {
        CCWakeKey keys[KEYS];
        for (int i = 0; i < KEYS; i++) {
            keys[i] = new_key();
            if (keys[i].id <= OLD) atomic_store(&self->reused[keys[i].id], 1);
        }
        do cc_yield();
        while (!all_reused(self->reused)); /* at the first time all of them have their keys at once */
        for (uint64_t i = 0; i < KEYS; i++) {
            uint64_t value = 0;
            CHECK_EQ(cc_wake_key_wait_try(keys[i], &value), EAGAIN);
            CHECK_EQ(cc_wake(keys[i], i), 0);
            CHECK_EQ(cc_wake_key_wait(keys[i], &value), 0);
            CHECK_EQ(value, i);
        }
    }
    return NULL;
}

TEST_WORKERS(late_wakes, .timeout = 300) {
    CCWakeKey old[OLD];
    _Atomic bool stop = false;
    _Atomic uint8_t reused[OLD + 1] = {0};
    long accepted = 0, late = test_scale(1000000); /* for each number of workers */
    for (int i = 0; i < OLD; i++) old[i] = new_key();
    for (int i = 0; i < OLD; i++) CHECK(old[i].id <= OLD);
    for (int i = 0; i < OLD; i++) CHECK_EQ(cc_wake_key_close(old[i]), 0);
    CCTask tasks[REUSERS];
    for (int i = 0; i < REUSERS; i++) tasks[i] = CC_GO(reuses, .stop = &stop, .reused = reused);
    while (!all_reused(reused)) cc_yield();
    for (long i = 0; i < late; i++) accepted += cc_wake(old[i % OLD], 666) == 0;
    atomic_store(&stop, true);
    CHECK_EQ(cc_join_all(tasks, REUSERS, NULL, CC_FOREVER), 0);
    CHECK_EQ(accepted, 0);
}

/* More keys than the first chunk of records has, all different. */
TEST(many_open) {
    enum { MANY = 1000 };
    static CCWakeKey keys[MANY];
    for (uint64_t i = 0; i < MANY; i++) keys[i] = new_key();
    for (uint64_t i = 0; i < MANY; i++) CHECK_EQ(cc_wake(keys[i], i), 0);
    for (uint64_t i = MANY; i-- > 0;) {
        uint64_t value = 0;
        CHECK_EQ(cc_wake_key_wait(keys[i], &value), 0);
        CHECK_EQ(value, i);
    }
}

/* ---- everything at once ---- */

static _Atomic long woken, refused;

CC_TASK(wakes_some_time, { CCWakeKey key; }) {
    cc_yield();
    int rc = cc_wake(self->key, 1);
    CHECK(rc == 0 || rc == ESRCH);
    atomic_fetch_add(rc == 0 ? &woken : &refused, 1);
    return NULL;
}

static _Atomic long received, gave_up;

CC_TASK(waits_some_time, {
    CCWakeKey key;
    int ns;
}) {
    int rc = cc_wake_key_wait_until(self->key, NULL, cc_after_ns((uint64_t)self->ns));
    CHECK(rc == 0 || rc == ETIMEDOUT);
    atomic_fetch_add(rc == 0 ? &received : &gave_up, 1);
    return NULL;
}

/* A wake returns 0 exactly as often as a wait does. */
TEST_WORKERS(wake_against_deadline, .timeout = 120) {
    atomic_store(&woken, 0);
    atomic_store(&refused, 0);
    atomic_store(&received, 0);
    atomic_store(&gave_up, 0);
    long rounds = test_scale(2000);
    for (long i = 0; i < rounds; i++) {
        CCWakeKey key = new_key();
        CCTask pair[2] = {CC_GO(waits_some_time, .key = key, .ns = (int)(i * 37 % 20000)),
                          CC_GO(wakes_some_time, .key = key)};
        CHECK_EQ(cc_join_all(pair, 2, NULL, CC_FOREVER), 0);
    }
    CHECK_EQ(atomic_load(&woken), atomic_load(&received));
    CHECK_EQ(atomic_load(&refused), atomic_load(&gave_up));
    CHECK_EQ(atomic_load(&woken) + atomic_load(&refused), rounds);
}

/* Keys that were open at a fork are open in the child. */
TEST(forked) {
    CCWakeKey key = new_key();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        uint64_t value = 0;
        CCWakeKey another;
        bool ok = cc_wake(key, 2) == 0 && cc_wake_key_wait(key, &value) == 0 && value == 2 &&
                  cc_wake_key_open(&another) == 0 && cc_wake_key_close(another) == 0;
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(cc_wake(key, 3), 0); /* the parent has its own copy */
    CHECK_EQ(cc_wake_key_close(key), 0);
}

/* ---- in dumps ---- */

static const char *dump_text(void) {
    static char text[65536];
    FILE *file = fmemopen(text, sizeof text, "w");
    CHECK(file != NULL);
    CHECK_EQ(cc_dump(file), 0);
    fclose(file);
    return text;
}

CC_TASK(waits_in_dump, { CCWakeKey key; }) {
    CHECK_EQ(cc_wake_key_wait(self->key, NULL), 0);
    CC_WHEN {
        CC_ON_KEY(self->key, NULL) {
            CHECK_EQ(CC_WHEN_ERROR, ESRCH);
        }
    }
    return NULL;
}

TEST(shows_what_is_waited_for) {
    CCWakeKey key = new_key();
    CCTask task = CC_GO(waits_in_dump, .key = key);
    while (strstr(dump_text(), "waits for wake key") == NULL) cc_sleep_ms(1);
    CHECK_EQ(cc_wake(key, 0), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}
