/* elastic.h - adds workers when others are stuck, and retires them when they are idle. The protocol is in README.md. */
#ifndef CC_SCHED_ELASTIC_H
#define CC_SCHED_ELASTIC_H

#include "sched/sched.h"

/* Starts the threads of up to n more workers, and returns how many. If it is fewer than there are places for, the
 * system has no more threads, and *error says why. On the sysmon thread, or at the start. */
unsigned cc__elastic_open(unsigned n, int *error);

/* Adapts to the number of usable CPUs. If it exceeds the permanent workers, more of those that were asked for get
 * threads and become permanent; if it is smaller, the surplus has to sleep. On the sysmon thread. */
void cc__elastic_adapt(unsigned cpus);

/* Joins the threads of all workers, which have been told to stop. No more are opened. */
void cc__elastic_join_all(void);
/* The same for those that end soon; the process exits. */
void cc__elastic_join_idle(void);

/* The program exits while the workers still run: joins the retired threads; no more retire. */
void cc__elastic_exit(void);

/* Until when a worker that goes to sleep now may sleep before it retires; UINT64_MAX: it never retires. */
uint64_t cc__elastic_until(struct worker *w, uint64_t now);

/* Whether it is time for the worker to retire, while another one sleeps (ELASTIC-2). Exact under the idle lock. */
bool cc__elastic_over(struct worker *w);

/* Closes a sleeper that was just taken off the list, while another one stays on it. Under sched.idle.lock. */
void cc__elastic_close_locked(struct worker *w);

/* The last step of a closed worker before its thread ends: moves the fibers in its inbox to the global queue. */
void cc__elastic_drain(struct worker *w);

/* How long an extra worker idles before it retires (500 ms). For tests; any thread. */
void cc__elastic_set_retire(uint64_t ns);
/* How many workers beyond the base were opened, and how many have retired, since the runtime's start. Any thread. */
uint64_t cc__elastic_grown(void);
uint64_t cc__elastic_retired(void);

/* worker.c: what a worker's thread does. */
void *cc__worker_main(void *worker);

#endif
