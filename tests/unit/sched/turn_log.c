/* The turn log: a turn is placed between two entries, however long ago it was. */
#include "harness.h"

#include "sched/turn_log.h"

static struct turn_log turn_log;

TEST(knows_nothing_at_first) {
    uint64_t from, to;
    cc__turn_log_find(&turn_log, 1, &from, &to);
    CHECK_EQ(from, 0);
    CHECK(to == UINT64_MAX);
}

TEST(no_turn_was_before_its_beginning) {
    uint64_t from, to;
    cc__turn_log_begin(&turn_log, 500);
    cc__turn_log_begin(&turn_log, 700); /* the worker was started again: its turns go on */
    cc__turn_log_write(&turn_log, 5, 1000);
    cc__turn_log_find(&turn_log, 3, &from, &to);
    CHECK_EQ(from, 500);
    CHECK_EQ(to, 1000);
}

TEST(brackets_every_turn) {
    /* A turn between two entries, at times 10, 20, 30 ...: turn n ends at 10 n + 5. */
    enum { ENTRIES = 100000 };
    for (uint64_t entry = 1; entry <= ENTRIES; entry++) cc__turn_log_write(&turn_log, entry, entry * 10);
    for (uint64_t turn = 1; turn < ENTRIES; turn++) {
        uint64_t from, to, age = ENTRIES - turn;
        cc__turn_log_find(&turn_log, turn, &from, &to);
        CHECK(from < turn * 10 + 5 && turn * 10 + 5 < to);
        CHECK(to != UINT64_MAX);
        /* The gap is at most its age, in entries. */
        if (from != 0) CHECK((to - from) / 10 <= (age < 2 ? 2 : age));
    }
}

TEST(a_turn_after_the_last_entry_has_no_end) {
    cc__turn_log_write(&turn_log, 5, 1000);
    uint64_t from, to;
    cc__turn_log_find(&turn_log, 5, &from, &to);
    CHECK_EQ(from, 1000);
    CHECK(to == UINT64_MAX);
}
