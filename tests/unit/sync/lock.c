/* lock.c - the one-word lock gives mutual exclusion, also when its holder is preempted. */
#include "harness.h"

#include "../crew.h"
#include "sync/lock.h"

#include <sched.h>
#include <time.h>

static struct {
    struct lock lock;
    long counter; /* plain: only the lock makes the sum right */
    int inside;
    long rounds;
} shared;

static void count(int index, void *arg) {
    (void)index, (void)arg;
    for (long i = 0; i < shared.rounds; i++) {
        cc__lock_take(&shared.lock);
        CHECK_EQ(shared.inside++, 0);
        shared.counter++;
        CHECK_EQ(--shared.inside, 0);
        cc__lock_release(&shared.lock);
    }
}

TEST(one_at_a_time) {
    shared.rounds = test_rounds(100000, 2000000);
    for (int threads = 1; threads <= 8; threads *= 2) {
        shared.counter = 0;
        crew_run(threads, count, NULL);
        CHECK_EQ(shared.counter, threads * shared.rounds);
    }
}

static void count_if_free(int index, void *arg) {
    _Atomic long *refused = arg;
    (void)index;
    for (long done = 0; done < shared.rounds;) {
        if (!cc__lock_try(&shared.lock)) {
            cc__add_relaxed(refused, 1);
            sched_yield();
            continue;
        }
        CHECK_EQ(shared.inside++, 0);
        shared.counter++;
        CHECK_EQ(--shared.inside, 0);
        cc__lock_release(&shared.lock);
        done++;
    }
}

TEST(one_at_a_time_by_try) {
    _Atomic long refused = 0;
    shared.rounds = test_rounds(50000, 1000000);
    crew_run(4, count_if_free, &refused);
    CHECK_EQ(shared.counter, 4 * shared.rounds);
}

TEST(try_of_a_held_lock_fails) {
    CHECK(cc__lock_try(&shared.lock));
    CHECK(!cc__lock_try(&shared.lock));
    CHECK(!cc__lock_try(&shared.lock));
    cc__lock_release(&shared.lock);
    CHECK(cc__lock_try(&shared.lock));
    cc__lock_release_hidden(&shared.lock);
    CHECK(cc__lock_try(&shared.lock));
}

static _Atomic int waiting, entered;

static void wait_for_it(int index, void *arg) {
    (void)index, (void)arg;
    cc__add(&waiting, 1);
    cc__lock_take(&shared.lock);
    cc__add(&entered, 1);
    shared.counter++;
    cc__lock_release(&shared.lock);
}

/* The holder is off the CPU for a thousand times as long as the waiters spin: they stay out, and they do get
 * in afterwards. */
TEST(holder_off_the_cpu) {
    struct crew crew;
    for (int round = 0; round < 5; round++) {
        cc__set(&waiting, 0);
        cc__set(&entered, 0);
        shared.counter = 0;
        cc__lock_take(&shared.lock);
        crew_start(&crew, 4, wait_for_it, NULL);
        while (cc__get(&waiting) < 4) sched_yield();
        nanosleep(&(struct timespec){.tv_nsec = 5 * 1000 * 1000},
                  NULL); /* this is the case, not a way to wait for something */
        CHECK_EQ(cc__get(&entered), 0);
        cc__lock_release(&shared.lock);
        crew_join(&crew);
        CHECK_EQ(shared.counter, 4);
    }
}
