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
 * While any channel is subscribed to a signal, its previous action (termination, a handler) is disabled; the end of the
 * last subscription restores it. A signal is sent to every channel that was subscribed when it came, without waiting: a
 * full channel misses it, and cc_signal_dropped counts that. So give the channel enough capacity for the signals
 * between two receives; 1 is enough to learn that a signal came at all.
 *
 * A signal handler writes to a pipe; a thread of the library reads the pipe and sends to the channels. The handler may
 * interrupt any thread of the program, whose system calls are restarted (SA_RESTART). Signals need not be blocked. In a
 * program with several threads they may arrive in another order than they were sent, real-time signals included:
 * sigqueue(3) can number them.
 *
 * The runtime is neither needed nor started. A forked child has no subscriptions and the previous actions; a child of
 * cc_process_start has no subscriptions and the default actions. In a simulation: ENOTSUP.
 *
 * Not available, EINVAL: SIGKILL, SIGSTOP, synchronous signals (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS,
 * SIGABRT), and those reserved by the C library. Used by the runtime, EBUSY: SIGURG, with which it samples threads;
 * and, while a runtime that handles it is running, the dump signal (SIGQUIT unless CC_DUMP_SIGNAL says otherwise). The
 * library does not use SIGCHLD.
 */
#ifndef CCC_CC_SIGNAL_H
#define CCC_CC_SIGNAL_H

#include <ccc/cc_base.h>
#include <ccc/cc_channel.h>
#include <ccc/cc_select.h>

CC_BEGIN_DECLS

/* The element type of the channel. */
typedef struct CCSignal {
    int number;     /* SIGTERM … */
    int code;       /* si_code of sigaction(2): SI_USER for kill(2) … */
    int pid;        /* the sender; 0: the kernel, or unknown */
    unsigned uid;   /* the sender's user */
    uint64_t value; /* of sigqueue(3); else 0 */
    uint64_t reserved[2];
} CCSignal;

/* Subscribes the channel to these signals, in addition to earlier ones. Takes a reference to the channel, which
 * cc_signal_stop releases. A closed channel loses its subscription when its next signal arrives. EINVAL: NULL, none,
 * more than 64, an unavailable signal, a channel that does not carry CCSignal, or is a pool or ordered; EBUSY: a signal
 * used by the runtime; ENOMEM, EAGAIN, EMFILE, ENFILE: no memory, thread or descriptors; ENOTSUP: a simulation. After
 * an error nothing is changed. Any context; does not switch. */
CC_API int cc_signal_notify(CCChan *ch, const int *signals, size_t count);

/* Ends all subscriptions of the channel; nothing is sent to it after this returns. ESRCH: it has none. EINVAL: NULL.
 * Any context; does not switch. */
CC_API int cc_signal_stop(CCChan *ch);

/* From now until the nursery's exit (cc_nursery_wait, or the end of the block) each of these signals cancels it and
 * everything below: the code is EINTR, the text "signal 2". So Ctrl-C ends a program in an orderly way:
 *
 *   CC_NURSERY(n, .result = &error) {
 *       cc_signal_cancel(n, (int[]){SIGINT, SIGTERM}, 2);
 *       CC_GO_IN(n, serve);
 *   }
 *
 * May be called again, for more signals. Errors as cc_signal_notify. Any context; does not switch. */
CC_API int cc_signal_cancel(CCNursery *nursery, const int *signals, size_t count);

/* Ignores these signals and ends subscriptions to them; they are sent to no channel after this returns. cc_signal_reset
 * undoes it. Errors as cc_signal_notify. Any context; does not switch. */
CC_API int cc_signal_ignore(const int *signals, size_t count);

/* Undoes cc_signal_notify and cc_signal_ignore for these signals, for all channels, and restores their previous
 * actions; they are sent to no channel after this returns. An action that the program has set since by sigaction(2) is
 * kept. EINVAL: NULL, or an invalid signal number. Any context; does not switch. */
CC_API int cc_signal_reset(const int *signals, size_t count);

/* How often a subscribed channel has missed this signal because it was full. 0: never, or no such signal. Any context;
 * does not switch. */
CC_API uint64_t cc_signal_dropped(int signal);

/* An arm of a select (cc_select.h) that receives from such a channel. pointer: a CCSignal *. */
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
