/* host_crash.c - two simulated hosts with a file each: one loses its power, starts again, and finds what it had synced.
 */
#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* Counts the starts of a host in its file, and syncs it before the count is reported. */
static int count_start(void) {
    int fd, starts = 0;
    size_t n = 0;
    if (cc_file_open(&fd, "starts", O_RDWR | O_CREAT, 0600) != 0) return 0;
    if (cc_file_read(fd, &starts, sizeof starts, 0, &n) == 0) starts++;
    if (cc_file_write(fd, &starts, sizeof starts, 0, NULL) != 0 || cc_file_sync(fd) != 0) starts = 0;
    cc_fd_close(fd);
    return starts;
}

static void *store(void *told) {
    int starts = count_start();
    (void)cc_chan_send(told, &starts, sizeof starts);
    (void)cc_sleep_until(CC_FOREVER); /* serves; a crash cancels it */
    return NULL;
}

static void *test(void *told) {
    CCSimHost one, two;
    int starts;
    if (cc_sim_host(&one, "one") != 0 || cc_sim_host(&two, "two") != 0) return NULL;
    if (cc_sim_start(one, store, told) != 0 || cc_sim_start(two, store, told) != 0) return NULL;
    for (int i = 0; i < 2; i++)
        if (cc_chan_recv(told, &starts, sizeof starts) == 0) printf("a host has started %d time(s)\n", starts);
    cc_sim_partition(one, two, cc_after_ms(3000));        /* no packets between them for three seconds */
    cc_sim_crash(one);                                    /* power failure */
    if (cc_sim_start(one, store, told) != 0) return NULL; /* it starts again, with its disk as it was synced */
    if (cc_chan_recv(told, &starts, sizeof starts) == 0) printf("a host has started %d time(s)\n", starts);
    return told;
}

static void *simulate(void *unused) {
    (void)unused;
    CCChan *told = cc_chan_create(sizeof(int), 0);
    CCSimHost one = 0, two = 0;
    void *good = told != NULL ? test(told) : NULL;
    if (cc_sim_host(&one, "one") == 0) cc_sim_crash(one); /* cancels what still serves */
    if (cc_sim_host(&two, "two") == 0) cc_sim_crash(two);
    while (one != 0 && two != 0 && cc_sim_fibers(one) + cc_sim_fibers(two) > 0) cc_sleep_ms(1);
    cc_chan_free(told);
    return good;
}

int main(void) {
    void *good = NULL;
    return cc_sim_run(1, simulate, NULL, &good) == 0 && good != NULL ? 0 : 1;
}
