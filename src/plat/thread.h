/* thread.h - OS threads: start one, wait for it, name it. */
#ifndef CC_PLAT_THREAD_H
#define CC_PLAT_THREAD_H

#include <pthread.h>

/* 0 or a positive errno value. */
int cc__thread_start(pthread_t *thread, void *(*fn)(void *), void *arg);
void cc__thread_join(pthread_t thread);
/* Names the calling thread, for top and gdb; at most 15 bytes count. */
void cc__thread_name(const char *name);
/* The system's number for the calling thread. */
int cc__thread_id(void);
/* The calling thread's own stack, [*bottom, *top); both NULL if the system does not tell. */
void cc__thread_stack(const void **bottom, const void **top);
/* Gives the CPU to another OS thread. */
void cc__thread_yield(void);
/* Sleeps about that long, or less. */
void cc__thread_nap(long ns);

#endif
