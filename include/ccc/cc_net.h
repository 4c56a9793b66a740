/* cc_net.h - the network: addresses, listeners, connections, datagrams, servers.
 *
 *   CCConn *c;
 *   if (cc_dial(&c, "tcp://example.org:80", NULL) == 0) {
 *       cc_write(c, "GET / HTTP/1.0\r\n\r\n", 18, NULL);
 *       while (cc_read(c, buffer, sizeof buffer, &n) == 0 && n > 0) …
 *       cc_close(c);
 *   }
 *
 * Where to listen, to dial and to bind is said by one string:
 *
 *   tcp://HOST:PORT       HOST: an IPv4 address, an IPv6 address in brackets ([fe80::1%eth0]), or a name. To listen
 *                         it may be left out: every address of this machine, IPv4 and IPv6. Port 0, to listen: any
 *                         free one.
 *   unix:PATH, unix:@NAME a socket in the file system; one in the abstract name space
 *   udp://HOST:PORT       datagrams
 *   LAYER://HOST:PORT     tcp, with a layer on top of it that was registered by that name (cc_conn_layer): tls
 *
 * followed by ?OPTION&OPTION=VALUE…: the fields of CCListenOptions, CCDialOptions and CCConnOptions have the same
 * names, and what the string says wins. An option that is not known, or that does not apply, is EINVAL.
 *
 * Calls that wait have three forms, as in cc_fd.h: plain, _try (EAGAIN) and _until (ETIMEDOUT); the plain one ends at
 * the connection's own deadline, too. All return 0 or an errno value and leave errno as it is. None raises SIGPIPE.
 * ETIMEDOUT and ECANCELED: nothing was read, accepted or connected, and a write says how many bytes went out.
 *
 * Any context: a fiber parks, an OS thread blocks. Two fibers may use a connection at the same time, one that reads and
 * one that writes. cc_close frees it: a wait of another fiber ends with EBADF, but none may begin a call afterwards. To
 * end what another fiber does with a connection, cancel that fiber or call cc_shutdown, and close it when it has left.
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

/* The longest text of an address, with the 0 at its end. */
#define CC_ADDR_TEXT_MAX 340

/* "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]:80", "[fe80::1%eth0]:80", "[fe80::1%2]", "unix:/run/x",
 * "unix:@name". In a Unix socket's name %XX is the byte with that hexadecimal number. No names of hosts: cc_resolve.
 * EINVAL: it is none of these. ENODEV: there is no such interface. Any context; does not switch. */
CC_API int cc_addr_parse(CCAddr *addr, const char *text);
/* The text, in a form that cc_addr_parse reads: a port that is 0 is left out, a zone is a number. EINVAL: no address;
 * ENOSPC: it needs more than `size` bytes, and text is "". Any context; does not switch. */
CC_API int cc_addr_print(const CCAddr *addr, char *text, size_t size);
/* From and to the system's form. EAFNOSUPPORT: neither IP nor Unix. *length: the room in `to`, then what was used of
 * it; ENOSPC. An unnamed Unix socket has the kind CC_ADDR_UNIX and length 0. Any context; does not switch. */
CC_API int cc_addr_from_sockaddr(CCAddr *addr, const struct sockaddr *from, CCSockLen length);
CC_API int cc_addr_to_sockaddr(const CCAddr *addr, struct sockaddr *to, CCSockLen *length);
/* Less than 0, 0, more than 0: an order of all addresses, by kind, bytes, zone and port. Any context; does not
 * switch. */
CC_API int cc_addr_compare(const CCAddr *a, const CCAddr *b);

/* ---- listen and dial ---- */

typedef struct CCListener CCListener;
typedef struct CCConn CCConn;

/* Of TCP connections. A field that is 0 means the default. */
typedef struct CCConnOptions {
    bool delay CC__ZERO;               /* small writes may wait for others (Nagle); default: no */
    unsigned keepalive CC__ZERO;       /* seconds of silence after which the peer is probed; default: never */
    unsigned user_timeout_ms CC__ZERO; /* a peer that does not acknowledge bytes for so long is lost: ETIMEDOUT */
    unsigned send_buffer CC__ZERO;     /* bytes that the system may keep for each direction; default: its own */
    unsigned receive_buffer CC__ZERO;
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCConnOptions;

typedef struct CCListenOptions {
    unsigned backlog CC__ZERO; /* connections that wait to be accepted; default: as many as the system allows */
    bool reuseport CC__ZERO;   /* others may listen at the same port, and the system spreads connections */
    bool v6only CC__ZERO;      /* [::] does not mean IPv4 as well */
    bool unlink CC__ZERO;   /* unix: removes a socket without a listener that is in the way, and its own at the end */
    unsigned mode CC__ZERO; /* unix: the permissions of the file; default: by the umask */
    CCConnOptions conn CC__ZERO;   /* of the connections that are accepted */
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCListenOptions;

typedef struct CCDialOptions {
    CCAddr local CC__ZERO;         /* where the connection comes from; default: the system chooses */
    unsigned fallback_ms CC__ZERO; /* a name with several addresses: how long until the next is tried; default: 250 */
    CCConnOptions conn CC__ZERO;
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCDialOptions;

/* Listens. options: may be NULL. EINVAL; EADDRINUSE, EADDRNOTAVAIL, EACCES, EMFILE, ENOMEM, …; for a name what
 * cc_resolve returns. Any context; switches for names only. */
CC_API CC_MUST_CHECK int cc_listen(CCListener **listener, const char *where, const CCListenOptions *options);
/* The next connection. Errors as accept(2), ECONNABORTED aside: such a connection is passed over. EMFILE, ENFILE,
 * ENOBUFS, ENOMEM: it is still there; cc_serve knows what to do then. */
CC_API CC_MUST_CHECK int cc_accept(CCListener *listener, CCConn **conn);
CC_API CC_MUST_CHECK int cc_accept_try(CCListener *listener, CCConn **conn);
CC_API CC_MUST_CHECK int cc_accept_until(CCListener *listener, CCConn **conn, CCDeadline deadline);
/* Where it listens, with the port that it got. Any context; does not switch. */
CC_API int cc_listener_addr(CCListener *listener, CCAddr *addr);
/* The descriptor, which stays the library's; -1 for NULL. Any context; does not switch. */
CC_API int cc_listener_fd(CCListener *listener);
/* Closes and frees it; accepts that wait end with EBADF. NULL is allowed. Any context; does not switch. */
CC_API void cc_listener_close(CCListener *listener);

/* Connects. A name that has several addresses is tried as RFC 8305 says (happy eyeballs): IPv6 and IPv4 in turns, the
 * next one as soon as the last has failed or fallback_ms have passed; the first that answers wins and the others are
 * given up. When all fail, the error is that of the one that came farthest: ECONNREFUSED is an answer, ENETUNREACH is
 * none. options: may be NULL. EINVAL; EMFILE, ENOMEM, …; for a name what cc_resolve returns. Any context; switches. */
CC_API CC_MUST_CHECK int cc_dial(CCConn **conn, const char *where, const CCDialOptions *options);
CC_API CC_MUST_CHECK int cc_dial_until(CCConn **conn, const char *where, const CCDialOptions *options,
                                       CCDeadline deadline);
/* The same for an address that is known already. */
CC_API CC_MUST_CHECK int cc_dial_addr(CCConn **conn, const CCAddr *addr, const CCDialOptions *options,
                                      CCDeadline deadline);

/* A connection of a socket or pipe that exists already: the descriptor is the library's from now on. EBADF, ENOMEM:
 * it is not. Any context; does not switch. */
CC_API CC_MUST_CHECK int cc_conn_from_fd(CCConn **conn, int fd);
/* Two connections of Unix sockets that are connected to each other; a pipe: what is written to one end is read from
 * the other. EMFILE, ENFILE, ENOMEM. Any context; does not switch. */
CC_API CC_MUST_CHECK int cc_socketpair(CCConn **one, CCConn **other);
CC_API CC_MUST_CHECK int cc_pipe(CCConn **reader, CCConn **writer);

/* ---- bytes ---- */

/* Reads what there is, at least a byte and at most `size`. *n == 0: the peer has ended its side. ECONNRESET: it has
 * aborted the connection. EBADF: closed here. Switches; _try does not wait. */
CC_API CC_MUST_CHECK int cc_read(CCConn *conn, void *buffer, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_read_try(CCConn *conn, void *buffer, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_read_until(CCConn *conn, void *buffer, size_t size, size_t *n, CCDeadline deadline);
/* Reads `size` bytes. ENODATA: the stream ended before. n: may be NULL; how many came, also when it ends with an error:
 * then they are in the buffer. */
CC_API CC_MUST_CHECK int cc_read_full(CCConn *conn, void *buffer, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_read_full_until(CCConn *conn, void *buffer, size_t size, size_t *n, CCDeadline deadline);

/* Writes all of it, and waits while the peer does not read. n: may be NULL; how many bytes went out, also when it ends
 * with an error. EPIPE, ECONNRESET: nobody reads any more. _try writes what there is room for; EAGAIN: none. */
CC_API CC_MUST_CHECK int cc_write(CCConn *conn, const void *bytes, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_write_try(CCConn *conn, const void *bytes, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_write_until(CCConn *conn, const void *bytes, size_t size, size_t *n, CCDeadline deadline);
/* The same for several pieces of memory, IOV_MAX at most. */
CC_API CC_MUST_CHECK int cc_writev(CCConn *conn, const struct iovec *parts, int count, size_t *n);
CC_API CC_MUST_CHECK int cc_writev_try(CCConn *conn, const struct iovec *parts, int count, size_t *n);
CC_API CC_MUST_CHECK int cc_writev_until(CCConn *conn, const struct iovec *parts, int count, size_t *n,
                                         CCDeadline deadline);

typedef enum CCShut { CC_SHUT_READ = 1, CC_SHUT_WRITE = 2, CC_SHUT_BOTH = 3 } CCShut;

/* Ends one side: after CC_SHUT_WRITE the peer reads the end and may still write. ENOTCONN: the peer is gone.
 * EOPNOTSUPP: a pipe has one side. Any context; does not switch, unless the connection is one of another library that
 * has to say the end to its peer (cc_tls.h). */
CC_API int cc_shutdown(CCConn *conn, CCShut side);
/* Closes the connection and frees it; what was written is still delivered. Waits of others end with EBADF. NULL is
 * allowed. Any context; does not switch. */
CC_API void cc_close(CCConn *conn);
/* The same, at once: the peer of a TCP connection gets ECONNRESET, and what it has not read is lost. */
CC_API void cc_abort(CCConn *conn);

/* ---- about a connection ---- */

/* The deadlines of all reads and all writes that begin from now on: ETIMEDOUT; CC_FOREVER: none. An _until form ends at
 * the earlier of the two. Any context; does not switch. */
CC_API int cc_conn_deadline(CCConn *conn, CCDeadline read, CCDeadline write);
/* Whether a connection that was idle can be used again, by a look that does not wait: 0: the peer is there, as far as
 * this side knows, and has sent nothing. EAGAIN: there are bytes to read. ENODATA: the peer has ended its side; or the
 * error that it was left with. Any context; does not switch. */
CC_API CC_MUST_CHECK int cc_conn_alive(CCConn *conn);
/* The two ends, as the system knows them. ENOTCONN: the peer is gone, after a reset for one, and its name with it: who
 * wants that then asks before. EOPNOTSUPP: a pipe has none. Any context; does not switch. */
CC_API int cc_conn_local(CCConn *conn, CCAddr *addr);
CC_API int cc_conn_peer(CCConn *conn, CCAddr *addr);
/* The descriptor, for setsockopt(2) and the like; it stays the library's. -1: NULL, or there is none. Any context; does
 * not switch. */
CC_API int cc_conn_fd(CCConn *conn);

/* ---- connections of other kinds ---- */

/* Until a read may find something, which it need not; a fiber that waits so holds no buffer. drained: a read has just
 * found nothing (EAGAIN). Ends at the connection's own deadline, too. Errors as cc_read. Switches. */
CC_API CC_MUST_CHECK int cc_conn_await(CCConn *conn, bool drained, CCDeadline deadline);

/* What a connection of one's own does: an encrypted one, one that counts bytes. Each is called with the `state` of
 * cc_conn_create and returns 0 or an errno value. The deadline is the earlier one of the call and the connection. A
 * function that is NULL: EOPNOTSUPP; read, write, await and close are needed. */
typedef struct CCConnOps {
    /* As cc_read and cc_write, for several pieces of memory; *n is 0 before. wait: false for the _try forms. */
    int (*read)(void *state, const struct iovec *parts, int count, size_t *n, bool wait, CCDeadline deadline);
    int (*write)(void *state, const struct iovec *parts, int count, size_t *n, bool wait, CCDeadline deadline);
    int (*await)(void *state, bool drained, CCDeadline deadline); /* as cc_conn_await */
    int (*shutdown)(void *state, bool read, bool write) CC__ZERO;
    int (*alive)(void *state) CC__ZERO;
    int (*name)(void *state, bool peer, CCAddr *addr) CC__ZERO;
    int (*fd)(void *state) CC__ZERO; /* as cc_conn_fd */
    /* Once, by cc_close or cc_abort, perhaps while others are inside: their waits end with EBADF. */
    void (*close)(void *state, bool abort);
    /* Once, when the last of them has left. */
    void (*free)(void *state) CC__ZERO;
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCConnOps;

/* A connection of that kind, for all calls that take one. ops: stays where it is. EINVAL, ENOMEM. Any context; does not
 * switch. */
CC_API CC_MUST_CHECK int cc_conn_create(CCConn **conn, const CCConnOps *ops, void *state);
/* Its state; NULL: it is of another kind, or NULL. Any context; does not switch. */
CC_API void *cc_conn_state(CCConn *conn, const CCConnOps *ops);

/* What turns one connection into another. Each replaces *conn by the connection that the program is to have, which
 * closes the other one; if it fails, *conn is as it was, and is closed by the caller. */
typedef struct CCConnLayer {
    /* One that was dialled; host: as in the string. May wait. NULL: it cannot be dialled. */
    int (*dialled)(CCConn **conn, const char *host, CCDeadline deadline, void *arg) CC__ZERO;
    /* One that was accepted. Must not wait: that is for the first call of the one who uses it. NULL: as above. */
    int (*accepted)(CCConn **conn, void *arg) CC__ZERO;
    void (*dropped)(void *arg) CC__ZERO; /* the listener is gone */
    void *arg CC__ZERO;
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCConnLayer;

#define CC_CONN_LAYERS_MAX 16

/* From now on "NAME://HOST:PORT" means TCP with that layer, to cc_listen and cc_dial; `dropped` is not used. name: of
 * letters and digits, at most 15. EEXIST: there is one of that name, which stays for ever. ENOSPC. EINVAL. Any context;
 * does not switch. */
CC_API int cc_conn_layer(const char *name, const CCConnLayer *layer);
/* The connections that this listener accepts get the layer. To be called once, before the first of them is accepted.
 * EINVAL; EEXIST: it has one. Any context; does not switch. */
CC_API int cc_listener_layer(CCListener *listener, const CCConnLayer *layer);

/* ---- Unix sockets ---- */

#define CC_UNIX_FDS_MAX 253

/* Sends `size` bytes, at least 1, and with them `count` descriptors, at most CC_UNIX_FDS_MAX, which stay open here.
 * EINVAL; EBADF; EOPNOTSUPP: no Unix socket. Switches. */
CC_API CC_MUST_CHECK int cc_unix_send_fds(CCConn *conn, const int *fds, size_t count, const void *bytes, size_t size);
/* Receives bytes as cc_read does, and the descriptors that came with them: *count is the room in `fds`, then how many
 * there are, each close-on-exec and the caller's. EMSGSIZE: more came than there is room for; none is left open, and
 * the bytes are lost. EMFILE: the same, for want of numbers. Switches. */
CC_API CC_MUST_CHECK int cc_unix_recv_fds(CCConn *conn, int *fds, size_t *count, void *buffer, size_t size, size_t *n);

/* Who connected, or listens at the other end: as it was then. */
typedef struct CCCredentials {
    int64_t pid; /* 0: not visible from here */
    uint32_t uid, gid;
    uint64_t reserved[2];
} CCCredentials;
CC_API int cc_unix_credentials(CCConn *conn, CCCredentials *who);

/* ---- servers ---- */

/* One connection's part of a server: a fiber calls it. The connection is closed when it returns, if it has not done
 * that itself. 0, or an errno value: it has failed. */
typedef int (*CCConnFn)(CCConn *conn, void *arg);

typedef struct CCServeOptions {
    unsigned max_conns CC__ZERO;  /* at a time: no more are accepted meanwhile; default: no limit */
    uint64_t grace_ms CC__ZERO;   /* how long handlers may go on when the server is cancelled; default: not at all */
    unsigned backoff_ms CC__ZERO; /* the longest pause when there are no descriptors or no memory; default: 1000 */
    /* Told of each handler that has failed, before its connection is closed, on its fiber; code: what it returned;
     * ENOTRECOVERABLE: it has panicked. Default: failures are counted, panics are also written to stderr. */
    void (*failed)(CCConn *conn, int code, void *arg) CC__ZERO;
    /* At the end of the server handlers are cancelled at once, and grace_ms is how long their shields hold. So one that
     * waits for its next request ends, and one that answers a request behind a shield goes on:
     *
     *   while (cc_reader_line(&in, &line, &n) == 0) CC_SHIELD { answer(&out, line); }
     *
     * Behind the shield cc_cancel_reason returns 0 as soon as there will be no next request. */
    bool grace_for_shields CC__ZERO;
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCServeOptions;

/* Accepts connections and calls fn(conn, arg) for each, in a fiber of its own. Starts a fiber in the nursery for
 * that, and returns; nursery NULL: the caller does it, and returns when it is over. options: may be NULL.
 *
 * It goes on until it is cancelled, which is a success, or the listener is closed; another error of accept(2) fails the
 * nursery. Want of descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM) is none: it is told on stderr, once, and
 * accepting pauses, longer and longer, until a handler has ended. After the longest pause the connections that wait are
 * accepted with a descriptor that was kept for that, and aborted, so that their peers need not wait. A handler that
 * fails or panics does not end the server.
 *
 * At its end it stops listening. Handlers that are under way have grace_ms, then they are cancelled; it ends when all
 * of them have. (Those that wait for a next request need not: grace_for_shields.) They are in a scope of their own:
 * deadlines and values of the scopes around are not theirs. EINVAL; ENOMEM. Any context; does not switch, but for
 * nursery NULL. */
CC_API CC_MUST_CHECK int cc_serve(CCNursery *nursery, CCListener *listener, CCConnFn fn, void *arg,
                                  const CCServeOptions *options);

/* What the servers of a listener have done so far. */
typedef struct CCServeStats {
    uint64_t accepted;  /* connections that were given to a handler */
    uint64_t open;      /* handlers at present */
    uint64_t most_open; /* and at most, at a time */
    uint64_t failed;    /* handlers that have failed, */
    uint64_t panicked;  /* and those of them that have panicked */
    uint64_t pauses;    /* for want of descriptors or memory */
    uint64_t shed;      /* connections that were aborted, for the same reason */
    uint64_t cancelled; /* handlers that were left when the grace was over */
    uint64_t reserved[4];
} CCServeStats;
CC_API int cc_serve_stats(CCListener *listener, CCServeStats *stats);

/* ---- datagrams ---- */

typedef struct CCUdp CCUdp;

typedef struct CCUdpOptions {
    bool reuseport CC__ZERO;
    bool v6only CC__ZERO;
    bool gro CC__ZERO; /* datagrams of one peer may arrive joined, where the system can: see CCDatagram.segment */
    unsigned send_buffer CC__ZERO;
    unsigned receive_buffer CC__ZERO;
    CCAddr local CC__ZERO;         /* cc_udp_dial */
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCUdpOptions;

/* A message, or several of the same length in a row. */
typedef struct CCDatagram {
    void *bytes;
    size_t size;    /* to send: how many bytes; to receive: how much room there is */
    size_t length;  /* received: how many bytes it has; more than `size`: the rest is lost */
    size_t segment; /* not 0: `bytes` holds several messages of that length, the last one may be shorter. Sent so by
                       the system where it can (GSO), else one by one; received so only with CCUdpOptions.gro */
    CCAddr addr;    /* to; from. To send over a socket that has been dialled: {0} */
    uint64_t reserved[2];
} CCDatagram;

/* A socket bound to an address of this machine: "udp://[::]:53", "udp://127.0.0.1:0". One that talks to one peer only,
 * and hears of its errors. Errors as cc_listen and cc_dial. Any context; switches for names only. */
CC_API CC_MUST_CHECK int cc_udp_bind(CCUdp **udp, const char *where, const CCUdpOptions *options);
CC_API CC_MUST_CHECK int cc_udp_dial(CCUdp **udp, const char *where, const CCUdpOptions *options);
/* Receives what there is, at least one message and at most `count`. ECONNREFUSED: the peer of a dialled one has nobody
 * there. Switches. */
CC_API CC_MUST_CHECK int cc_udp_recv(CCUdp *udp, CCDatagram *list, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_udp_recv_try(CCUdp *udp, CCDatagram *list, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_udp_recv_until(CCUdp *udp, CCDatagram *list, size_t count, size_t *n, CCDeadline deadline);
/* Sends all of them, in order; n: may be NULL; how many went out, also when it ends with an error, which is the next
 * one's. If that one holds several messages (segment), some of them may have gone out. EMSGSIZE: too long. Switches. */
CC_API CC_MUST_CHECK int cc_udp_send(CCUdp *udp, const CCDatagram *list, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_udp_send_try(CCUdp *udp, const CCDatagram *list, size_t count, size_t *n);
CC_API CC_MUST_CHECK int cc_udp_send_until(CCUdp *udp, const CCDatagram *list, size_t count, size_t *n,
                                           CCDeadline deadline);
/* Where it is bound. The descriptor, which stays the library's; -1 for NULL. Any context; does not switch. */
CC_API int cc_udp_addr(CCUdp *udp, CCAddr *addr);
CC_API int cc_udp_fd(CCUdp *udp);
/* Closes and frees it; waits end with EBADF. NULL is allowed. Any context; does not switch. */
CC_API void cc_udp_close(CCUdp *udp);

CC_END_DECLS

#endif
