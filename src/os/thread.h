/* thread.h - OS threads: start one, wait for it, name it. */
#ifndef CC_OS_THREAD_H
#define CC_OS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* 0 or a positive errno value. */
int cc__thread_start(pthread_t *thread, void *(*fn)(void *), void *arg);
/* The same, with all signals blocked. */
int cc__thread_start_deaf(pthread_t *thread, void *(*fn)(void *), void *arg);
/* The same, but signals of its own faults are not blocked. */
int cc__thread_start_quiet(pthread_t *thread, void *(*fn)(void *), void *arg);
/* Saves the calling thread's signal mask; sets the calling thread's mask to the saved one. */
void cc__thread_signals_keep(void);
void cc__thread_signals_take(void);
/* If pthread_exit, thrd_exit or pthread_cancel ends the calling thread, fn is called at its end, on its own stack.
 * NULL: no longer. Not if the system has no key left for a thread-specific value. */
void cc__thread_if_ended(void (*fn)(void));
void cc__thread_join(pthread_t thread);
/* False: it had not ended at that time (cc__clock_real). */
bool cc__thread_join_until(pthread_t thread, uint64_t until);
/* Names the calling thread, for top and gdb; up to 15 bytes. */
void cc__thread_name(const char *name);
/* Timed waits of the calling thread end on time, and are not delayed by up to 50 us to coincide with others. */
void cc__thread_punctual(void);
/* The system's number of the calling thread. */
int cc__thread_id(void);
/* The size of the stacks of threads that are started here; 0 if unknown. Their thread-locals are a part of it. */
size_t cc__thread_stack_size(void);
/* The calling thread's own stack, [*bottom, *top); both NULL if unknown. */
void cc__thread_stack(const void **bottom, const void **top);
/* Yields the CPU to another OS thread. */
void cc__thread_yield(void);
/* The CPU time that a thread has used, in ns; UINT64_MAX if unknown. */
uint64_t cc__thread_cpu(pthread_t thread);
/* The same for the thread with that number, which may have ended. */
uint64_t cc__thread_cpu_of(int id);
/* The system's state of the thread with that number: 'R' running or runnable, 'S', 'D' sleeping, ...; 0 if unknown, and
 * errno says why. */
char cc__thread_state(int id);
/* The beginning of a file in its /proc directory, as a string. False: it cannot be read, and errno says why. */
bool cc__thread_file(int id, const char *name, char *text, size_t size);
/* As if there were no /proc. For tests. */
void cc__thread_state_hide(bool on);
/* Sleeps about that long, or less. */
void cc__thread_nap(long ns);
/* The same because another thread, which holds a lock or has a step to complete, has perhaps lost its CPU. */
void cc__thread_nap_for_lock(long ns);
/* From now on these naps of the calling thread are counted there, at their begin and at their end: odd during a nap. */
void cc__thread_count_naps(_Atomic uint32_t *naps);
/* Whether a thread may be bound to that CPU: 0; EINVAL: there is none with that number, or this process may not use
 * it. */
int cc__thread_may_pin(int cpu);
/* Binds the calling thread to it. */
int cc__thread_pin(int cpu);
/* The number of the CPU that the calling thread runs on; -1 if unknown. A hint. */
int cc__thread_on_cpu(void);
/* Keeps the thread with that number, which sleeps, off a CPU, until it calls cc__thread_any_cpu with the same number.
 * False: not done, because it may not use all CPUs of the system anyway, or the system refuses, or this is turned
 * off. */
bool cc__thread_keep_off(int id, int cpu);
void cc__thread_any_cpu(int cpu);
void cc__thread_keep_off_configure(bool on);
/* Whether the calling thread may use one CPU only. A system call; small enough for any stack. */
bool cc__affinity_single(void);

#endif
