/* upcalls.h - functions that the scheduler calls and rooms above it implement. They are declared here, so that includes
 * point down only; the linker resolves them.
 */
#ifndef CC_SCHED_UPCALLS_H
#define CC_SCHED_UPCALLS_H

#include "sched/sched.h"

#include <ccc/cc_task.h>

/* task/: the fiber has ended (or could not start: status), and its stack is no longer used. Its completion is the
 * last access to the record. */
void cc__upcall_task_ended(struct worker *w, struct fiber *f);

/* task/: starts a task in a scope (its address, without bits); task, options: may be NULL. site: where the user started
 * it. */
int cc__upcall_spawn_in(uintptr_t scope, CCTask *task, CCTaskFn fn, void *arg, const CCSpawnOptions *options,
                        const void *site);

/* nursery/: the fiber begins, in the scope that its record names; ends, with an outcome. Both on its own stack. Or it
 * never began: on a worker's stack. */
void cc__upcall_scope_begin(struct fiber *self, struct fiber_cold *cold);
void cc__upcall_scope_check(struct fiber *self, struct fiber_cold *cold); /* no block may be open */
void cc__upcall_scope_end(struct fiber *self, struct fiber_cold *cold);
void cc__upcall_scope_unstarted(struct fiber *f, int error);

/* wait/: for a fiber that is PARKED, by the thread that runs in its place. True: it is cancelled, and its wait was
 * claimed; then the caller makes it ready (CANCEL-1). */
CC_COLD CC_NOINLINE bool cc__upcall_cancelled(struct fiber *f, uint64_t ticket);

/* panic/: the fiber's function has ended, by its return or a panic, and deferred functions or local values are left to
 * handle. base: the fiber's outermost scope, whose call has ended. On the fiber's stack, while it still runs; may
 * switch. Writes the outcome. */
void cc__upcall_fiber_ends(struct fiber *f, struct fiber_cold *cold, struct boundary *base, void *result);

/* task/: calls the destructors of the fiber's local values, one round; may switch. A panic in one ends this call, and
 * the next call continues after it. False: there are none left, or all rounds are done. */
bool cc__upcall_locals_destroy(struct fiber_cold *cold);
void cc__upcall_locals_free(struct fiber_cold *cold);

/* panic/: the id of the hosted call that the calling OS thread is in, or 0. */
CCFiberId cc__upcall_hosted_id(void);

/* rt/: a thread that is not a worker begins and ends its use of the runtime; in between the runtime does not end.
 * start: the runtime is started if it does not run. 0 or an error; ESRCH: it does not run; ECANCELED: it is ending.
 * Calls nest: an inner one always returns 0. */
int cc__upcall_enter(bool start);
void cc__upcall_leave(void);
/* The same for a thread that holds a lock which threads inside wait for: a shutdown that waits for those lets it in.
 * False: the runtime does not run. */
bool cc__upcall_enter_locked(void);
/* The same for a thread that has claimed a fiber and not yet made it runnable: until then the fiber keeps the runtime
 * up, and afterwards this does. */
void cc__upcall_hold(void);
/* Counts a thread that is about to start as inside, before the runtime can stop; that thread takes over, and leaves. */
void cc__upcall_hold_for_another(void);
void cc__upcall_take_over(void);

/* rt/: a fiber continues in a child process after fork, where there are no workers: reports that and aborts. */
CC_NORETURN void cc__upcall_orphaned(void);

/* sim/: while cc__sched.simulated, chooses the next fiber instead of cc__next; NULL: the runtime stops. */
struct fiber *cc__upcall_sim_next(struct worker *w);
/* sim/: something was made ready, or read: others may run first. Any context; may switch. */
CC_COLD void cc__upcall_sim_point(void);
/* sim/: the calling OS thread lets others run first (false: nothing is simulated; with or without a runtime); waits
 * like cc__futex_wait, which it calls when nothing is simulated; gives up its turn for good, because the workers have
 * to end. */
bool cc__upcall_sim_yield(void);
void cc__upcall_sim_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t until);
void cc__upcall_sim_stop(void);
/* sim/: a hook of an island begins or ends, on the island's thread, while all others wait. Only in a simulation. */
void cc__upcall_sim_hook(bool begins);

/* rt/: in a simulation, a fiber that has not run yet was started on a host that has crashed: cancels it. */
void cc__upcall_host_gone(struct fiber *f);

/* diag/: in a simulation no fiber is ready and no deadline is left: reports that and, unless CC_DEADLOCK_ABORT=0, ends
 * the program. */
void cc__upcall_stuck(void);

/* diag/: in a simulation, whether the fiber holds a pthread mutex, as far as that can be seen. */
bool cc__upcall_holds_mutex(struct fiber *f);

/* diag/: a panic has ended a fiber, or the process is about to abort: writes the last events of the calling worker to
 * stderr, if they are recorded, and has the sysmon thread write CC_RECORD's file; the latter waits for that. Any
 * context, signal handlers included. */
void cc__upcall_panicked(void);
void cc__upcall_dies(void);
/* diag/: SIGABRT will end the process unless the program handles it: writes CC_RECORD's file in the same way. In a
 * signal handler. */
void cc__upcall_aborts(void);

/* diag/: a function that the runtime has called has ended the calling thread, which is the runtime's: reports that and
 * aborts. On the thread's own stack. */
void cc__upcall_thread_ended(void);

/* diag/: a worker has been in one turn of one fiber for `ns`. Once for each such turn; on the sysmon thread. */
void cc__upcall_stalled(struct worker *w, uint64_t ns);
/* diag/: cc__sysmon_ask was called. On the sysmon thread. */
void cc__upcall_asked(void);
/* diag/: whether tasks have not ended, or an OS thread waits in a call of the library without a deadline. Any thread.
 */
bool cc__upcall_unfinished(void);
/* diag/: all workers have slept for some 50 ms although there are waiters (cc__upcall_unfinished). check 0: the first
 * time; true: call again. check 1: the same 100 ms later, if no worker has woken in between (cc__idle_epoch). Not again
 * before a worker has woken or cc__sysmon_recheck was called; but after a first check that returned false, for some
 * seconds, ever more rarely. On the sysmon thread. */
bool cc__upcall_quiet(unsigned check);
/* diag/: the same while no runtime runs, by an OS thread that has waited without a deadline for some 50 ms. It keeps
 * *epoch from check 0 to check 1. True after check 1: it is a deadlock, and has been reported. */
bool cc__upcall_threads_quiet(unsigned check, uint64_t *epoch);

#endif
