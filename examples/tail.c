/* tail -f: prints what is appended to a file. It sleeps until the file changes; it does not poll.
 *
 *   tail FILE    the end of the file and what is appended, until Ctrl-C
 *   tail         the same for a file that another fiber writes
 */
#include <ccc/ccc.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* Prints the file from *offset on. Returns true if the last line was "end". */
static int print_new(int fd, int64_t *offset, bool *ended) {
    char text[4096];
    size_t n;
    int rc;
    while ((rc = cc_file_read(fd, text, sizeof text, *offset, &n)) == 0 && n > 0) {
        fwrite(text, 1, n, stdout);
        fflush(stdout);
        *offset += (int64_t)n;
        *ended = n >= 4 && memcmp(text + n - 4, "end\n", 4) == 0;
    }
    return rc;
}

/* The watch is added before the first read: what is written between two reads causes an event. */
static int follow(const char *path, int64_t back) {
    CCWatch *watch;
    CCWatchEvent event;
    struct stat status;
    bool ended = false;
    int fd, rc = cc_file_open(&fd, path, O_RDONLY, 0);
    if (rc != 0) return rc;
    rc = cc_watch_open(&watch);
    if (rc == 0) rc = cc_watch_add(watch, path, IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF, NULL);
    if (rc == 0) rc = cc_file_stat(fd, &status);
    int64_t offset = rc == 0 && status.st_size > back ? status.st_size - back : 0;
    while (rc == 0 && (rc = print_new(fd, &offset, &ended)) == 0 && !ended) {
        rc = cc_watch_next(watch, &event);
        if (rc == 0 && (event.events & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0) break;
    }
    cc_watch_close(watch);
    cc_fd_close(fd);
    return rc;
}

/* ---- a file to follow ---- */

CC_CHILD(write_lines, { const char *path; }) {
    int fd, rc = cc_file_open(&fd, self->path, O_WRONLY | O_APPEND, 0);
    if (rc != 0) return rc;
    static const char *const lines[] = {"one\n", "two\n", "three\n", "end\n"};
    for (int i = 0; i < 4 && rc == 0; i++) {
        cc_sleep_ms(2);
        rc = cc_file_write(fd, lines[i], strlen(lines[i]), CC_FILE_POSITION, NULL);
    }
    cc_fd_close(fd);
    return rc;
}

int main(int argc, char **argv) {
    int rc = 0, followed = 0;
    if (argc == 2) {
        rc = follow(argv[1], 1024);
        if (rc != 0) fprintf(stderr, "tail: %s: %s\n", argv[1], strerror(rc));
        return rc != 0;
    }
    char path[] = "/tmp/ccc-tail-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) return 1;
    close(fd);
    CC_NURSERY(n, .result = &rc) {
        if (CC_GO_IN(n, write_lines, .path = path) != 0) abort();
        followed = follow(path, 0);
    }
    unlink(path);
    return rc != 0 || followed != 0;
}
