/* main.c - ccps: lists the fibers of a process, without its cooperation, or of a core file. */
#include "runtime.h"
#include "show.h"
#include "target.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = "usage: ccps [-agst] PID | CORE\n"
                            "  the fibers of a process or of a core file: what they wait for, since when, and where\n"
                            "  -a  each fiber, also if there are more than 1000\n"
                            "  -g  fibers that stand in the same place together\n"
                            "  -t  the tree of nurseries and the fibers in them, without stacks\n"
                            "  -s  stops the process for the time of the look, a second at most\n"
                            "  -h  shows this\n";

enum { STOP_MS = 1000, EACH_MAX = 1000 };

/* The target, and what was read of it. */
struct look {
    bool stop, all;
    enum show how;
    struct fiber_seen *fibers;
    size_t count;
};

static unsigned stop_ms(void) {
    const char *text = getenv("CCPS_STOP_MS");
    char *end;
    unsigned long ms = text != NULL ? strtoul(text, &end, 10) : STOP_MS;
    if (text != NULL && (text[0] < '0' || text[0] > '9' || *end != '\0' || ms > 60000))
        fail("CCPS_STOP_MS=%s: it is a number of milliseconds, 60000 at most", text);
    return (unsigned)ms;
}

/* While the process is stopped, ccps waits for nothing: not for the disk, and not for the reader of its output. */
static void *look_at(void *arg) {
    struct look *look = arg;
    if (look->stop) target_stop(stop_ms());
    look->fibers = runtime_fibers(&look->count, look->how != SHOW_TREE);
    if (look->count > EACH_MAX && !look->all)
        look->how = look->how == SHOW_EACH ? SHOW_MANY : look->how == SHOW_TREE ? SHOW_TREE_OF_MANY : look->how;
    if (look->stop) show_collect(look->fibers, look->count, look->how);
    if (look->stop) target_continue();
    return NULL;
}

int main(int argc, char **argv) {
    struct look look = {.how = SHOW_EACH};
    pthread_t tracer;
    for (int option; (option = getopt(argc, argv, "agsth")) != -1;) {
        switch (option) {
        case 'a':
            look.all = true;
            break;
        case 'g':
            look.how = SHOW_GROUPS;
            break;
        case 't':
            look.how = SHOW_TREE;
            break;
        case 's':
            look.stop = true;
            break;
        default:
            fputs(usage, option == 'h' ? stdout : stderr);
            return option == 'h' ? 0 : 2;
        }
    }
    if (optind + 1 != argc || argv[optind][0] == '\0') {
        fputs(usage, stderr);
        return 2;
    }
    char *end;
    long pid = strtol(argv[optind], &end, 10);
    bool process = *end == '\0';
    if (process && (pid <= 0 || pid > INT_MAX)) fail("process %s: there is no such process", argv[optind]);
    if (process)
        target_open_process((int)pid);
    else
        target_open_core(argv[optind]);
    runtime_find();
    look.stop = look.stop && process;
    if (!look.stop) {
        (void)look_at(&look);
    } else {
        int error = pthread_create(&tracer, NULL, look_at, &look); /* a stopped process continues when this one ends */
        if (error != 0) fail("no thread: %s", strerror(error));
        (void)pthread_join(tracer, NULL);
    }
    show_all(look.fibers, look.count, look.how);
    runtime_free(look.fibers, look.count);
    if (fflush(stdout) != 0 || ferror(stdout)) fail("standard output: %s", strerror(errno));
    return 0;
}
