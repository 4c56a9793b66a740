/* blocked.c - a fiber calls read() on a pipe that nobody writes to, which blocks its worker. */
#include <ccc/ccc.h>
#include <stdio.h>
#include <unistd.h>

CC_TASK(read_settings, { int fd; }) {
    char line[80];
    ssize_t n = read(self->fd, line, sizeof line);
    printf("%zd bytes of settings\n", n);
    return NULL;
}

int main(void) {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    cc_block_on(CC_GO(read_settings, .fd = ends[0]));
}
