/* upcalls.h - functions that the scheduler calls and rooms above it implement. They are declared here, so that includes
 * point down only; the linker resolves them.
 */
#ifndef CC_SCHED_UPCALLS_H
#define CC_SCHED_UPCALLS_H

#include "sched/sched.h"

#include <ccc/cc_task.h>

/* task/: the fiber has ended (or could not start: status), nobody runs on its stack. Completion is the last
 * touch. */
void cc__upcall_task_ended(struct worker *w, struct fiber *f);

/* task/: starts a task in a scope (the address of one, no bits); task, options: may be NULL. site: where the user
 * asked for it. */
int cc__upcall_spawn_in(uintptr_t scope, CCTask *task, CCTaskFn fn, void *arg, const CCSpawnOptions *options,
                        const void *site);

/* nursery/: the fiber begins, in the scope that its record names; ends, with an outcome. Both on its own stack. Or it
 * never began: on a worker's. */
void cc__upcall_scope_begin(struct fiber *self, struct fiber_cold *cold);
void cc__upcall_scope_check(struct fiber *self, struct fiber_cold *cold); /* no block may be open */
void cc__upcall_scope_end(struct fiber *self, struct fiber_cold *cold);
void cc__upcall_scope_unstarted(struct fiber *f, int error);

/* wait/: the fiber is PARKED, by somebody who runs in its place: true if it is cancelled, and its wait was claimed;
 * then the caller makes it ready (CANCEL-1). */
CC_COLD CC_NOINLINE bool cc__upcall_cancelled(struct fiber *f, uint64_t ticket);

/* panic/: the fiber's function is over, by its return or a panic, and more is left to do than to store its
 * result: deferred functions, local values. base: the fiber's outermost scope, whose call is over. On the
 * fiber's stack, it still runs, and may switch. Writes the outcome. */
void cc__upcall_fiber_ends(struct fiber *f, struct fiber_cold *cold, struct boundary *base, void *result);

/* task/: calls the destructors of the fiber's local values, one round; may switch. A panic in one ends this
 * call, and the next goes on behind it. False: there is nothing left, or it has had its rounds. */
bool cc__upcall_locals_destroy(struct fiber_cold *cold);
void cc__upcall_locals_free(struct fiber_cold *cold);

/* panic/: the id of the hosted call that the calling OS thread is in, or 0. */
CCFiberId cc__upcall_hosted_id(void);

/* rt/: a thread that is not a worker is about to use the runtime, and is through; in between the runtime does
 * not end. start: it is started if it does not run. 0 or an error; ESRCH: it does not run; ECANCELED: it is
 * ending. They nest: within, it is always 0. */
int cc__upcall_enter(bool start);
void cc__upcall_leave(void);
/* The same for a thread that holds a lock which others want who are inside: a shutdown that waits for those lets it in.
 * False: the runtime does not run. */
bool cc__upcall_enter_locked(void);
/* The same for a thread that has claimed a fiber and has yet to make it runnable: the fiber keeps the runtime up
 * until then, and this does afterwards. */
void cc__upcall_hold(void);
/* A thread that is about to start is inside, before anybody can stop the runtime; it takes that over, and leaves. */
void cc__upcall_hold_for_another(void);
void cc__upcall_take_over(void);

/* rt/: a fiber goes on in a child process after fork, where there is no worker any more: says so and aborts. */
CC_NORETURN void cc__upcall_orphaned(void);

/* sim/: while cc__sched.simulated, chooses in place of cc__next: NULL when the runtime stops. */
struct fiber *cc__upcall_sim_next(struct worker *w);
/* sim/: something was made ready, or looked at: others may come first. Any context; may switch. */
CC_COLD void cc__upcall_sim_point(void);
/* sim/: the calling OS thread lets others come first (false: nothing is simulated; with or without a runtime); waits,
 * as cc__futex_wait does, which this is when nothing is simulated; gives its turn away for good, because the workers
 * are to leave. */
bool cc__upcall_sim_yield(void);
void cc__upcall_sim_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t until);
void cc__upcall_sim_stop(void);

/* rt/: in a simulation, a fiber that has not run yet was started on a host that has crashed: it is cancelled. */
void cc__upcall_host_gone(struct fiber *f);

/* diag/: in a simulation nobody is ready and no deadline is left: says so and, unless CC_DEADLOCK_ABORT=0, ends the
 * program. */
void cc__upcall_stuck(void);

/* diag/: in a simulation, whether the fiber holds a pthread mutex, as far as that can be seen. */
bool cc__upcall_holds_mutex(struct fiber *f);

/* diag/: a panic has ended a fiber, or the process is about to abort: the last events of the calling worker on stderr,
 * if they are recorded, and CC_RECORD's file, which the sysmon thread writes; the latter waits for that. Any context,
 * signal handlers included. */
void cc__upcall_panicked(void);
void cc__upcall_dies(void);
/* diag/: SIGABRT will end the process unless the program handles it: writes CC_RECORD's file in the same way. In a
 * signal handler. */
void cc__upcall_aborts(void);

/* diag/: a worker has been in one turn of one fiber for `ns`. Once for each such turn; on the sysmon thread. */
void cc__upcall_stalled(struct worker *w, uint64_t ns);
/* diag/: somebody has called cc__sysmon_ask. On the sysmon thread. */
void cc__upcall_asked(void);
/* diag/: tasks have not ended, or an OS thread waits in a call of ours without a deadline. Any thread. */
bool cc__upcall_unfinished(void);
/* diag/: all workers have slept for some 50 ms although somebody waits (cc__upcall_unfinished). check 0: the first
 * time; true: ask again. check 1: the same 100 ms later, nobody having woken in between (cc__idle_epoch). Not again
 * before a worker has woken or cc__sysmon_recheck was called; but after a first check that said no, for some seconds,
 * ever more rarely. On the sysmon thread. */
bool cc__upcall_quiet(unsigned check);
/* diag/: the same while no runtime runs, by an OS thread that waits without a deadline and has done so for some 50 ms.
 * It keeps *epoch from check 0 to check 1. True after check 1: it is a deadlock, and has been reported. */
bool cc__upcall_threads_quiet(unsigned check, uint64_t *epoch);

#endif
