/* poller.h - readiness of descriptors: one edge-triggered set for the whole process.
 *
 * A descriptor is registered once and then reports every edge (adopted ones), or is armed for one report at a time
 * (others: the program may close them and reuse the number at any time).
 */
#ifndef CC_OS_POLLER_H
#define CC_OS_POLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    POLLER_READ = 1,
    POLLER_WRITE = 2,
    POLLER_HANGUP = 4, /* the peer has closed, has shut down its side, or there is an error: both sides are ready */
    POLLER_URGENT = 8, /* out-of-band data; it comes with POLLER_READ */
};

struct poller_event {
    uint64_t data; /* as it was registered */
    unsigned ready;
};

enum { POLLER_BATCH = 128 };

/* Opens the set if need be: 0 or an errno value. Any thread; one at a time. */
int cc__poller_open(void);
/* Closes it. No thread waits in it. Also if it is not open. */
void cc__poller_close(void);
/* A forked child inherits its parent's set: closes the child's copy. */
void cc__poller_forget(void);

/* From now on reports every edge of both sides, and the present state at once. EPERM: it is always ready, as files
 * are. */
int cc__poller_register(int fd, uint64_t data);
/* ENOENT: it was not registered. */
int cc__poller_register_again(int fd, uint64_t data);
/* Reports when it becomes readable. */
int cc__poller_watch(int fd, uint64_t data);
/* Reports once, when one of `sides` (any of the four above) is ready, or the peer is gone, or there is an error. */
int cc__poller_arm(int fd, uint64_t data, unsigned sides);
/* No more reports. An event that was fetched before may not have been handled yet. */
void cc__poller_remove(int fd);

/* Waits until the CLOCK_MONOTONIC time `until` (0: does not wait; UINT64_MAX: for ever) for up to POLLER_BATCH events;
 * returns how many. 0: at the time, after a signal, or after cc__poller_interrupt. */
unsigned cc__poller_wait(struct poller_event *events, uint64_t until);
/* Ends the present wait, or the next one. Any thread. */
void cc__poller_interrupt(void);

/* Which of `sides` are ready at this moment, POLLER_HANGUP included; or -errno. Does not need the set. */
int cc__poller_look(int fd, unsigned sides);
/* poll(2) of all of them without waiting: how many are ready, or -errno. */
struct pollfd;
int cc__poller_look_all(struct pollfd *fds, size_t n);
/* The `events` of such an entry, as POLLER_*. */
unsigned cc__poller_sides(int events);

#endif
