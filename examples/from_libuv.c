/* from_libuv.c - reads, a timer, work on another thread: what libuv does with callbacks, as sequential code. */
#include <ccc/ccc.h>
#include <stdio.h>
#include <unistd.h>

CC_TASK(write_later, { int fd; }) {
    cc_sleep_ms(1);                                              /* uv_timer_start */
    if (cc_fd_write(self->fd, "hello", 5, NULL) != 0) puts("?"); /* uv_write */
    cc_fd_close(self->fd);                                       /* uv_close */
    return NULL;
}

static void *count_slowly(void *number) { /* the work_cb of uv_queue_work: it may block its OS thread */
    usleep(1000);
    return number;
}

int main(void) {
    int ends[2], number = 7;
    if (pipe(ends) != 0) return 1;
    CCTask writer = CC_GO(write_later, .fd = ends[1]);

    char text[16];
    size_t got;
    while (cc_fd_read(ends[0], text, sizeof text, &got) == 0 && got > 0) /* uv_read_start */
        printf("read '%.*s'\n", (int)got, text);
    cc_fd_close(ends[0]);

    void *result;
    if (cc_blocking(count_slowly, &number, &result) == 0) printf("worked: %d\n", *(int *)result);
    cc_task_join(&writer, NULL);
} /* no uv_run: main is an OS thread, and its calls block */
