/* signal.h - the thread that sends signals to channels, for code that lists threads. */
#ifndef CC_SIGNAL_SIGNAL_H
#define CC_SIGNAL_SIGNAL_H

/* Its thread id; 0: not running. */
int cc__signal_thread(void);

/* In a forked child: drops the subscriptions. */
void cc__signal_forget(void);

#endif
