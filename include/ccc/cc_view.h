/* cc_view.h - the live page: what the runtime is doing, in a browser, while it does it.
 *
 * A thread of the runtime's own serves it, by plain system calls: it answers while all workers are stuck. CC_VIEW=1 in
 * the environment serves it on a Unix socket, CC_VIEW=tcp or CC_VIEW=tcp:PORT on the loopback interface, from the
 * start of the runtime to its end; or a program calls these functions. It is off otherwise, and costs nothing then.
 *
 * Who may look: on a Unix socket, processes of the same user and of root; on the loopback interface, whoever knows the
 * token, which is random, part of the address, and different each time. cc_view(3) lists what is served: the page,
 * JSON, metrics for Prometheus, dumps, traces, profiles.
 */
#ifndef CCC_CC_VIEW_H
#define CCC_CC_VIEW_H

#include <ccc/cc_base.h>

CC_BEGIN_DECLS

#define CC_VIEW_ADDRESS_MAX 160 /* bytes, with the 0 at the end */

typedef struct CCViewConfig {
    const char *path;              /* of a Unix socket, which must not exist; NULL: a name of the library's choice */
    bool tcp;                      /* on 127.0.0.1 instead; path must be NULL */
    uint16_t port;                 /* for tcp; 0: the system chooses one */
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCViewConfig;

/* Begins to serve; config may be NULL: a Unix socket. Starts the runtime if it does not run. The page ends with
 * cc_view_stop or with the runtime. EINVAL: a value out of range, or a path that is too long for a socket; EALREADY: it
 * is served already; ENOTSUP: in a simulation; EACCES: the folder for the socket is open to others; EADDRINUSE:
 * somebody has that port or path; ENOMEM, EAGAIN, EMFILE, ENFILE: the system has no more of something; other errors of
 * socket(2) and bind(2). Any context; blocks the thread for the system calls. */
CC_API int cc_view_start(const CCViewConfig *config);

/* Ends it: nothing is served any more, and the socket is gone. A request that is being computed is waited for.
 * EALREADY: nothing is served. Any context; blocks the thread for that long. */
CC_API int cc_view_stop(void);

/* Where it is: "http://127.0.0.1:PORT/?t=TOKEN" or the path of the socket, as a string that is cut at `size`. ESRCH:
 * nothing is served, and the string is empty; EINVAL: text is NULL or size is 0. Any context; does not switch. */
CC_API int cc_view_address(char *text, size_t size);

CC_END_DECLS

#endif
