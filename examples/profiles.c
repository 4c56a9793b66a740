/* profiles.c - where fibers use CPU time, where they wait, and for what: writes four profiles into a directory:
 *
 *   profiles /tmp && go tool pprof -top /tmp/block.pb
 */
#include <ccc/ccc.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static CCMutex lock;
static CCChan *jobs;
static atomic_bool over;
static volatile unsigned long sum;

static void *compute(void *arg) {
    while (!atomic_load(&over)) {
        for (unsigned long i = 0; i < 100000; i++) sum = sum * 31 + i;
        cc_yield();
    }
    return arg;
}

/* Holds the lock while it sleeps, so that the others wait. */
static void *hold(void *arg) {
    while (!atomic_load(&over)) {
        if (cc_mutex_lock(&lock) != 0) break;
        (void)cc_sleep_ms(2);
        cc_mutex_unlock(&lock);
        (void)cc_sleep_ms(1);
    }
    return arg;
}

/* Sleeps in between: the recorder keeps the newest events only, and a loop of yields alone would fill its rings within
 * milliseconds. */
static void *want(void *arg) {
    while (!atomic_load(&over)) {
        if (cc_mutex_lock(&lock) != 0) break;
        cc_mutex_unlock(&lock);
        (void)cc_sleep_ms(1);
    }
    return arg;
}

static void *idle(void *arg) {
    int job;
    while (cc_chan_recv(jobs, &job, sizeof job) == 0) {
    }
    return arg;
}

static int create(const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

static int write_kind(const char *folder, const char *name, CCProfile kind) {
    int fd = create(folder, name), rc = cc_profile_write(fd, kind);
    close(fd);
    return rc;
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : ".";
    CCTask tasks[6];
    CCTaskFn functions[] = {compute, hold, want, want, idle, idle};
    int failed = cc_record_start(&(CCRecordConfig){.level = CC_RECORD_STACKS});
    jobs = cc_chan_create(sizeof(int), 0);
    if (jobs == NULL || failed != 0) return 1;
    for (int i = 0; i < 6; i++) failed |= cc_spawn(&tasks[i], functions[i], NULL, NULL);

    int fd = create(folder, "cpu.pb");
    failed |= cc_profile_cpu(fd, cc_after_ms(300));
    close(fd);
    failed |= write_kind(folder, "fibers.pb", CC_PROFILE_FIBERS);
    failed |= write_kind(folder, "block.pb", CC_PROFILE_BLOCK);
    failed |= write_kind(folder, "contention.pb", CC_PROFILE_CONTENTION);

    atomic_store(&over, true);
    failed |= cc_chan_close(jobs);
    for (int i = 0; i < 6; i++) failed |= cc_task_join(&tasks[i], NULL);
    cc_chan_free(jobs);
    if (failed == 0) puts("Four profiles have been written.");
    return failed != 0;
}
