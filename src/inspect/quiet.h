/* quiet.h - whether anything in the process can still wake a fiber or an OS thread that waits (DEADLOCK-1).
 *
 * All of it is about the moment of the call; whoever wants to claim more compares epochs before and after
 * (cc__idle_epoch, cc__blocked_epoch). What cannot be known counts as able to wake somebody.
 */
#ifndef CC_INSPECT_QUIET_H
#define CC_INSPECT_QUIET_H

#include <stdbool.h>

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

#endif
