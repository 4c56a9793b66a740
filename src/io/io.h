/* io.h - the driver: who asks the poller, and when. */
#ifndef CC_IO_IO_H
#define CC_IO_IO_H

#include "sched/driver.h"

extern const struct driver cc__io_driver;

/* The poller is open: 0 and the number of this life of it, never 0; or an errno value. Inside the runtime. */
int cc__io_open(uint32_t *life);

/* In a forked child: nobody waits, nobody holds a lock, and the poller is the parent's. */
void cc__io_forget(void);

/* The same number, of the poller that is open at this moment; 0: none. */
uint32_t cc__io_life(void);

/* An OS thread has begun to wait: if all workers sleep, one of them has to block in the poller. */
void cc__io_listen(void);

#endif
