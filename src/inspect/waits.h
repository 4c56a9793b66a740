/* waits.h - whether waits can end: who waits for whom, whether anything can still wake anybody, who can never go on. */
#ifndef CC_INSPECT_WAITS_H
#define CC_INSPECT_WAITS_H

#include "inspect/view.h"

/* ---- who waits for whom, among fibers that stand still (graph.c) ----
 *
 * An edge leads from a fiber that waits to one that could end its wait: the task that it joins, the holder of a lock,
 * the children of a nursery; and for a channel every fiber whose stack mentions it, which is a hint and no proof.
 */

/* The fibers, up to `max`, that could end a wait; `self` is not among them. Returns how many there are. */
unsigned cc__graph_servers(struct wait_what what, const struct fiber *self, struct fiber **servers, unsigned max);

/* A cycle of waits: each fiber waits for something that the next one could do, and the last for the first. Stores up to
 * `max` of them and returns how many there are; 0: there is no cycle, or there are too many fibers to look at. hints:
 * edges of channels and of selects count, too. For whoever knows that nobody can go on: they only show a fiber that
 * might do something, and somebody else may as well. */
struct graph_wait {
    struct fiber *fiber;
    struct wait_what what;
};
unsigned cc__graph_cycle(struct graph_wait *cycle, unsigned max, bool hints);

/* ---- whether anything in the process can still wake a fiber or an OS thread that waits: DEADLOCK-1 (quiet.c) ----
 *
 * All of it is about the moment of the call; whoever wants to claim more compares epochs before and after
 * (cc__idle_epoch, cc__blocked_epoch). What cannot be known counts as able to wake somebody.
 */

/* Somebody waits, and nothing can wake anybody: every worker sleeps with nothing to do, no timer is armed, no signal is
 * handled that may come, and every thread is one of ours or waits in a call of ours without a deadline. */
bool cc__quiet_for_good(void);

/* Every worker sleeps with nothing to do, and every thread but the caller's is one of ours or waits in a call of
 * ours. */
bool cc__quiet_but_me(void);

/* Every thread waits in a call of ours without a deadline. */
bool cc__quiet_threads(void);

/* The program handles a signal that may come from outside. The runtime handles `signal` itself: it does not count. */
bool cc__quiet_signals_may_come(void);
void cc__quiet_signal_is_ours(int signal);
/* A thread of the runtime's own that wakes nobody, in one of a few places; 0: it has ended. */
enum { QUIET_THREADS = 2 };
void cc__quiet_thread_is_ours(unsigned place, int tid);
/* In a forked child: whoever looked is gone. */
void cc__quiet_forget(void);

/* ---- fibers that can never go on although others can: nobody who can go on reaches what they wait for ---- */

enum { UNREACHABLE_NAMED = 32 };

/* Slots, and no addresses, which the next search would find in memory. */
struct unreachable {
    unsigned count;
    uint32_t slot[UNREACHABLE_NAMED]; /* of the first ones */
};

/* The fibers of which it can be proved; the caller is inside the runtime and nothing else moves. NULL, or why it cannot
 * be told. patient: tries for some seconds. */
const char *cc__unreachable_find(struct unreachable *found, bool patient);

#endif
