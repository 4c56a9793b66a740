/* cc_tls.h - TLS over any connection (libccc_tls, which needs OpenSSL 3).
 *
 *   CCTls *client, *server;
 *   cc_tls_client(&client, NULL);                                        the system's authorities, names are checked
 *   cc_tls_server(&server, &(CCTlsOptions){.cert = "chain.pem", .key = "key.pem"});
 *   cc_tls_register(client, server);                                     gives cc_dial and cc_listen "tls://HOST:PORT"
 *
 *   CCConn *c;
 *   if (cc_dial(&c, "tls://example.org:443", NULL) != 0) fprintf(stderr, "%s\n", cc_tls_error());
 *
 * The result is a CCConn: every call of cc_net.h and cc_buf.h works with it, and cc_serve does. What is different:
 *
 *   the end        *n == 0 means that the peer has said that it ends (close notify). A stream that ends without
 *                  that was cut off, by an attacker perhaps: ECONNRESET.
 *   cc_shutdown    CC_SHUT_WRITE sends the notice. The peer may go on writing, and this side reading. Where there is no
 *                  room for it, it waits as a write does, and ends with ECANCELED as that: it switches. If nobody
 *                  reads this side meanwhile it returns after a second, and the next call sends the notice.
 *   cc_close       sends it if there is room for it at once. The peer of one that was aborted, or that had no room,
 *                  gets ECONNRESET.
 *   writes         n counts bytes that were encrypted. Those that ECANCELED, ETIMEDOUT or a _try form left here go out
 *                  with the next call, or with the last one, cc_close, as far as there is room. A read that waited
 *                  already does not send them; cc_write of no bytes does, and waits until all have gone out.
 *   cc_conn_fd     is that of the connection below: for setsockopt(2), not for reading.
 *   errors         EKEYREJECTED: the peer's certificate is not good. EPROTO: all else that is wrong with what the peer
 *                  has sent, or that it has said of us. ETIMEDOUT in a handshake: it took too long. They stay: every
 *                  later call gets the same one. cc_tls_error has the reason in a sentence.
 *
 * The handshake of a connection that was dialled is over when the dial returns. That of one that was accepted is made
 * by the first call that reads or writes, on the fiber of the handler, so that no client keeps the others waiting; or
 * by cc_tls_handshake. Versions are TLS 1.2 and 1.3; renegotiation and compression are refused.
 *
 * Any context: a fiber parks, an OS thread blocks. No OpenSSL call is made while a fiber parks, so that what OpenSSL
 * keeps by thread is never another fiber's.
 */
#ifndef CCC_CC_TLS_H
#define CCC_CC_TLS_H

#include <ccc/cc_base.h>
#include <ccc/cc_net.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* ---- one side's settings ---- */

/* Certificates, authorities, protocols: those of any number of connections. */
typedef struct CCTls CCTls;

/* A certificate with those that lead to its authority, and its key. Both are the name of a PEM file, or PEM text, which
 * begins with "-----BEGIN". */
typedef struct CCTlsCert {
    const char *cert;
    const char *key CC__ZERO; /* default: it is in the same file or text as the certificate */
} CCTlsCert;

typedef enum CCTlsVerify {
    CC_TLS_VERIFY_DEFAULT = 0, /* a client: CC_TLS_VERIFY_PEER, a server: CC_TLS_VERIFY_NONE */
    CC_TLS_VERIFY_NONE = 1,    /* a client: any certificate, of anybody. For tests */
    CC_TLS_VERIFY_ASKED = 2,   /* a server: a client that has a certificate shows a good one; others need none */
    CC_TLS_VERIFY_PEER = 3,    /* a good one is needed: of a known authority, in time, for the name that was dialled */
} CCTlsVerify;

/* A field that is 0 or NULL means the default. Texts are copied. */
typedef struct CCTlsOptions {
    const char *cert CC__ZERO; /* as in CCTlsCert. A server needs one, a client has none by default */
    const char *key CC__ZERO;
    /* Further ones of a server: a client that names a host gets the first one that is good for it, else `cert`. */
    const CCTlsCert *more CC__ZERO;
    size_t more_count CC__ZERO;
    const char *ca CC__ZERO;     /* the authorities of peers, PEM file or text; default: those of the system */
    CCTlsVerify verify CC__ZERO; /* what is asked of the peer's certificate */
    /* Application protocols (ALPN) in order of preference: "h2,http/1.1". A server refuses a client that wants others,
     * and takes one that does not say. */
    const char *alpn CC__ZERO;
    unsigned min_version CC__ZERO;     /* 12 or 13: TLS 1.2, which is the default, or 1.3 */
    unsigned max_version CC__ZERO;     /* default: the highest */
    const char *ciphers CC__ZERO;      /* of TLS 1.2, as in openssl-ciphers(1); default: forward secrecy and AEAD */
    const char *ciphersuites CC__ZERO; /* of TLS 1.3 */
    unsigned handshake_ms CC__ZERO;    /* a handshake takes so long at most: ETIMEDOUT; default: 10,000 */
    /* A server: so many at a time; others wait for their turn, within handshake_ms. Clients that have sent nothing yet
     * do not count. Default: 1000. */
    unsigned max_handshakes CC__ZERO;
    bool no_tickets CC__ZERO;      /* sessions are not resumed */
    uint64_t reserved[6] CC__ZERO; /* 0; see cc_base.h */
} CCTlsOptions;

/* Settings of clients (options: may be NULL) and of servers. EINVAL: bad options, files without certificates, a key
 * that does not belong to its certificate; ENOENT, EACCES, …: a file cannot be read; ENOMEM; ECANCELED. Any context;
 * switches, as files are read on a thread of the blocking pool. */
CC_API CC_MUST_CHECK int cc_tls_client(CCTls **tls, const CCTlsOptions *options);
CC_API CC_MUST_CHECK int cc_tls_server(CCTls **tls, const CCTlsOptions *options);
/* Takes new certificates and authorities, all at once; connections that exist go on with the old ones. handshake_ms and
 * max_handshakes stay. If it fails, nothing has changed. Tickets stay good, unless client certificates are asked for:
 * then all are checked anew. Errors and contexts as above. */
CC_API CC_MUST_CHECK int cc_tls_reload(CCTls *tls, const CCTlsOptions *options);
/* Frees it, when the connections and listeners that use it are gone. NULL is allowed. Any context; does not switch. */
CC_API void cc_tls_free(CCTls *tls);

/* ---- connections ---- */

/* From now on cc_dial and cc_listen know "tls://HOST:PORT", with these settings; either may be NULL: then one of the
 * two does not. They are kept for ever; cc_tls_reload changes them. EEXIST: done before. EINVAL. Any context; does not
 * switch. */
CC_API int cc_tls_register(CCTls *client, CCTls *server);
/* The connections that this listener accepts are TLS. Before the first of them is accepted. EINVAL; EEXIST. Any
 * context; does not switch. */
CC_API int cc_tls_listen(CCTls *tls, CCListener *listener);

/* TLS over a connection that exists, which belongs to the new one from now on: *conn is replaced. On an error it is as
 * it was, but for the bytes that went over it. host: of a client, whom to expect: a name, or an IP address; NULL: only
 * with CC_TLS_VERIFY_NONE. A client makes its handshake here, a server (host: NULL) later. EINVAL, ENOMEM; those of
 * cc_tls_handshake. Switches. */
CC_API CC_MUST_CHECK int cc_tls_over(CCTls *tls, CCConn **conn, const char *host, CCDeadline deadline);

/* Makes the handshake, if it has not been made. EOPNOTSUPP: not a connection of this kind. EKEYREJECTED, EPROTO,
 * ECONNRESET, ETIMEDOUT, …. Switches. */
CC_API CC_MUST_CHECK int cc_tls_handshake(CCConn *conn, CCDeadline deadline);

/* What was agreed on. */
typedef struct CCTlsInfo {
    unsigned version;              /* 12, 13; 0: the handshake has not been made */
    bool resumed;                  /* by a ticket of an earlier connection */
    bool verified;                 /* the peer has shown a certificate, and it is good */
    char alpn[64];                 /* "": none */
    char cipher[64];               /* "TLS_AES_256_GCM_SHA384" */
    char host[256];                /* the name that the client has asked for; "": none */
    char peer[256];                /* the subject of the peer's certificate: "CN = example.org"; "": none was shown */
    unsigned char fingerprint[32]; /* SHA-256 of that certificate */
    uint64_t reserved[8];
} CCTlsInfo;
/* EOPNOTSUPP: not a connection of this kind. Any context; switches while another call of the connection computes. */
CC_API int cc_tls_info(CCConn *conn, CCTlsInfo *info);

/* Why the last call of this fiber, or OS thread, that failed because of TLS has failed: a sentence. "": none has. The
 * text stays until the next such call. Any context; does not switch. */
CC_API const char *cc_tls_error(void);

CC_END_DECLS

#endif
