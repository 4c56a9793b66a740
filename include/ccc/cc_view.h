/* cc_view.h - the live page: shows in a browser what the runtime is doing.
 *
 * A dedicated thread serves it, by plain system calls: it responds even while all workers are stuck. CC_VIEW=1 in the
 * environment serves it on a Unix socket, CC_VIEW=tcp or CC_VIEW=tcp:PORT on the loopback interface, from the start of
 * the runtime to its end; or the program calls these functions. Otherwise it is off and costs nothing.
 *
 * Access: on a Unix socket, processes of the same user and of root; on the loopback interface, clients that know the
 * token, which is random, part of the address, and different each time. cc_view(3) lists what is served: the page,
 * JSON, metrics for Prometheus, dumps, traces, profiles.
 */
#ifndef CCC_CC_VIEW_H
#define CCC_CC_VIEW_H

#include <ccc/cc_base.h>

CC_BEGIN_DECLS

#define CC_VIEW_ADDRESS_MAX 160 /* bytes, including the terminating 0 */

typedef struct CCViewConfig {
    const char *path;              /* of a Unix socket, which must not exist; NULL: the library chooses */
    bool tcp;                      /* on 127.0.0.1 instead; path must be NULL */
    uint16_t port;                 /* for tcp; 0: the system chooses one */
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCViewConfig;

/* Starts serving; config may be NULL: a Unix socket. Starts the runtime if necessary. The page ends with cc_view_stop
 * or with the runtime. EINVAL: a value out of range, or a path that is too long for a socket; EALREADY: already served;
 * ENOTSUP: in a simulation; EACCES: other users can access the directory of the socket; EADDRINUSE: the port or path is
 * in use; ENOMEM, EAGAIN, EMFILE, ENFILE: out of resources; other errors of socket(2) and bind(2). Any context; blocks
 * the thread for the system calls. */
CC_API int cc_view_start(const CCViewConfig *config);

/* Stops serving and removes the socket, after a request in progress. EALREADY: not being served. Any context; blocks
 * the thread until then. */
CC_API int cc_view_stop(void);

/* Its address: "http://127.0.0.1:PORT/?t=TOKEN" or the path of the socket, as a string truncated to `size`. ESRCH: not
 * being served, and the string is empty; EINVAL: text is NULL or size is 0. Any context; does not switch. */
CC_API int cc_view_address(char *text, size_t size);

CC_END_DECLS

#endif
