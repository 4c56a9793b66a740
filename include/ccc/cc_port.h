/* cc_port.h - ports: messages from one island to another (cc_island.h) that are copied or moved, never shared.
 *
 * A port is a channel for messages of any size. What is sent is copied, and what is moved changes its owner: the sender
 * has it no longer. So no memory is in use on both sides, and an island's data stays its own.
 *
 *   cc_port_send(port, text, strlen(text) + 1);            a copy
 *
 *   CCMessage m = {.data = block, .size = n, .release = release_block};
 *   if (cc_port_move(port, &m) == 0) ...                   m is {0} now: the block belongs to whoever receives it
 *
 *   CCMessage m;                                           on another island
 *   while (cc_port_recv(port, &m) == 0) {
 *       use(m.data, m.size);
 *       cc_message_free(&m);                               calls release_block; or cc_port_move(next, &m)
 *   }
 *
 * Debug builds of the library, and its copy for the address sanitizer, overwrite a block from its move until it is
 * received: who reads it too late reads 0xDB, and who writes it ends the program with a message. Then the receiver gets
 * what was moved, at the same address.
 *
 * All calls: any context, also before the runtime starts and after it has stopped, and in a simulation.
 */
#ifndef CCC_CC_PORT_H
#define CCC_CC_PORT_H

#include <ccc/cc_base.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

typedef struct CCPort CCPort;

/* A block of memory with its owner: whoever has the message. {0} is no message. */
typedef struct CCMessage {
    void *data;
    size_t size; /* bytes at data; 0: data may be anything, also NULL */
    /* How to give the memory back, on any thread; NULL: nobody is called. */
    void (*release)(void *data, size_t size, void *context);
    void *context;
} CCMessage;

/* A field that is 0 or NULL means the default. */
typedef struct CCPortConfig {
    const char *name;     /* of its channel, for dumps; copied, cut at CC_CHAN_NAME_MAX - 1 bytes */
    size_t capacity;      /* messages that wait in it; 0: each waits for its receiver */
    size_t max_size;      /* of a message, in bytes; 0: no limit */
    uint64_t reserved[4]; /* 0; see cc_base.h */
} CCPortConfig;

/* A new port; config may be NULL. EINVAL: port NULL, or a reserved word that is not 0; ENOMEM; then *port is NULL. Does
 * not switch. */
CC_API int cc_port_create(CCPort **port, const CCPortConfig *config);

/* Closes it, releases the messages that nobody has received, and frees it. Nobody may use it meanwhile. NULL is
 * allowed. Does not switch. */
CC_API void cc_port_free(CCPort *port);

/* No more messages: waiting senders get EPIPE, and receivers when it is empty. EINVAL: NULL. Does not switch. */
CC_API int cc_port_close(CCPort *port);

/* Sends a copy of size bytes. EPIPE: closed; EMSGSIZE: more than max_size; ENOMEM; EINVAL: NULL; ECANCELED; _try:
 * EAGAIN; _until: ETIMEDOUT. On an error nobody gets the message. Switches; _try does not. */
CC_API int cc_port_send(CCPort *port, const void *bytes, size_t size);
CC_API int cc_port_send_try(CCPort *port, const void *bytes, size_t size);
CC_API int cc_port_send_until(CCPort *port, const void *bytes, size_t size, CCDeadline deadline);

/* Moves the message, and *message is {0}; its memory must be writable. Errors as above, without ENOMEM but for a timer:
 * then the caller still has it. Switches; _try does not. */
CC_API int cc_port_move(CCPort *port, CCMessage *message);
CC_API int cc_port_move_try(CCPort *port, CCMessage *message);
CC_API int cc_port_move_until(CCPort *port, CCMessage *message, CCDeadline deadline);

/* The next message, in the order of sending; the caller has it from now on. EPIPE: closed and empty; EINVAL: NULL;
 * ECANCELED; _try: EAGAIN; _until: ETIMEDOUT, ENOMEM. On an error *message is untouched. Switches; _try does not. */
CC_API int cc_port_recv(CCPort *port, CCMessage *message);
CC_API int cc_port_recv_try(CCPort *port, CCMessage *message);
CC_API int cc_port_recv_until(CCPort *port, CCMessage *message, CCDeadline deadline);

/* Gives its memory back, and *message is {0}. NULL and {0} are allowed. Does not switch, unless `release` does. */
CC_API void cc_message_free(CCMessage *message);

CC_END_DECLS

#endif
