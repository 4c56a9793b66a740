/* waits.h - whether waits can end: the wait-for graph, quiescence of the process, unreachable fibers. */
#ifndef CC_INSPECT_WAITS_H
#define CC_INSPECT_WAITS_H

#include "inspect/view.h"

/* ---- the wait-for graph of fibers that do not run (graph.c) ----
 *
 * An edge leads from a waiting fiber to one that could end its wait: the task that it joins, the holder of a lock, the
 * children of a nursery; and for a channel every fiber whose stack contains its address, which is only a hint.
 */

/* Without these, each wait for a channel takes a search of all stacks: one pass for all, while nothing can run. One
 * thread at a time. */
void cc__graph_begin(void);
void cc__graph_end(void);

/* The fibers, up to `max`, that could end a wait; `self` is not among them. Returns how many there are. */
unsigned cc__graph_servers(struct wait_what what, const struct fiber *self, struct fiber **servers, unsigned max);

/* A cycle of waits: each fiber waits for the next one, and the last for the first. Stores up to `max` of them and
 * returns how many there are; 0: there is no cycle, or there are too many fibers. hints: edges of channels and of
 * selects count too; use them only where it is known that nothing can run, because another fiber might end such a
 * wait. */
struct graph_wait {
    struct fiber *fiber;
    struct wait_what what;
};
unsigned cc__graph_cycle(struct graph_wait *cycle, unsigned max, bool hints);

/* ---- whether anything in the process can still wake a waiting fiber or OS thread: DEADLOCK-1 (quiet.c) ----
 *
 * The results hold at the moment of the call; for more, compare the epochs before and after (cc__idle_epoch,
 * cc__blocked_epoch). What is unknown counts as able to wake a waiter.
 */

/* There are waiters, and nothing can wake one: every worker sleeps with nothing to do, no timer is armed, no signal
 * that may come from outside is handled, and every thread belongs to the runtime or waits in a call of the library
 * without a deadline. */
bool cc__quiet_for_good(void);

/* Every worker sleeps with nothing to do, and every thread but the caller's belongs to the runtime or waits in a call
 * of the library. */
bool cc__quiet_but_me(void);

/* Every thread waits in a call of the library without a deadline. */
bool cc__quiet_threads(void);

/* Whether the program handles a signal that may come from outside; `signal` is the runtime's own and does not count. */
bool cc__quiet_signals_may_come(void);
void cc__quiet_signal_is_ours(int signal);
/* Registers a thread of the runtime that wakes no waiter; tid 0: it has ended. */
enum { QUIET_THREADS = 2 };
void cc__quiet_thread_is_ours(unsigned place, int tid);
/* In a forked child: a thread that was checking does not exist. */
void cc__quiet_forget(void);

/* ---- unreachable fibers: nothing that can run reaches what they wait for (unreachable.c) ---- */

enum { UNREACHABLE_NAMED = 32, UNREACHABLE_MAX = 65536 };

/* Slots, because the next search would find addresses in memory. The caller provides the array. */
struct unreachable {
    unsigned count; /* at most UNREACHABLE_MAX */
    unsigned max;
    uint32_t *slot; /* of the first `max` of them */
    bool again;     /* there is no result, because something was running: the next search may have one */
};

/* The fibers that are proved to be unreachable. The caller is inside the runtime, and nothing else may run. NULL, or
 * why there is no result. patient: retries for some seconds. */
const char *cc__unreachable_find(struct unreachable *found, bool patient);

#endif
