/* elastic.h - workers that come when others are stuck, and go when they are idle. The protocol is in README.md. */
#ifndef CC_SCHED_ELASTIC_H
#define CC_SCHED_ELASTIC_H

#include "sched/sched.h"

/* Gives up to n more workers a thread. Returns how many; fewer than there is room for: the system has no more, and
 * *error says why. The sysmon thread, or the start. */
unsigned cc__elastic_open(unsigned n, int *error);

/* There are so many usable CPUs: if more of the workers that were asked for can be used than stay, they get threads and
 * stay; if fewer, the surplus is to sleep. The sysmon thread. */
void cc__elastic_adapt(unsigned cpus);

/* Waits for the threads of all workers, which have been told to stop. Nobody opens any more. */
void cc__elastic_join_all(void);
/* The same for those that leave soon; the process exits. */
void cc__elastic_join_idle(void);

/* The program exits, and the workers go on meanwhile: joins the threads that have retired; no other retires. */
void cc__elastic_exit(void);

/* A worker goes to sleep: until when, if it is one that retires; UINT64_MAX: as long as it likes. */
uint64_t cc__elastic_until(struct worker *w, uint64_t now);

/* Whether its time is over. Under sched.idle.lock. */
bool cc__elastic_over(struct worker *w);

/* Under sched.idle.lock: a sleeper that was just taken off the list, while another stays on it, is none of us any
 * more. */
void cc__elastic_close_locked(struct worker *w);

/* What a closed worker still does before its thread ends: whatever was addressed to it goes to the global queue. */
void cc__elastic_drain(struct worker *w);

/* How long an extra worker idles before it retires (500 ms). For tests; any thread. */
void cc__elastic_set_retire(uint64_t ns);
/* How often a worker was opened beyond the base, and has retired, since the runtime's start. Any thread. */
uint64_t cc__elastic_grown(void);
uint64_t cc__elastic_retired(void);

/* worker.c: what a worker's thread does. */
void *cc__worker_main(void *worker);

#endif
