/* cc_tls.h - TLS over any connection (libccc_tls, which needs OpenSSL 3).
 *
 *   CCTls *client, *server;
 *   cc_tls_client(&client, NULL);                                        the system's CAs; host names are verified
 *   cc_tls_server(&server, &(CCTlsOptions){.cert = "chain.pem", .key = "key.pem"});
 *   cc_tls_register(client, server);                                     gives cc_dial and cc_listen "tls://HOST:PORT"
 *
 *   CCConn *c;
 *   if (cc_dial(&c, "tls://example.org:443", NULL) != 0) fprintf(stderr, "%s\n", cc_tls_error());
 *
 * The result is a CCConn: every call of cc_net.h and cc_buf.h works with it, cc_serve included. Differences:
 *
 *   end of stream  *n == 0 means that the peer has sent a close notify. A stream that ends without one was truncated,
 *                  perhaps by an attacker: ECONNRESET.
 *   cc_shutdown    CC_SHUT_WRITE sends the close notify. The peer may still write, and this side may read. If there
 *                  is no room for the notify, it waits as a write does, and can end with ECANCELED: it switches. If
 *                  nobody reads this side meanwhile it returns after a second, and the next call sends the notify.
 *   cc_close       sends the close notify if that is possible without waiting. Otherwise, and after cc_abort, the peer
 *                  gets ECONNRESET.
 *   writes         n counts encrypted bytes. Bytes left unsent by ECANCELED, ETIMEDOUT or a _try form are sent by the
 *                  next call, or by cc_close as far as there is room. A read that was already waiting does not send
 *                  them; cc_write of 0 bytes does, and waits until all are sent.
 *   cc_conn_fd     is the descriptor of the underlying connection: for setsockopt(2), not for reading.
 *   errors         EKEYREJECTED: the peer's certificate is not valid. EPROTO: any other protocol error, detected here
 *                  or reported by the peer. ETIMEDOUT in a handshake: it took too long. They are sticky: every later
 *                  call returns the same one. cc_tls_error returns the reason as a sentence.
 *
 * For a dialled connection the handshake is done when the dial returns. For an accepted one the first read or write
 * makes it, on the handler's fiber, so that no client delays the others; or cc_tls_handshake. Versions are TLS 1.2 and
 * 1.3; renegotiation and compression are disabled.
 *
 * With the option `ktls` the kernel encrypts what this side sends (kTLS), if it can: the connection is TCP with a send
 * buffer of 64 KiB or more, the kernel has the module "tls" and knows the cipher, and OpenSSL was built with kTLS.
 * Otherwise everything is as without it; CCTlsInfo.ktls says which. Received bytes are decrypted by OpenSSL as ever.
 * cc_copy then moves the bytes of a file, pipe or socket without copying them into the program. Differences: a peer
 * that asks for new keys (KeyUpdate, TLS 1.3) ends the connection with EPROTO, because OpenSSL cannot change those of
 * the kernel; and what a write has left unsent (see above) the kernel sends by itself, as soon as there is room.
 *
 * Any context: a fiber parks, an OS thread blocks. A fiber never parks inside an OpenSSL call, so fibers never mix up
 * OpenSSL's per-thread state.
 */
#ifndef CCC_CC_TLS_H
#define CCC_CC_TLS_H

#include <ccc/cc_base.h>
#include <ccc/cc_net.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* ---- one side's settings ---- */

/* Certificates, CAs and protocols, shared by any number of connections. */
typedef struct CCTls CCTls;

/* A certificate chain and its key. Each is the name of a PEM file, or PEM text, which begins with "-----BEGIN". */
typedef struct CCTlsCert {
    const char *cert;
    const char *key CC__ZERO; /* default: in the same file or text as the certificate */
} CCTlsCert;

typedef enum CCTlsVerify {
    CC_TLS_VERIFY_DEFAULT = 0, /* a client: CC_TLS_VERIFY_PEER, a server: CC_TLS_VERIFY_NONE */
    CC_TLS_VERIFY_NONE = 1,    /* a client: accepts any certificate. For tests */
    CC_TLS_VERIFY_ASKED = 2,   /* a server: clients may send a certificate, which must be valid */
    CC_TLS_VERIFY_PEER = 3,    /* a valid one is required: trusted CA, not expired, for the dialled name */
} CCTlsVerify;

/* A field that is 0 or NULL means the default. Strings are copied. */
typedef struct CCTlsOptions {
    const char *cert CC__ZERO; /* as in CCTlsCert. A server needs one, a client has none by default */
    const char *key CC__ZERO;
    /* Further certificates of a server: a client that sends SNI gets the first one that matches, else `cert`. */
    const CCTlsCert *more CC__ZERO;
    size_t more_count CC__ZERO;
    const char *ca CC__ZERO;     /* trusted CAs, PEM file or text; default: those of the system */
    CCTlsVerify verify CC__ZERO; /* how the peer's certificate is verified */
    /* Application protocols (ALPN) in order of preference: "h2,http/1.1". A server rejects a client that offers only
     * others, and accepts one that offers none. */
    const char *alpn CC__ZERO;
    unsigned min_version CC__ZERO;     /* 12 or 13: TLS 1.2 (default) or 1.3 */
    unsigned max_version CC__ZERO;     /* default: the highest */
    const char *ciphers CC__ZERO;      /* of TLS 1.2, as in openssl-ciphers(1); default: forward secrecy and AEAD */
    const char *ciphersuites CC__ZERO; /* of TLS 1.3 */
    unsigned handshake_ms CC__ZERO;    /* time limit of a handshake: ETIMEDOUT; default: 10,000 */
    /* A server: the maximum number of concurrent handshakes; others queue, within handshake_ms. Clients that have sent
     * nothing yet do not count. Default: 1000. */
    unsigned max_handshakes CC__ZERO;
    bool no_tickets CC__ZERO;      /* disables session resumption */
    uint64_t ktls CC__ZERO;        /* 1: the kernel encrypts, where it can: see above */
    uint64_t reserved[5] CC__ZERO; /* 0; see cc_base.h */
} CCTlsOptions;

/* Create settings for clients (options: may be NULL) and for servers. EINVAL: invalid options, files without
 * certificates, a key that does not match its certificate; ENOENT, EACCES, …: a file cannot be read; ENOMEM; ECANCELED.
 * Any context; switches, because files are read on the blocking pool. */
CC_API CC_MUST_CHECK int cc_tls_client(CCTls **tls, const CCTlsOptions *options);
CC_API CC_MUST_CHECK int cc_tls_server(CCTls **tls, const CCTlsOptions *options);
/* Atomically replaces certificates and CAs; existing connections continue with the old ones. handshake_ms and
 * max_handshakes are kept. On failure nothing is changed. Tickets stay valid, unless client certificates are requested:
 * then all clients are verified again. Errors and contexts as above. */
CC_API CC_MUST_CHECK int cc_tls_reload(CCTls *tls, const CCTlsOptions *options);
/* Frees it, once all connections and listeners that use it are closed. NULL is allowed. Any context; does not
 * switch. */
CC_API void cc_tls_free(CCTls *tls);

/* ---- connections ---- */

/* Registers "tls://HOST:PORT" for cc_dial (client) and cc_listen (server), with these settings; either may be NULL. The
 * settings are kept forever; cc_tls_reload changes them. EEXIST: already registered. EINVAL. Any context; does not
 * switch. */
CC_API int cc_tls_register(CCTls *client, CCTls *server);
/* Makes the connections that this listener accepts TLS. Call it before the first accept. EINVAL; EEXIST. Any context;
 * does not switch. */
CC_API int cc_tls_listen(CCTls *tls, CCListener *listener);

/* Starts TLS on an existing connection: *conn is replaced by the TLS connection, which owns the old one. On an error
 * *conn is unchanged, except for the bytes already sent over it. host: for a client, the expected name or IP address;
 * NULL: only with CC_TLS_VERIFY_NONE. A client makes its handshake here, a server (host: NULL) later. EINVAL, ENOMEM;
 * those of cc_tls_handshake. Switches. */
CC_API CC_MUST_CHECK int cc_tls_over(CCTls *tls, CCConn **conn, const char *host, CCDeadline deadline);

/* Makes the handshake, if it was not made yet. EOPNOTSUPP: not a TLS connection. EKEYREJECTED, EPROTO, ECONNRESET,
 * ETIMEDOUT, …. Switches. */
CC_API CC_MUST_CHECK int cc_tls_handshake(CCConn *conn, CCDeadline deadline);

/* The negotiated parameters. */
typedef struct CCTlsInfo {
    unsigned version;              /* 12, 13; 0: no handshake yet */
    bool resumed;                  /* by a ticket of an earlier connection */
    bool verified;                 /* the peer has sent a valid certificate */
    char alpn[64];                 /* "": none */
    char cipher[64];               /* "TLS_AES_256_GCM_SHA384" */
    char host[256];                /* the name that the client has requested (SNI); "": none */
    char peer[256];                /* the subject of the peer's certificate: "CN = example.org"; "": none */
    unsigned char fingerprint[32]; /* SHA-256 of that certificate */
    uint64_t ktls;                 /* 1: the kernel encrypts what this side sends */
    uint64_t reserved[7];
} CCTlsInfo;
/* EOPNOTSUPP: not a TLS connection. Any context; switches while another call on the connection is computing. */
CC_API int cc_tls_info(CCConn *conn, CCTlsInfo *info);

/* Why the last call of this fiber or OS thread that failed because of TLS has failed, as a sentence; "": none has
 * failed. The text is valid until the next such failure. Any context; does not switch. */
CC_API const char *cc_tls_error(void);

CC_END_DECLS

#endif
