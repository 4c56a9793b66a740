/* word_count.c - ../word_count.c by functions alone. */
#include <ccc/ccc.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { CHUNK = 16 * 1024, TENTH = 100000000 };

struct text {
    int fd;
    size_t size;
    _Atomic size_t next; /* the first chunk that is not taken */
    _Atomic size_t done; /* bytes that were counted */
    _Atomic size_t words;
    CCNursery *counters;
    int error;
};

/* A word belongs to the chunk in which it begins; so each chunk is read with the byte before it. */
static int count(void *arg) {
    struct text *t = arg;
    size_t chunks = (t->size + CHUNK - 1) / CHUNK;
    char text[CHUNK + 1] = " ";
    for (size_t i, n; (i = t->next++) < chunks;) {
        size_t before = i > 0, found = 0;
        if (cc_cancelled()) return ECANCELED;
        int error = cc_file_read(t->fd, text + 1 - before, CHUNK + before, (int64_t)(i * CHUNK - before), &n);
        if (error != 0) return error;
        if (n <= before) return EIO; /* the file was truncated meanwhile */
        n -= before;
        for (size_t k = 1; k <= n; k++)
            if (isspace((unsigned char)text[k - 1]) && !isspace((unsigned char)text[k])) found++;
        t->words += found;
        t->done += n;
    }
    return 0;
}

static void *count_all(void *arg) {
    struct text *t = arg;
    for (size_t i = 0; i < cc_worker_count() && t->error == 0; i++)
        t->error = cc_nursery_spawn_status(t->counters, count, t);
    if (t->error != 0) (void)cc_nursery_cancel(t->counters);
    int error = cc_nursery_wait(t->counters);
    if (t->error == 0) t->error = error;
    return NULL;
}

static int open_text(const char *path, struct text *t) {
    static const char line[] = "It was the best of times, it was the worst of times,\n";
    struct stat status;
    int error = path != NULL ? cc_file_open(&t->fd, path, O_RDONLY, 0) : cc_file_temp(&t->fd, "/tmp");
    for (int i = 0; i < 10000 && path == NULL && error == 0; i++)
        error = cc_file_write(t->fd, line, sizeof line - 1, CC_FILE_POSITION, NULL);
    if (error == 0) error = cc_file_stat(t->fd, &status);
    if (error == 0) t->size = (size_t)status.st_size;
    return error;
}

int main(int argc, char **argv) {
    struct text t = {0};
    int error = open_text(argc > 1 ? argv[1] : NULL, &t);
    if (error != 0) return fprintf(stderr, "%s\n", strerror(error)), 1;

    CCChan *signals = cc_chan_create(sizeof(CCSignal), 1);
    CCSignal pressed;
    if ((error = cc_signal_notify(signals, (int[]){SIGINT}, 1)) != 0 && error != ENOTSUP) return 1;

    CCTask counting;
    t.counters = cc_nursery_create(NULL);
    if (t.counters == NULL || cc_spawn(&counting, count_all, &t, NULL) != 0) return 1;
    uint64_t next = cc_now_ns() + TENTH;
    for (bool counts = true; counts;) {
        size_t chosen;
        CCCase cases[] = {
            {.kind = CC_CASE_JOIN, .task = &counting},
            {.kind = CC_CASE_AT, .deadline = {next}},
            {.kind = CC_CASE_RECV, .ch = signals, .value = &pressed, .size = sizeof pressed},
        };
        if (cc_select(cases, 3, CC_FOREVER, &chosen) != 0) return 1;
        switch (chosen) {
        case 0:
            counts = false;
            break;
        case 1:
            fprintf(stderr, "%zu of %zu bytes\n", t.done, t.size);
            next += ((cc_now_ns() - next) / TENTH + 1) * TENTH;
            break;
        case 2:
            (void)cc_nursery_cancel(t.counters);
            break;
        }
    }
    if (t.error == 0)
        printf("%zu words\n", t.words);
    else
        printf("%s after %zu words\n", t.error == ECANCELED ? "interrupted" : strerror(t.error), t.words);
    cc_signal_stop(signals);
    cc_chan_free(signals);
    cc_nursery_free(t.counters);
    cc_fd_close(t.fd);
    return t.error == 0 ? 0 : t.error == ECANCELED ? 128 + SIGINT : 1;
}
