/* port.c - ports: a channel of messages with ownership transfer.
 *
 * PORT-1  A message has one owner: its sender until the send has returned 0, the port while it is inside, its receiver
 *         from then on. The last owner releases it, once: the receiver, or the channel that drops it.
 * PORT-2  With POISONED: from the move until a receive, a drop or a failed send, the block is overwritten and its
 *         content kept elsewhere. A block that was changed meanwhile is reported.
 */
#include "base/error.h"
#include "base/fatal.h"
#include "base/mem.h"
#include "base/san.h"

#include <ccc/cc_channel.h>
#include <ccc/cc_port.h>
#include <errno.h>
#include <string.h>

#if defined(CC_DEBUG) || defined(CC_ASAN)
enum { POISONED = true };
#else
enum { POISONED = false };
#endif
enum { POISON = 0xdb };

/* What the channel carries. */
struct parcel {
    CCMessage message;
    void *kept; /* the content of a moved block; NULL: still in the block */
};

struct CCPort {
    CCChan *ch;
    size_t max_size;
};

/* ---- a block in flight ---- */

/* Without memory the block stays unchanged. */
static void poison(struct parcel *p) { /* PORT-2 */
    const CCMessage *m = &p->message;
    p->kept = POISONED && m->size > 0 ? cc__mem_alloc_small(m->size) : NULL;
    if (p->kept == NULL) return;
    memcpy(p->kept, m->data, m->size);
    memset(m->data, POISON, m->size);
    cc__san_forbid(m->data, m->size, true);
}

static void restore(struct parcel *p) { /* PORT-2 */
    const CCMessage *m = &p->message;
    if (p->kept == NULL) return;
    cc__san_forbid(m->data, m->size, false);
    const unsigned char *bytes = m->data;
    for (size_t i = 0; i < m->size; i++)
        if (bytes[i] != POISON)
            cc__fatal("PORT-2: byte %zu of a block of %zu bytes at %p was written after the block was moved to a port",
                      i, m->size, m->data);
    memcpy(m->data, p->kept, m->size);
    cc__mem_free(p->kept);
    p->kept = NULL;
}

static void drop(void *parcel, void *context) {
    struct parcel *p = parcel;
    (void)context;
    restore(p);
    cc_message_free(&p->message);
}

static void release_copy(void *data, size_t size, void *context) {
    (void)size, (void)context;
    cc__mem_free(data);
}

void cc_message_free(CCMessage *message) {
    if (message == NULL) return;
    CCMessage m = *message;
    *message = (CCMessage){0};
    if (m.release != NULL) m.release(m.data, m.size, m.context);
}

/* ---- ports ---- */

int cc_port_create(CCPort **port, const CCPortConfig *config) {
    static const CCPortConfig defaults;
    if (port == NULL) return EINVAL;
    *port = NULL;
    if (config == NULL) config = &defaults;
    if (cc__reserved_used(config)) return EINVAL;
    CCPort *p = cc__mem_alloc_small(sizeof *p);
    if (p == NULL) return ENOMEM;
    int saved = errno;
    p->ch = cc_chan_create_ex(&(CCChanConfig){
        .elem_size = sizeof(struct parcel), .capacity = config->capacity, .on_drop = drop, .name = config->name});
    errno = saved;
    if (p->ch == NULL) {
        cc__mem_free(p);
        return ENOMEM;
    }
    p->max_size = config->max_size != 0 ? config->max_size : SIZE_MAX;
    *port = p;
    return 0;
}

void cc_port_free(CCPort *port) {
    if (port == NULL) return;
    cc_chan_free(port->ch);
    cc__mem_free(port);
}

int cc_port_close(CCPort *port) {
    return port != NULL ? cc_chan_close(port->ch) : EINVAL;
}

/* ---- send and receive: wait, try, or until a deadline ---- */

enum how { WAIT, TRY, UNTIL };

static int put(CCPort *port, const struct parcel *p, enum how how, CCDeadline deadline) {
    switch (how) {
    case TRY:
        return cc_chan_send_try(port->ch, p, sizeof *p);
    case UNTIL:
        return cc_chan_send_until(port->ch, p, sizeof *p, deadline);
    default:
        return cc_chan_send(port->ch, p, sizeof *p);
    }
}

static int take(CCPort *port, struct parcel *p, enum how how, CCDeadline deadline) {
    switch (how) {
    case TRY:
        return cc_chan_recv_try(port->ch, p, sizeof *p);
    case UNTIL:
        return cc_chan_recv_until(port->ch, p, sizeof *p, deadline);
    default:
        return cc_chan_recv(port->ch, p, sizeof *p);
    }
}

static int send(CCPort *port, const void *bytes, size_t size, enum how how, CCDeadline deadline) {
    struct parcel p = {.message = {.size = size}};
    if (port == NULL || (bytes == NULL && size > 0)) return EINVAL;
    if (size > port->max_size) return EMSGSIZE;
    if (size > 0) {
        p.message.data = cc__mem_alloc_small(size);
        if (p.message.data == NULL) return ENOMEM;
        p.message.release = release_copy;
        memcpy(p.message.data, bytes, size);
    }
    int rc = put(port, &p, how, deadline);
    if (rc != 0) cc_message_free(&p.message);
    return rc;
}

static int move(CCPort *port, CCMessage *message, enum how how, CCDeadline deadline) { /* PORT-1 */
    if (port == NULL || message == NULL || (message->data == NULL && message->size > 0)) return EINVAL;
    if (message->size > port->max_size) return EMSGSIZE;
    struct parcel p = {.message = *message};
    poison(&p);
    int rc = put(port, &p, how, deadline);
    if (rc != 0)
        restore(&p);
    else
        *message = (CCMessage){0};
    return rc;
}

static int receive(CCPort *port, CCMessage *message, enum how how, CCDeadline deadline) {
    struct parcel p;
    if (port == NULL || message == NULL) return EINVAL;
    int rc = take(port, &p, how, deadline);
    if (rc != 0) return rc;
    restore(&p);
    *message = p.message;
    return 0;
}

int cc_port_send(CCPort *port, const void *bytes, size_t size) {
    return send(port, bytes, size, WAIT, CC_FOREVER);
}

int cc_port_send_try(CCPort *port, const void *bytes, size_t size) {
    return send(port, bytes, size, TRY, CC_FOREVER);
}

int cc_port_send_until(CCPort *port, const void *bytes, size_t size, CCDeadline deadline) {
    return send(port, bytes, size, UNTIL, deadline);
}

int cc_port_move(CCPort *port, CCMessage *message) {
    return move(port, message, WAIT, CC_FOREVER);
}

int cc_port_move_try(CCPort *port, CCMessage *message) {
    return move(port, message, TRY, CC_FOREVER);
}

int cc_port_move_until(CCPort *port, CCMessage *message, CCDeadline deadline) {
    return move(port, message, UNTIL, deadline);
}

int cc_port_recv(CCPort *port, CCMessage *message) {
    return receive(port, message, WAIT, CC_FOREVER);
}

int cc_port_recv_try(CCPort *port, CCMessage *message) {
    return receive(port, message, TRY, CC_FOREVER);
}

int cc_port_recv_until(CCPort *port, CCMessage *message, CCDeadline deadline) {
    return receive(port, message, UNTIL, deadline);
}
