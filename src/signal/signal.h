/* signal.h - the thread that sends signals to channels, for those who list threads. */
#ifndef CC_SIGNAL_SIGNAL_H
#define CC_SIGNAL_SIGNAL_H

/* The system's number for it; 0: it does not run. */
int cc__signal_thread(void);

/* In a forked child: no subscriptions. */
void cc__signal_forget(void);

#endif
