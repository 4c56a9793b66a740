/* word_count.c - counts the words of a file on all CPUs, shows its progress, and stops at Ctrl-C: word_count [FILE].
 *
 * Without a file it counts a built-in text. A simulation has no signals; there it runs to its end. */
#include <ccc/ccc.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { CHUNK = 16 * 1024 };

static _Atomic size_t done, words; /* bytes that were counted, and what was found in them */

/* A word belongs to the chunk in which it begins; so each chunk is read with the byte before it. */
static int count(size_t begin, size_t end, void *fd) {
    char text[CHUNK + 1] = " ";
    for (size_t i = begin, n; i < end; i++) {
        size_t before = i > 0, found = 0;
        int error = cc_file_read(*(int *)fd, text + 1 - before, CHUNK + before, (int64_t)(i * CHUNK - before), &n);
        if (error != 0) return error;
        if (n <= before) return EIO; /* the file was truncated meanwhile */
        n -= before;
        for (size_t k = 1; k <= n; k++)
            if (isspace((unsigned char)text[k - 1]) && !isspace((unsigned char)text[k])) found++;
        words += found;
        done += n;
    }
    return 0;
}

/* Until it is cancelled. */
CC_CHILD(show_progress, { size_t size; }) {
    CCTicker tenth;
    cc_ticker_init(&tenth, 100000000, CC_TICKER_SKIP);
    while (cc_ticker_wait(&tenth) == 0) fprintf(stderr, "%zu of %zu bytes\n", done, self->size);
    return 0;
}

static int open_text(const char *path, int *fd, size_t *size) {
    static const char line[] = "It was the best of times, it was the worst of times,\n";
    struct stat status;
    int error = path != NULL ? cc_file_open(fd, path, O_RDONLY, 0) : cc_file_temp(fd, "/tmp");
    for (int i = 0; i < 10000 && path == NULL && error == 0; i++)
        error = cc_file_write(*fd, line, sizeof line - 1, CC_FILE_POSITION, NULL);
    if (error == 0) error = cc_file_stat(*fd, &status);
    if (error == 0) *size = (size_t)status.st_size;
    return error;
}

int main(int argc, char **argv) {
    int fd, error, ended;
    size_t size;
    if ((error = open_text(argc > 1 ? argv[1] : NULL, &fd, &size)) != 0)
        return fprintf(stderr, "%s\n", strerror(error)), 1;

    CC_NURSERY(n, .result = &ended) {
        cc_signal_cancel(n, (int[]){SIGINT}, 1);
        CC_GO_IN(n, show_progress, .size = size);
        error = cc_parallel_for(0, (size + CHUNK - 1) / CHUNK, count, &fd);
        cc_nursery_cancel(n); /* there is no more progress to show */
    }
    if (error == 0)
        printf("%zu words\n", words);
    else
        printf("%s after %zu words\n", error == ECANCELED ? "interrupted" : strerror(error), words);
    cc_fd_close(fd);
    return error == 0 ? 0 : error == ECANCELED ? 128 + SIGINT : 1;
}
