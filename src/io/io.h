/* io.h - the driver: which thread calls the poller, and when. */
#ifndef CC_IO_IO_H
#define CC_IO_IO_H

#include "sched/driver.h"

extern const struct driver cc__io_driver;

/* Opens the poller if need be: 0 and its number, never 0; or an errno value. Inside the runtime. */
int cc__io_open(uint32_t *instance);

/* In a forked child: there are no waiters, no lock is held, and the poller is the parent's. */
void cc__io_forget(void);

/* The number of the instance of the poller that is open now; 0: none. */
uint32_t cc__io_instance(void);

/* An OS thread begins to wait: if all workers sleep, one of them has to block in the poller. */
void cc__io_listen(void);

#endif
