/* cc_port.h - ports: messages from one island to another (cc_island.h) that are copied or moved, never shared.
 *
 * A port is a channel for messages of any size. A sent message is copied; a moved message changes its owner, and the
 * sender must not use it any more. So the two sides never share memory, and an island's data stays private.
 *
 *   cc_port_send(port, text, strlen(text) + 1);            a copy
 *
 *   CCMessage m = {.data = block, .size = n, .release = release_block};
 *   if (cc_port_move(port, &m) == 0) ...                   m is {0} now: the receiver owns the block
 *
 *   CCMessage m;                                           on another island
 *   while (cc_port_recv(port, &m) == 0) {
 *       use(m.data, m.size);
 *       cc_message_free(&m);                               calls release_block; or cc_port_move(next, &m)
 *   }
 *
 * Debug builds of the library, and its copy for the address sanitizer, overwrite a moved block until it is received: a
 * late read sees 0xDB, and a late write aborts the program with a message. The receiver gets the original content, at
 * the same address.
 *
 * All calls: any context, also before the runtime starts and after it has stopped, and in a simulation.
 */
#ifndef CCC_CC_PORT_H
#define CCC_CC_PORT_H

#include <ccc/cc_base.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

typedef struct CCPort CCPort;

/* A block of memory; the holder of the message owns it. {0} owns nothing: it is an empty message. */
typedef struct CCMessage {
    void *data;
    size_t size; /* bytes at data; 0: data may be anything, also NULL */
    /* Releases the memory, on any thread; may be NULL. */
    void (*release)(void *data, size_t size, void *context);
    void *context;
} CCMessage;

/* A field that is 0 or NULL means the default. */
typedef struct CCPortConfig {
    const char *name;     /* of its channel, for dumps; copied, truncated to CC_CHAN_NAME_MAX - 1 bytes */
    size_t capacity;      /* buffered messages; 0: a sender waits for its receiver */
    size_t max_size;      /* of a message, in bytes; 0: no limit */
    uint64_t reserved[4]; /* 0; see cc_base.h */
} CCPortConfig;

/* Creates a port; config may be NULL. EINVAL: port NULL, or a nonzero reserved word; ENOMEM. On an error *port is NULL.
 * Does not switch. */
CC_API int cc_port_create(CCPort **port, const CCPortConfig *config);

/* Closes it, releases unreceived messages, and frees it. No other call may be in progress. NULL is allowed. Does not
 * switch. */
CC_API void cc_port_free(CCPort *port);

/* Closes the port: senders get EPIPE, and so do receivers once it is empty. EINVAL: NULL. Does not switch. */
CC_API int cc_port_close(CCPort *port);

/* Sends a copy of size bytes. EPIPE: closed; EMSGSIZE: more than max_size; ENOMEM; EINVAL: NULL; ECANCELED; _try:
 * EAGAIN; _until: ETIMEDOUT. On an error the message is not delivered. Switches; _try does not. */
CC_API int cc_port_send(CCPort *port, const void *bytes, size_t size);
CC_API int cc_port_send_try(CCPort *port, const void *bytes, size_t size);
CC_API int cc_port_send_until(CCPort *port, const void *bytes, size_t size, CCDeadline deadline);

/* Moves the message and sets *message to {0}; its memory must be writable. Errors as above, with ENOMEM only for a
 * timer; after an error the caller still owns it. {0} is sent as an empty message: a second move of the same variable
 * is not detected. Switches; _try does not. */
CC_API int cc_port_move(CCPort *port, CCMessage *message);
CC_API int cc_port_move_try(CCPort *port, CCMessage *message);
CC_API int cc_port_move_until(CCPort *port, CCMessage *message, CCDeadline deadline);

/* Receives the next message, in the order of sending; the caller owns it. EPIPE: closed and empty; EINVAL: NULL;
 * ECANCELED; _try: EAGAIN; _until: ETIMEDOUT, ENOMEM. On an error *message is untouched. Switches; _try does not. */
CC_API int cc_port_recv(CCPort *port, CCMessage *message);
CC_API int cc_port_recv_try(CCPort *port, CCMessage *message);
CC_API int cc_port_recv_until(CCPort *port, CCMessage *message, CCDeadline deadline);

/* Releases its memory and sets *message to {0}. NULL and {0} are allowed. Does not switch, unless `release` does. */
CC_API void cc_message_free(CCMessage *message);

CC_END_DECLS

#endif
