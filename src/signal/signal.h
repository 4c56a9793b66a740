/* signal.h - the thread that sends signals to channels, for code that lists threads; which signals can be handled. */
#ifndef CC_SIGNAL_SIGNAL_H
#define CC_SIGNAL_SIGNAL_H

#include <stdbool.h>

/* Its thread id; 0: not running. */
int cc__signal_thread(void);

/* In a forked child: drops the subscriptions. */
void cc__signal_forget(void);

/* Whether it is no signal, cannot be caught, reports a fault, or belongs to the C library. */
bool cc__signal_unusable(int number);

#endif
