/* rush.c - counting, and standing back. */
#include "lock/rush.h"

#include "arch/cpu.h"
#include "os/clock.h"

enum { PAUSES = 8 }; /* between two looks at the clock; about 350 ns */

/* For how long it was. A simulated clock would stand still. */
static uint64_t pause_for(uint64_t ns) {
    uint64_t start = cc__clock_real(), passed;
    do {
        for (unsigned i = 0; i < PAUSES; i++) cc__cpu_relax();
        passed = cc__clock_real() - start;
    } while (passed < ns);
    return passed;
}

enum verdict { NO_RUSH, RUSH, UNKNOWN };

/* RUSH-2. */
static enum verdict count_unlocks(struct lobby *lobby, unsigned pieces) {
    enum verdict verdict = RUSH;
    bool heats = cc__lobby_count_begin(lobby);
    for (uint32_t before = cc__get(&lobby->quiet), now; verdict == RUSH && pieces > 0; pieces--, before = now) {
        uint64_t passed = pause_for(RUSH_PIECE_NS);
        now = cc__get(&lobby->quiet);
        if (now < before || cc__get(&lobby->cold))
            verdict = UNKNOWN; /* somebody came to wait, or the room cooled: the count has begun anew, or stopped */
        else if ((uint64_t)(now - before) * RUSH_OP_NS < passed)
            verdict = NO_RUSH;
    }
    cc__lobby_count_end(lobby, heats);
    return verdict;
}

bool cc__rush_stand_back(struct lobby *lobby) {
    uint32_t level = cc__get(&lobby->rush), turn = cc__get(&lobby->turn);
    cc__set(&lobby->turn, turn + 1);
    if (likely(turn % RUSH_TURNS != 0 && (level == 0 || level == RUSH_LEVELS))) {
        if (level != 0) pause_for((uint64_t)RUSH_PIECE_NS << level);
        return level != 0;
    }
    switch (count_unlocks(lobby, 1u << level)) {
    case NO_RUSH:
        if (level != 0) cc__set(&lobby->rush, 0);
        return false;
    case RUSH:
        if (level < RUSH_LEVELS) cc__set(&lobby->rush, level + 1);
        return true;
    default:
        return level != 0;
    }
}

void cc__rush_over(struct lobby *lobby) {
    cc__set(&lobby->rush, 0);
    cc__set(&lobby->turn, 0); /* the next collision is counted */
}
