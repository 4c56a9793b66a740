/* broadcast_shared.c - broadcasts a pointer to a message that all subscribers share: each copy is a reference. */
#include <ccc/ccc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 2, MESSAGES = 5 };

typedef struct Message {
    atomic_int references;
    char text[32];
} Message;

CC_CHAN_OF(Messages, Message *);

static atomic_int live;

static Message *new_message(int number) {
    Message *m = malloc(sizeof *m);
    if (m == NULL) abort();
    atomic_init(&m->references, 1);
    snprintf(m->text, sizeof m->text, "message %d", number);
    live++;
    return m;
}

static void release(Message *m) {
    if (atomic_fetch_sub(&m->references, 1) > 1) return;
    free(m);
    live--;
}

/* For each subscriber, before it gets the pointer. */
static int on_copy(void *value, void *context) {
    (void)context;
    atomic_fetch_add(&(*(Message **)value)->references, 1);
    return 0;
}

/* For each copy that a subscriber does not receive. */
static void on_drop(void *value, void *context) {
    (void)context;
    release(*(Message **)value);
}

CC_ASYNC(int, read_all, { Messages from; }) {
    int count = 0;
    CC_FOR_RECV_OF(message, self->from) {
        count++;
        release(message);
    }
    return count;
}

/* Its own reference stays with the publisher. */
static void publish(CCBroadcast *b, int number) {
    Message *m = new_message(number);
    size_t delivered;
    int rc = cc_broadcast_send_count(b, &m, sizeof m, &delivered, CC_FOREVER);
    if (rc != 0) fprintf(stderr, "%s: %s\n", m->text, cc_error_text(rc));
    printf("%s: %zu copies\n", m->text, delivered);
    release(m);
}

int main(void) {
    CCBroadcast *b = cc_broadcast_create(&(CCBroadcastConfig){.elem_size = sizeof(Message *),
                                                              .capacity = ROOM,
                                                              .slow = CC_SLOW_DROP_OLD,
                                                              .on_copy = on_copy,
                                                              .on_drop = on_drop});
    if (b == NULL) return 1;
    publish(b, 0); /* nobody is there */
    Messages reader = Messages_from(cc_broadcast_subscribe(b)), leaver = Messages_from(cc_broadcast_subscribe(b));
    for (int i = 1; i <= MESSAGES; i++) {
        publish(b, i);
        if (i == 3) cc_broadcast_unsubscribe(b, leaver.ch); /* with two messages in its buffer */
    }
    cc_broadcast_close(b);
    CC_FUTURE(read_all, rest);
    CC_START(&rest, read_all, .from = reader);
    int count = CC_AWAIT(&rest);
    printf("the reader has read %d, and %d are left\n", count, live);
    cc_broadcast_free(b);
    Messages_free(reader);
}
