/* lost.c - the watchdog of debug builds: a wait whose descriptor is ready, or was closed by close(2), is reported. */
#include "pair.h"

#include "../capture.h"
#include "io/fd.h"

#include <time.h>

CC_TASK(wait_for_it, { int fd; }) {
    char byte;
    size_t n;
    cc_fiber_set_name("left alone");
    int error = cc_fd_read(self->fd, &byte, 1, &n);
    CHECK(error == ECANCELED || error == 0);
    return NULL;
}

static void begin(void) {
#ifndef CC_DEBUG
    SKIP("debug builds have it");
#endif
    cc__set(&cc__fd_lost_after, 100 * 1000 * 1000);
    CHECK_EQ(cc_runtime_init(NULL), 0);
}

static void rest_ms(long ms) {
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&ts, &ts) != 0) {
    }
}

/* Until stderr, which goes to the file, has grown; the case's timeout bounds it. */
static void await_words(struct capture *said) {
    while (lseek(said->file, 0, SEEK_END) == 0) rest_ms(5);
}

TEST(a_lost_event_is_reported) {
    begin();
    struct pair p = make_sockets(true);
    struct capture said;
    capture_start(&said);
    CCTask task = CC_GO(wait_for_it, .fd = p.in);
    while (cc_io_waiters() == 0) rest_ms(1);
    cc__poller_remove(p.in); /* its events are lost from now on */
    CHECK_EQ(write(p.out, "x", 1), 1);
    await_words(&said);
    CHECK_EQ(cc_task_cancel(&task), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    const char *text = capture_end(&said);
    CHECK(contains(text, "left alone") && contains(text, "has been readable for") && contains(text, "FD-1"));
    close_pair(p);
}

TEST(one_that_was_closed_is_reported) {
    begin();
    struct pair p = make_sockets(true);
    struct capture said;
    capture_start(&said);
    CCTask task = CC_GO(wait_for_it, .fd = p.in);
    while (cc_io_waiters() == 0) rest_ms(1);
    CHECK_EQ(close(p.in), 0);
    await_words(&said);
    CHECK_EQ(cc_task_cancel(&task), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK(contains(capture_end(&said), "which is closed, but not by cc_fd_close"));
    CHECK_EQ(cc_fd_close(p.out), 0);
}
