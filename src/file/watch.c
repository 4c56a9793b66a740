/* watch.c - file events, read from an inotify descriptor a buffer at a time. */
#include "base/mem.h"
#include "file/file.h"
#include "os/file.h"

#include <ccc/cc_fd.h>
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>

enum { WATCH_BUFFER = 4096 }; /* at least one event with the longest name */

struct CCWatch {
    int fd;
    size_t at, end;
    _Alignas(8) char buffer[WATCH_BUFFER];
};

int cc_watch_open(CCWatch **watch) {
    if (watch == NULL) return EINVAL;
    *watch = NULL;
    CCWatch *made = cc__mem_alloc(sizeof *made);
    if (made == NULL) return ENOMEM;
    made->fd = cc__os_watch_open();
    int rc = made->fd < 0 ? -made->fd : cc_fd_adopt(made->fd);
    if (rc == 0) {
        *watch = made;
        return 0;
    }
    if (made->fd >= 0) (void)cc_fd_close(made->fd);
    cc__mem_free(made);
    return rc;
}

struct watch_call {
    int fd;
    const char *path;
    unsigned events;
};

static long add(void *arg) {
    struct watch_call *c = arg;
    return cc__os_watch_add(c->fd, c->path, c->events);
}

int cc_watch_add(CCWatch *watch, const char *path, unsigned events, int *id) {
    if (watch == NULL || path == NULL) return EINVAL;
    long rc = cc__file_call("watch", add, &(struct watch_call){watch->fd, path, events});
    if (rc >= 0 && id != NULL) *id = (int)rc;
    return rc < 0 ? (int)-rc : 0;
}

int cc_watch_remove(CCWatch *watch, int id) {
    return watch != NULL ? -cc__os_watch_remove(watch->fd, id) : EINVAL;
}

static void take(CCWatch *watch, CCWatchEvent *event) {
    struct inotify_event head;
    memcpy(&head, watch->buffer + watch->at, sizeof head);
    *event = (CCWatchEvent){.id = head.wd, .events = head.mask, .cookie = head.cookie};
    event->name = head.len > 0 ? watch->buffer + watch->at + sizeof head : "";
    watch->at += sizeof head + head.len;
}

typedef int (*read_fn)(int fd, void *buffer, size_t size, size_t *n, CCDeadline deadline);

static int next(CCWatch *watch, CCWatchEvent *event, read_fn read, CCDeadline deadline) {
    if (watch == NULL || event == NULL) return EINVAL;
    if (watch->at >= watch->end) {
        watch->at = watch->end = 0;
        int rc = read(watch->fd, watch->buffer, WATCH_BUFFER, &watch->end, deadline);
        if (rc != 0) return rc;
    }
    take(watch, event);
    return 0;
}

static int read_now(int fd, void *buffer, size_t size, size_t *n, CCDeadline deadline) {
    (void)deadline;
    return cc_fd_read_try(fd, buffer, size, n);
}

int cc_watch_next(CCWatch *watch, CCWatchEvent *event) {
    return next(watch, event, cc_fd_read_until, CC_FOREVER);
}

int cc_watch_next_try(CCWatch *watch, CCWatchEvent *event) {
    return next(watch, event, read_now, CC_FOREVER);
}

int cc_watch_next_until(CCWatch *watch, CCWatchEvent *event, CCDeadline deadline) {
    return next(watch, event, cc_fd_read_until, deadline);
}

void cc_watch_close(CCWatch *watch) {
    if (watch == NULL) return;
    (void)cc_fd_close(watch->fd);
    cc__mem_free(watch);
}
