/* port.c - messages through a port: one is copied; one is moved, and its receiver owns it. */
#include <ccc/ccc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void give(void *data, size_t size, void *unused) {
    (void)size, (void)unused;
    free(data);
}

CC_ASYNC(int, print_messages, { CCPort *from; }) {
    int count = 0;
    for (CCMessage m; cc_port_recv(self->from, &m) == 0; count++) {
        printf("%s\n", (const char *)m.data);
        cc_message_free(&m);
    }
    return count;
}

int main(void) {
    const char *text = "a copy";
    size_t n = 32;
    char *block = malloc(n);
    if (block == NULL) return 1;
    snprintf(block, n, "the block itself");

    CCPort *port;
    cc_port_create(&port, &(CCPortConfig){.capacity = 16});
    cc_port_send(port, text, strlen(text) + 1);                                  /* a copy */
    cc_port_move(port, &(CCMessage){.data = block, .size = n, .release = give}); /* from here on the receiver owns it */
    cc_port_close(port);
    {
        CC_FUTURE(print_messages, all);
        CC_START(&all, print_messages, .from = port);
        printf("%d messages\n", CC_AWAIT(&all));
    }
    cc_port_free(port);
}
