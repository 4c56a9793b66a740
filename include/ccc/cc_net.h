/* cc_net.h - the network: addresses, listeners, connections, datagrams, servers.
 *
 *   CCConn *c;
 *   if (cc_dial(&c, "tcp://example.org:80", NULL) == 0) {
 *       if (cc_write(c, "GET / HTTP/1.0\r\n\r\n", 18, NULL) == 0)
 *           while (cc_read(c, buffer, sizeof buffer, &n) == 0 && n > 0) …
 *       cc_close(c);
 *   }
 *
 * One string says where to listen, dial or bind:
 *
 *   tcp://HOST:PORT       HOST: an IPv4 address, an IPv6 address in brackets ([fe80::1%eth0]), or a name. To listen
 *                         it may be left out: every address of this machine, IPv4 and IPv6. Port 0, to listen: any
 *                         free one.
 *   unix:PATH, unix:@NAME a socket in the file system; one in the abstract name space
 *   udp://HOST:PORT       datagrams
 *   LAYER://HOST:PORT     tcp, with a layer on top of it that was registered by that name (cc_conn_layer): tls
 *
 * followed by ?OPTION&OPTION=VALUE…: options have the names of the fields of CCListenOptions, CCDialOptions and
 * CCConnOptions, and override them. An unknown or inapplicable option is EINVAL.
 *
 * Calls that wait have three forms, as in cc_fd.h: plain, _try (EAGAIN) and _until (ETIMEDOUT); the plain form also
 * ends at the connection's own deadline. All return 0 or an errno value and do not modify errno. None raises SIGPIPE.
 * A call that makes a listener, connection or socket sets its pointer to NULL on an error. After ETIMEDOUT and
 * ECANCELED nothing was read, accepted or connected, and a write reports how many bytes were written.
 *
 * Any context: a fiber parks, an OS thread blocks. Two fibers may use a connection at the same time, one reader and one
 * writer. cc_close frees it: a wait of another fiber ends with EBADF, but no call may start afterwards. To stop another
 * fiber that uses a connection, cancel the fiber or call cc_shutdown, and close the connection when the fiber is done.
 * In a simulation the network is simulated (cc_sim.h), Unix sockets and pipes included.
 */
#ifndef CCC_CC_NET_H
#define CCC_CC_NET_H

#include <ccc/cc_base.h>
#include <ccc/cc_fd.h>
#include <ccc/cc_nursery.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* ---- addresses ---- */

typedef enum CCAddrKind { CC_ADDR_NONE = 0, CC_ADDR_IP4 = 1, CC_ADDR_IP6 = 2, CC_ADDR_UNIX = 3 } CCAddrKind;

/* A value: copied by assignment, nothing to free. {0} is no address. */
typedef struct CCAddr {
    uint8_t kind;             /* CCAddrKind */
    uint8_t length;           /* of `bytes`: 4, 16, or that of a Unix socket's name */
    uint16_t port;            /* of an IP address; 0: none */
    uint32_t zone;            /* of an IPv6 address: the number of an interface; 0: none */
    unsigned char bytes[112]; /* in network order; a Unix socket's path, or a 0 byte and its abstract name */
    uint64_t reserved[1];
} CCAddr;

/* The longest text of an address, including the terminating 0. */
#define CC_ADDR_TEXT_MAX 340

/* "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]:80", "[fe80::1%eth0]:80", "[fe80::1%2]", "unix:/run/x",
 * "unix:@name". In a Unix socket's name %XX is the byte with that hexadecimal code. Host names are not accepted: see
 * cc_resolve. EINVAL: none of these. ENODEV: no such interface. ENAMETOOLONG: more than 108 bytes of a Unix socket. Any
 * context; does not switch. */
CC_API int cc_addr_parse(CCAddr *addr, const char *text);
/* Formats the address so that cc_addr_parse can read it: port 0 is omitted, a zone is a number. An unnamed Unix socket
 * gives "unix:", which is no address to parse. EINVAL: no address; ENOSPC: needs more than `size` bytes, and text is
 * "". Any context; does not switch. */
CC_API int cc_addr_print(const CCAddr *addr, char *text, size_t size);
/* Convert from and to a sockaddr. EAFNOSUPPORT: neither IP nor Unix. *length: on entry the size of `to`, on return the
 * bytes used; ENOSPC. An unnamed Unix socket has the kind CC_ADDR_UNIX and length 0. Any context; does not switch. */
CC_API int cc_addr_from_sockaddr(CCAddr *addr, const struct sockaddr *from, CCSockLen length);
CC_API int cc_addr_to_sockaddr(const CCAddr *addr, struct sockaddr *to, CCSockLen *length);
/* Returns less than 0, 0 or more than 0: a total order of addresses, by kind, bytes, zone and port. Any context; does
 * not switch. */
CC_API int cc_addr_compare(const CCAddr *a, const CCAddr *b);

/* ---- listen and dial ---- */

typedef struct CCListener CCListener;
typedef struct CCConn CCConn;

/* Options of TCP connections. A field that is 0 means the default. */
typedef struct CCConnOptions {
    bool delay CC__ZERO;               /* enables Nagle's algorithm; default: TCP_NODELAY */
    unsigned keepalive CC__ZERO;       /* idle seconds before keep-alive probes are sent; default: never */
    unsigned user_timeout_ms CC__ZERO; /* data unacknowledged for this long: ETIMEDOUT (TCP_USER_TIMEOUT) */
    unsigned send_buffer CC__ZERO;     /* socket buffer sizes in bytes; default: the system's */
    unsigned receive_buffer CC__ZERO;
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCConnOptions;

typedef struct CCListenOptions {
    unsigned backlog CC__ZERO; /* pending connections; default: as many as the system allows */
    bool reuseport CC__ZERO;   /* several sockets may listen on the port, and the system distributes connections */
    bool v6only CC__ZERO;      /* [::] does not include IPv4 */
    bool unlink CC__ZERO;   /* unix: removes a socket without a listener that is in the way, and its own at the end */
    unsigned mode CC__ZERO; /* unix: the permissions of the file; default: by the umask */
    CCConnOptions conn CC__ZERO;   /* of accepted connections */
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCListenOptions;

typedef struct CCDialOptions {
    CCAddr local CC__ZERO;         /* the source address; default: the system chooses */
    unsigned fallback_ms CC__ZERO; /* delay before the next address of a name is tried; default: 250 */
    CCConnOptions conn CC__ZERO;
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCDialOptions;

/* Listens. options: may be NULL. EINVAL; EADDRINUSE, EADDRNOTAVAIL, EACCES, EMFILE, ENOMEM, …; for a name what
 * cc_resolve returns. Any context; switches for names only. */
CC_API CC_MUST_CHECK int cc_listen(CCListener **listener, const char *where, const CCListenOptions *options);
/* Makes a listener of a socket that already listens: inherited, as from systemd, or received from the process that this
 * one replaces (cc_unix_recv_fds). The library takes over the descriptor; close-on-exec is left as it is, and a file of
 * a Unix socket is not removed. options of accepted connections: may be NULL. EINVAL: it is no stream socket that
 * listens; EBADF, ENOTSOCK, EAFNOSUPPORT, ENOMEM; EOPNOTSUPP: a simulated one. After an error the caller keeps it. Any
 * context; does not switch. */
CC_API CC_MUST_CHECK int cc_listener_from_fd(CCListener **listener, int fd, const CCConnOptions *options);
/* Accepts the next connection. Errors as accept(2), except ECONNABORTED: such a connection is skipped. EMFILE, ENFILE,
 * ENOBUFS, ENOMEM: the connection stays pending; cc_serve handles that. */
CC_API CC_MUST_CHECK int cc_accept(CCListener *listener, CCConn **conn);
CC_API CC_MUST_CHECK int cc_accept_try(CCListener *listener, CCConn **conn);
CC_API CC_MUST_CHECK int cc_accept_until(CCListener *listener, CCConn **conn, CCDeadline deadline);
/* The address that it listens on, with the actual port. Any context; does not switch. */
CC_API int cc_listener_addr(CCListener *listener, CCAddr *addr);
/* The descriptor, still owned by the library; -1: NULL, or closed, as at the end of cc_serve. Any context; does not
 * switch. */
CC_API int cc_listener_fd(CCListener *listener);
/* Closes and frees it; pending accepts return EBADF. NULL is allowed. Any context; does not switch. */
CC_API void cc_listener_close(CCListener *listener);

/* Connects. The addresses of a name are tried according to RFC 8305 (happy eyeballs): IPv6 and IPv4 alternate, and the
 * next attempt starts when the last one has failed or fallback_ms have passed; the first connection wins and the other
 * attempts are cancelled. If all fail, the error of the attempt that got furthest is returned: ECONNREFUSED is an
 * answer from the peer, ENETUNREACH is not. options: may be NULL. EINVAL; EMFILE, ENOMEM, …; for a name what cc_resolve
 * returns. Any context; switches. */
CC_API CC_MUST_CHECK int cc_dial(CCConn **conn, const char *where, const CCDialOptions *options);
CC_API CC_MUST_CHECK int cc_dial_until(CCConn **conn, const char *where, const CCDialOptions *options,
                                       CCDeadline deadline);
/* The same for an address that is already known. */
CC_API CC_MUST_CHECK int cc_dial_addr(CCConn **conn, const CCAddr *addr, const CCDialOptions *options,
                                      CCDeadline deadline);

/* Makes a connection of an existing socket or pipe; the library takes over the descriptor. EBADF, ENOMEM: the caller
 * keeps it. Any context; does not switch. */
CC_API CC_MUST_CHECK int cc_conn_from_fd(CCConn **conn, int fd);
/* Create two connected Unix-socket connections, or the two ends of a pipe. EMFILE, ENFILE, ENOMEM. Any context; does
 * not switch. */
CC_API CC_MUST_CHECK int cc_socketpair(CCConn **one, CCConn **other);
CC_API CC_MUST_CHECK int cc_pipe(CCConn **reader, CCConn **writer);

/* ---- bytes ---- */

/* Reads the bytes that are available, at least one and at most `size`. *n == 0: the peer has shut down its write side.
 * ECONNRESET: the peer has aborted the connection. EBADF: closed here. Switches; _try does not wait. */
CC_API CC_MUST_CHECK int cc_read(CCConn *conn, void *buffer, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_read_try(CCConn *conn, void *buffer, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_read_until(CCConn *conn, void *buffer, size_t size, size_t *n, CCDeadline deadline);
/* Reads exactly `size` bytes. ENODATA: the stream ended before. n: may be NULL; how many were read into the buffer,
 * also after an error. */
CC_API CC_MUST_CHECK int cc_read_full(CCConn *conn, void *buffer, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_read_full_until(CCConn *conn, void *buffer, size_t size, size_t *n, CCDeadline deadline);

/* Writes all `size` bytes, and waits while the peer does not read. n: may be NULL; how many bytes were written, also
 * after an error. EPIPE, ECONNRESET: the peer no longer reads. _try writes what fits; EAGAIN: nothing does. */
CC_API CC_MUST_CHECK int cc_write(CCConn *conn, const void *bytes, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_write_try(CCConn *conn, const void *bytes, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_write_until(CCConn *conn, const void *bytes, size_t size, size_t *n, CCDeadline deadline);
/* The same for several buffers, at most IOV_MAX. */
CC_API CC_MUST_CHECK int cc_writev(CCConn *conn, const struct iovec *parts, int count, size_t *n);
CC_API CC_MUST_CHECK int cc_writev_try(CCConn *conn, const struct iovec *parts, int count, size_t *n);
CC_API CC_MUST_CHECK int cc_writev_until(CCConn *conn, const struct iovec *parts, int count, size_t *n,
                                         CCDeadline deadline);

typedef enum CCShut { CC_SHUT_READ = 1, CC_SHUT_WRITE = 2, CC_SHUT_BOTH = 3 } CCShut;

/* Shuts down one direction: after CC_SHUT_WRITE the peer reads end of stream and may still write. ENOTCONN: the peer
 * has disconnected. EOPNOTSUPP: a pipe has one direction. Any context; does not switch, except for connections of
 * another library that has to notify its peer of the end (cc_tls.h). */
CC_API int cc_shutdown(CCConn *conn, CCShut side);
/* Closes and frees the connection; written data is still delivered, unless received data was not read: then the
 * kernel resets the connection. To avoid that, shut down writing and read to the end first. Waits of others end with
 * EBADF. NULL is allowed. Any context; does not switch. */
CC_API void cc_close(CCConn *conn);
/* Closes at once: the peer of a TCP connection gets ECONNRESET, and may lose data that it has not read. */
CC_API void cc_abort(CCConn *conn);

/* ---- about a connection ---- */

/* Sets the deadlines of all reads and writes that start from now on: ETIMEDOUT; CC_FOREVER: none. An _until form ends
 * at the earlier of its own and this deadline. Any context; does not switch. */
CC_API int cc_conn_deadline(CCConn *conn, CCDeadline read, CCDeadline write);
/* Checks, without waiting, whether an idle connection can be reused. 0: the peer is connected, as far as this side
 * knows, and has sent nothing. EAGAIN: there are bytes to read. ENODATA: the peer has shut down its write side; or the
 * pending error of the connection. Any context; does not switch. */
CC_API CC_MUST_CHECK int cc_conn_alive(CCConn *conn);
/* The local and the peer address. ENOTCONN: the peer has disconnected, for example by a reset, and its address is lost:
 * ask for it earlier if you need it. EOPNOTSUPP: a pipe has none. Any context; does not switch. */
CC_API int cc_conn_local(CCConn *conn, CCAddr *addr);
CC_API int cc_conn_peer(CCConn *conn, CCAddr *addr);
/* The descriptor, for setsockopt(2) and the like; the library still owns it. -1: NULL, closed, or there is none. Any
 * context; does not switch. */
CC_API int cc_conn_fd(CCConn *conn);
/* Whether what is written to the connection is what goes to its descriptor: true unless cc_conn_create has made it.
 * false for NULL. Any context; does not switch. */
CC_API bool cc_conn_is_plain(CCConn *conn);

/* ---- user-defined connections ---- */

/* Waits until the connection is readable, possibly spuriously; the waiting fiber holds no buffer. drained: a read has
 * just returned EAGAIN. Also ends at the connection's own deadline. Errors as cc_read. Switches. */
CC_API CC_MUST_CHECK int cc_conn_await(CCConn *conn, bool drained, CCDeadline deadline);

/* The operations of a user-defined connection, such as one that encrypts or counts bytes. Each is called with the
 * `state` of cc_conn_create and returns 0 or an errno value. The deadline is the earlier one of the call and the
 * connection. A NULL function means EOPNOTSUPP; read, write, await and close are required. */
typedef struct CCConnOps {
    /* As cc_read and cc_write, for several buffers; *n is 0 on entry. wait: false for the _try forms. */
    int (*read)(void *state, const struct iovec *parts, int count, size_t *n, bool wait, CCDeadline deadline);
    int (*write)(void *state, const struct iovec *parts, int count, size_t *n, bool wait, CCDeadline deadline);
    int (*await)(void *state, bool drained, CCDeadline deadline); /* as cc_conn_await */
    int (*shutdown)(void *state, bool read, bool write) CC__ZERO;
    int (*alive)(void *state) CC__ZERO;
    int (*name)(void *state, bool peer, CCAddr *addr) CC__ZERO;
    int (*fd)(void *state) CC__ZERO; /* as cc_conn_fd */
    /* Called once, by cc_close or cc_abort, perhaps during calls of others: their waits must end with EBADF. */
    void (*close)(void *state, bool abort);
    /* Called once, when the last of these calls has returned. */
    void (*free)(void *state) CC__ZERO;
    /* Writes up to `count` bytes out of a pipe, as cc_fd_splice does. cc_copy asks for it with count == 0 first: EINVAL
     * means that bytes have to go through `write`. */
    int (*splice)(void *state, int pipe, size_t count, size_t *n, CCDeadline deadline) CC__ZERO;
    uint64_t reserved[3] CC__ZERO; /* 0; see cc_base.h */
} CCConnOps;

/* Creates a connection with these operations. ops must stay valid. EINVAL, ENOMEM. Any context; does not switch. */
CC_API CC_MUST_CHECK int cc_conn_create(CCConn **conn, const CCConnOps *ops, void *state);
/* Its state; NULL if it has other operations, or for NULL. Any context; does not switch. */
CC_API void *cc_conn_state(CCConn *conn, const CCConnOps *ops);

/* A layer wraps one connection in another. Each function replaces *conn by the wrapping connection, which closes the
 * inner one; on failure *conn is unchanged, and the caller closes it. */
typedef struct CCConnLayer {
    /* Wraps a dialled connection; host: as in the string. May wait. NULL: dialling is not supported. */
    int (*dialled)(CCConn **conn, const char *host, CCDeadline deadline, void *arg) CC__ZERO;
    /* Wraps an accepted connection. Must not wait: leave a handshake to the first read or write. NULL: as above. */
    int (*accepted)(CCConn **conn, void *arg) CC__ZERO;
    void (*dropped)(void *arg) CC__ZERO; /* the listener was closed */
    void *arg CC__ZERO;
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCConnLayer;

#define CC_CONN_LAYERS_MAX 16

/* Registers a layer: from now on "NAME://HOST:PORT" means TCP with that layer for cc_listen and cc_dial; `dropped` is
 * not used. name: at most 15 letters and digits. EEXIST: the name is taken; layers cannot be removed. ENOSPC. EINVAL.
 * Any context; does not switch. */
CC_API int cc_conn_layer(const char *name, const CCConnLayer *layer);
/* Applies the layer to the connections that this listener accepts. Call it once, before the first accept. EINVAL;
 * EEXIST: it already has one. Any context; does not switch. */
CC_API int cc_listener_layer(CCListener *listener, const CCConnLayer *layer);

/* ---- Unix sockets ---- */

#define CC_UNIX_FDS_MAX 253

/* Sends `size` bytes, at least 1, and with them `count` descriptors, at most CC_UNIX_FDS_MAX, which stay open in the
 * sender. EINVAL; EBADF; EOPNOTSUPP: not a Unix socket. Switches. */
CC_API CC_MUST_CHECK int cc_unix_send_fds(CCConn *conn, const int *fds, size_t count, const void *bytes, size_t size);
/* Receives bytes as cc_read does, and the descriptors sent with them. *count: on entry the capacity of `fds`, on return
 * the number of descriptors, each close-on-exec and owned by the caller. EMSGSIZE: more descriptors than fit; all are
 * closed, and the bytes are lost. EMFILE: the same, because the process has too many open descriptors. Switches. */
CC_API CC_MUST_CHECK int cc_unix_recv_fds(CCConn *conn, int *fds, size_t *count, void *buffer, size_t size, size_t *n);

/* The credentials of the peer at the time of connect(2) or listen(2). */
typedef struct CCCredentials {
    int64_t pid; /* 0: not visible from here */
    uint32_t uid, gid;
    uint64_t reserved[2];
} CCCredentials;
CC_API int cc_unix_credentials(CCConn *conn, CCCredentials *who);

/* ---- servers ---- */

/* The handler of one connection, called on its own fiber. The connection is closed when it returns, unless the handler
 * has closed it. Returns 0, or an errno value for a failure; ECANCELED of a cancelled handler is not a failure. */
typedef int (*CCConnFn)(CCConn *conn, void *arg);

typedef struct CCServeOptions {
    unsigned max_conns CC__ZERO;  /* concurrent connections; accepting stops at the limit; default: no limit */
    uint64_t grace_ms CC__ZERO;   /* how long handlers may continue after the server is cancelled; default: 0 */
    unsigned backoff_ms CC__ZERO; /* the longest pause when out of descriptors or memory; default: 1000 */
    /* Called for each failed handler, on its fiber, before its connection is closed; code: what it returned,
     * ENOTRECOVERABLE after a panic. Default: failures are counted, panics are also written to stderr. */
    void (*failed)(CCConn *conn, int code, void *arg) CC__ZERO;
    /* When the server ends, handlers are cancelled at once, and grace_ms limits how long their shields hold. So a
     * handler that waits for its next request ends, and one that answers a request inside a shield continues:
     *
     *   while (cc_reader_line(&in, &line, &n) == 0) CC_SHIELD { answer(&out, line); }
     *
     * Inside the shield cc_cancel_reason returns 0 as soon as there will be no next request. */
    bool grace_for_shields CC__ZERO;
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCServeOptions;

/* Accepts connections and calls fn(conn, arg) for each, on its own fiber. Starts a fiber in the nursery to do so, and
 * returns; with nursery NULL the caller accepts, and returns when the server has ended. options: may be NULL.
 *
 * The server runs until it is cancelled, which is a success, or the listener is closed; another error of accept(2)
 * fails the nursery. A shortage of descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM) is not such an error: it is
 * reported on stderr, once, and accepting pauses, with increasing back-off, until a handler has ended. After the
 * longest pause pending connections are accepted by means of a reserved descriptor and aborted, so that their peers do
 * not wait, unless another thread is faster and takes that descriptor. A handler that fails or panics does not end the
 * server.
 *
 * When it ends, it stops listening. Running handlers get grace_ms, then they are cancelled; the server has ended when
 * all of them have. (To end those that wait for a next request at once, see grace_for_shields.) Handlers run in their
 * own scope and do not inherit deadlines and values of the surrounding scopes. EINVAL; ENOMEM. Any context; does not
 * switch, except with nursery NULL. */
CC_API CC_MUST_CHECK int cc_serve(CCNursery *nursery, CCListener *listener, CCConnFn fn, void *arg,
                                  const CCServeOptions *options);

/* Statistics of the servers of a listener. */
typedef struct CCServeStats {
    uint64_t accepted;  /* connections passed to a handler */
    uint64_t open;      /* handlers running now */
    uint64_t most_open; /* the maximum of `open` */
    uint64_t failed;    /* failed handlers */
    uint64_t panicked;  /* failed handlers that panicked */
    uint64_t pauses;    /* for lack of descriptors or memory */
    uint64_t shed;      /* connections aborted for the same reason */
    uint64_t cancelled; /* handlers still running when the grace period ended */
    uint64_t reserved[4];
} CCServeStats;
CC_API int cc_serve_stats(CCListener *listener, CCServeStats *stats);

/* ---- datagrams ---- */

typedef struct CCUdp CCUdp;

typedef struct CCUdpOptions {
    bool reuseport CC__ZERO; /* several sockets of the user may have the port. Not with port 0, or a dial without
                                `local`: the system may choose a port that another such socket has */
    bool v6only CC__ZERO;
    bool gro CC__ZERO; /* the system may coalesce datagrams of one peer: see CCDatagram.segment */
    unsigned send_buffer CC__ZERO;
    unsigned receive_buffer CC__ZERO;
    CCAddr local CC__ZERO;         /* cc_udp_dial */
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCUdpOptions;

/* A datagram, or several consecutive ones of the same length. */
typedef struct CCDatagram {
    void *bytes;
    size_t size;    /* to send: the number of bytes; to receive: the size of the buffer */
    size_t length;  /* received: the length of the datagram; if more than `size`, the rest is lost */
    size_t segment; /* not 0: `bytes` holds several messages of that length, the last one may be shorter. Sent so by
                       the system where it can (GSO), else one by one; received so only with CCUdpOptions.gro */
    CCAddr addr;    /* to; from. To send over a socket that has been dialled: {0} */
    uint64_t reserved[2];
} CCDatagram;

/* cc_udp_bind: a socket bound to a local address: "udp://[::]:53", "udp://127.0.0.1:0". cc_udp_dial: a socket connected
 * to one peer, whose errors it reports. Errors as cc_listen and cc_dial. Any context; switches for names only. */
CC_API CC_MUST_CHECK int cc_udp_bind(CCUdp **udp, const char *where, const CCUdpOptions *options);
CC_API CC_MUST_CHECK int cc_udp_dial(CCUdp **udp, const char *where, const CCUdpOptions *options);
/* Receives the datagrams that are available, at least one and at most `count`; with count 0 none, at once.
 * ECONNREFUSED: the peer of a dialled socket has no receiver on its port. Switches. */
CC_API CC_MUST_CHECK int cc_udp_recv(CCUdp *udp, CCDatagram *list, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_udp_recv_try(CCUdp *udp, CCDatagram *list, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_udp_recv_until(CCUdp *udp, CCDatagram *list, size_t count, size_t *n, CCDeadline deadline);
/* Sends all datagrams in order. n: may be NULL; how many were sent, also after an error, which then belongs to the next
 * one. If that entry holds several datagrams (segment), some of them may have been sent. EMSGSIZE: too long.
 * Switches. */
CC_API CC_MUST_CHECK int cc_udp_send(CCUdp *udp, const CCDatagram *list, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_udp_send_try(CCUdp *udp, const CCDatagram *list, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_udp_send_until(CCUdp *udp, const CCDatagram *list, size_t count, size_t *n,
                                           CCDeadline deadline);
/* The local address. The descriptor, still owned by the library; -1 for NULL. Any context; does not switch. */
CC_API int cc_udp_addr(CCUdp *udp, CCAddr *addr);
CC_API int cc_udp_fd(CCUdp *udp);
/* Closes and frees it; waits in progress return EBADF. NULL is allowed. Any context; does not switch. */
CC_API void cc_udp_close(CCUdp *udp);

CC_END_DECLS

#endif
