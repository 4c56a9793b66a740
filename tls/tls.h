/* tls.h - what the files of libccc_tls share. They use the public interface of libccc, and OpenSSL.
 *
 * TLS-1  No call that can switch is made between the first and the last OpenSSL call of a step: OpenSSL keeps its
 *        errors by thread, and a fiber may continue on another one after a switch. So bytes are read and written
 *        outside of OpenSSL, which sees memory only.
 * TLS-2  The pthread locks here are held during such steps only, never while a fiber could park. */
#ifndef CCC_TLS_TLS_H
#define CCC_TLS_TLS_H

#include <ccc/cc_sync.h>
#include <ccc/cc_tls.h>
#include <openssl/ssl.h>
#include <pthread.h>

/* ---- settings ---- */

enum { SESSIONS_KEPT = 64, HANDSHAKE_MS = 10000, HANDSHAKES = 1000 };

struct CCTls {
    bool server;
    unsigned handshake_ms;
    CCSem handshakes; /* of a server: free slots for handshakes */
    pthread_mutex_t lock;
    /* lock: */
    unsigned refs; /* the owner, listeners, connections */
    SSL_CTX *context;
    CCTlsVerify verify;
    unsigned next_session; /* the next one to be replaced */
    struct session {
        char *host;
        SSL_SESSION *session;
    } sessions[SESSIONS_KEPT]; /* of a client: the last ticket of each server */
};

void cc__tls_keep(CCTls *tls);
void cc__tls_drop(CCTls *tls);
/* An SSL of the settings as they are now; *verify: what they ask of the peer. NULL: no memory. */
SSL *cc__tls_new_ssl(CCTls *tls, CCTlsVerify *verify);
/* A session to resume with the host, owned by the caller; NULL: there is none. Stores one, or frees it if it is of no
 * use. A session stands for a certificate that was accepted, so both are for an SSL of the current settings only: there
 * may have been a reload in between. */
SSL_SESSION *cc__tls_take_session(CCTls *tls, const SSL *ssl, const char *host);
void cc__tls_keep_session(CCTls *tls, const SSL *ssl, const char *host, SSL_SESSION *session);

/* ---- connections ---- */

/* The host of a connection that its SSL belongs to, and its settings. */
const char *cc__tls_conn_host(const SSL *ssl, CCTls **tls);

/* ---- errors ---- */

/* Stores the text for cc_tls_error, and returns the code. */
int cc__tls_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* OpenSSL's oldest error: an errno value and a text. Empties the queue. open: the handshake is over. host: of the peer,
 * for the text; may be NULL. */
int cc__tls_explain(const SSL *ssl, bool open, const char *host, char *text, size_t size);

#endif
