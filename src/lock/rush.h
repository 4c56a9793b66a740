/* rush.h - a mutex that is taken again as soon as it is given back, and what those who find it locked do then.
 *
 * Two cores that take turns at such a mutex gain nothing: one of them always waits, and each change of cores costs as
 * much as dozens of operations, because the line of memory travels at every look, and four looks of five find the mutex
 * locked. One that is free for most of the time is different: there a short wait lets two cores work at a time. Looks
 * from outside do not tell the two apart. How many unlocks there are while one stands back does: in a rush there are
 * more than cores could make which pass the line to each other.
 *
 * So one of RUSH_TURNS collisions is counted: the loser pauses without a look at the mutex, and sees how far the room's
 * count of unlocks has come. If it was a rush, the next pause is twice as long, and counted, too. At the last level
 * everybody who finds the mutex locked stands back for that long, and one of RUSH_TURNS counts again.
 *
 * RUSH-1  Nobody relies on it: a wrong verdict costs time, and no more of it than RUSH_TURNS pauses.
 * RUSH-2  A count is one of pieces, each of which has to be a rush: a mutex that is taken a hundred times at once and
 *         then left alone for long is none, and who counts is back as soon as it sees that.
 * RUSH-3  An heir (MUTEX-2) does not stand back, nor does one with a deadline that is near.
 */
#ifndef CC_LOCK_RUSH_H
#define CC_LOCK_RUSH_H

#include "lock/lobby.h"

enum {
    RUSH_PIECE_NS = 1000, /* some 60 operations; the first of them find the lines of mutex and room elsewhere */
    /* 1, 2, 4, 8 and 16 us. bench/mutex on two workers with a fixed pause of 2 us: 16 ns, 4: 15, 8: 14, 16: 13, 24: 12.7 */
    RUSH_LEVELS = 4,
    RUSH_TURNS = 16, /* guess; with 8 as with 32 there is no difference to be seen */
    /* A rush is where an operation takes less. One core with the mutex to itself needs 12 ns, or 17 in a hot room; with
     * two that do something else in between it came to 45 and more. */
    RUSH_OP_NS = 40,
};

/* Pauses if there is a rush in the room, or to find out. True: there is one. Any thread. */
bool cc__rush_stand_back(struct lobby *lobby);

/* It was in vain: the mutex is not given back. */
void cc__rush_over(struct lobby *lobby);

#endif
