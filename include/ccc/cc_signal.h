/* cc_signal.h - signals as values in channels, and as cancellations.
 *
 *   CCChan *signals = cc_chan_create(sizeof(CCSignal), 4);
 *   cc_signal_notify(signals, (int[]){SIGINT, SIGTERM}, 2);
 *
 *   CCSignal s;
 *   CC_MATCH(CC_RECV_SIGNAL(signals, &s, NULL), CC_AFTER_MS(1000)) {
 *   case 0: printf("signal %d of process %d\n", s.number, s.pid); break;
 *   ...
 *
 * A signal that a channel is subscribed to does not have its former effect (the end of the program, a handler) until
 * the last such subscription is over; then its action is again what it was before. It goes to every channel that is
 * subscribed to it, and never waits: a channel that has no room does not get it, and that is counted. So give the
 * channel room for as many as may come between two receives; one is enough to learn that a signal came at all.
 *
 * Signals are caught by a handler that writes to a pipe; a thread of the library reads it and sends. Any thread of the
 * program may be interrupted by that handler, and goes on where it was (SA_RESTART). Nothing has to be blocked.
 *
 * With or without a runtime, which is neither needed nor started. A child made by fork has no subscriptions, and the
 * former actions; so has one that cc_process_start makes, whose actions are all the default ones. In a simulation:
 * ENOTSUP.
 *
 * These cannot be had, EINVAL: SIGKILL, SIGSTOP, those of a thread's own mistakes (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
 * SIGTRAP, SIGSYS, SIGABRT), and the numbers that the C library uses itself. These are the runtime's, EBUSY: SIGURG,
 * with which it looks at threads; and, while a runtime runs that handles it, the one that asks for a dump (SIGQUIT
 * unless CC_DUMP_SIGNAL says otherwise). SIGCHLD is not used by the library.
 */
#ifndef CCC_CC_SIGNAL_H
#define CCC_CC_SIGNAL_H

#include <ccc/cc_base.h>
#include <ccc/cc_channel.h>
#include <ccc/cc_select.h>

CC_BEGIN_DECLS

/* What a channel gets. */
typedef struct CCSignal {
    int number;     /* SIGTERM … */
    int code;       /* si_code of sigaction(2): SI_USER for kill(2) … */
    int pid;        /* who has sent it; 0: the kernel, or it is not known */
    unsigned uid;   /* whose process that is */
    uint64_t value; /* of sigqueue(3); else 0 */
    uint64_t reserved[2];
} CCSignal;

/* Subscribes the channel to these signals, in addition to those that it has. Takes a reference to the channel, which
 * cc_signal_stop gives back. A channel that is closed loses its subscription when the next signal for it comes. EINVAL:
 * NULL, none, more than 64, a signal that cannot be had, a channel that does not carry CCSignal, or is a pool or
 * ordered; EBUSY: a signal of the runtime's; ENOMEM, EAGAIN, EMFILE, ENFILE: no memory, thread or descriptors; ENOTSUP:
 * a simulation. After an error nothing has changed. Any context; does not switch. */
CC_API int cc_signal_notify(CCChan *ch, const int *signals, size_t count);

/* Ends all subscriptions of the channel; when this returns nothing more is sent to it. ESRCH: it has none. EINVAL:
 * NULL. Any context; does not switch. */
CC_API int cc_signal_stop(CCChan *ch);

/* Each of these signals cancels the nursery, and with it all below, from now until its exit (cc_nursery_wait, or the
 * end of the block): the code is EINTR, the text "signal 2". So Ctrl-C ends a program in order:
 *
 *   CC_NURSERY(n, .result = &error) {
 *       cc_signal_cancel(n, (int[]){SIGINT, SIGTERM}, 2);
 *       CC_GO_IN(n, serve);
 *   }
 *
 * May be called again, for more signals. Errors as cc_signal_notify. Any context; does not switch. */
CC_API int cc_signal_cancel(CCNursery *nursery, const int *signals, size_t count);

/* Ignores these signals; subscriptions to them are over. cc_signal_reset undoes it. Errors as cc_signal_notify. Any
 * context; does not switch. */
CC_API int cc_signal_ignore(const int *signals, size_t count);

/* Ends what cc_signal_notify and cc_signal_ignore have done to these signals, for all channels: their actions are what
 * they were before. An action that the program has set since with sigaction(2) stays. EINVAL: NULL, or no signal's
 * number. Any context; does not switch. */
CC_API int cc_signal_reset(const int *signals, size_t count);

/* How often this signal has not reached a channel that was subscribed to it, because there was no room. 0: never, or
 * there is no such signal. Any context; does not switch. */
CC_API uint64_t cc_signal_dropped(int signal);

/* An arm of a select (cc_select.h): receives from such a channel. pointer: to a CCSignal. */
#ifndef __cplusplus
#define CC_RECV_SIGNAL(channel, pointer, where) CC_RECV((channel), (1 ? (pointer) : (CCSignal *)0), (where))
#else
#define CC_RECV_SIGNAL(channel, pointer, where) cc_case_signal_((channel), (pointer), (where))
#endif

CC_END_DECLS

#ifdef __cplusplus
inline CCCase cc_case_signal_(CCChan *ch, CCSignal *signal, int *status) {
    return cc_case_recv_(ch, signal, status);
}
#endif

#endif
