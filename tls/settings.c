/* settings.c - certificates, authorities, protocols: one SSL_CTX at a time, which a reload replaces. Connections keep
 * the one that they started with. */
#include "tls.h"

#include <ccc/cc_blocking.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For TLS 1.2: forward secrecy and authenticated encryption. TLS 1.3 has no others. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:DHE+CHACHA20"

/* ---- what belongs to one SSL_CTX ---- */

struct identity {
    X509 *cert;
    EVP_PKEY *key;
    STACK_OF(X509) * chain;
};

struct extra {
    unsigned char alpn[256]; /* as it is sent: each name behind its length */
    size_t alpn_length;
    struct identity *list; /* `cert`, then `more` */
    size_t count;
};

static int extra_index = -1;
static pthread_once_t extra_once = PTHREAD_ONCE_INIT;

static void free_identity(struct identity *id) {
    X509_free(id->cert);
    EVP_PKEY_free(id->key);
    sk_X509_pop_free(id->chain, X509_free);
    *id = (struct identity){0};
}

static void free_extra(void *parent, void *pointer, CRYPTO_EX_DATA *data, int index, long number, void *argument) {
    struct extra *e = pointer;
    (void)parent, (void)data, (void)index, (void)number, (void)argument;
    if (e == NULL) return;
    for (size_t i = 0; i < e->count; i++) free_identity(&e->list[i]);
    free(e->list);
    free(e);
}

static void make_index(void) {
    /* Fibers may still be inside when the program exits. */
    (void)OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    extra_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_extra);
}

static struct extra *extra_of(const SSL *ssl) {
    return SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), extra_index);
}

/* ---- files ---- */

/* The text of options, for sentences: a file's name, or what it is. */
static const char *name_of(const char *source) {
    return strncmp(source, "-----BEGIN", 10) == 0 ? "the PEM text" : source;
}

static BIO *open_pem(const char *source, int *error) {
    BIO *bio;
    if (strncmp(source, "-----BEGIN", 10) == 0) {
        bio = BIO_new_mem_buf(source, -1);
    } else {
        FILE *file = fopen(source, "re");
        if (file == NULL) {
            *error = cc__tls_fail(errno, "%s cannot be read: %s", source, strerror(errno));
            return NULL;
        }
        bio = BIO_new_fp(file, BIO_CLOSE);
        if (bio == NULL) (void)fclose(file);
    }
    if (bio == NULL) *error = cc__tls_fail(ENOMEM, "there is no memory for %s", name_of(source));
    return bio;
}

/* Never asks for a pass phrase. */
static int no_phrase(char *text, int size, int write, void *arg) {
    (void)text, (void)size, (void)write, (void)arg;
    return -1;
}

static int load_certs(struct identity *id, const char *source) {
    int error = 0;
    BIO *bio = open_pem(source, &error);
    if (bio == NULL) return error;
    id->cert = PEM_read_bio_X509_AUX(bio, NULL, no_phrase, NULL);
    id->chain = sk_X509_new_null();
    if (id->cert == NULL) error = cc__tls_fail(EINVAL, "there is no certificate in %s", name_of(source));
    if (id->chain == NULL) error = cc__tls_fail(ENOMEM, "there is no memory for %s", name_of(source));
    for (X509 *next; error == 0 && (next = PEM_read_bio_X509(bio, NULL, no_phrase, NULL)) != NULL;) {
        if (sk_X509_push(id->chain, next) > 0) continue;
        X509_free(next);
        error = cc__tls_fail(ENOMEM, "there is no memory for %s", name_of(source));
    }
    (void)BIO_free(bio);
    return error;
}

static int load_key(struct identity *id, const char *source) {
    int error = 0;
    BIO *bio = open_pem(source, &error);
    if (bio == NULL) return error;
    id->key = PEM_read_bio_PrivateKey(bio, NULL, no_phrase, NULL);
    (void)BIO_free(bio);
    if (id->key == NULL) return cc__tls_fail(EINVAL, "there is no key in %s, or it has a pass phrase", name_of(source));
    return 0;
}

static int load_identity(struct identity *id, const char *cert, const char *key) {
    int error = load_certs(id, cert);
    if (error == 0) error = load_key(id, key != NULL ? key : cert);
    if (error == 0 && X509_check_private_key(id->cert, id->key) != 1)
        error = cc__tls_fail(EINVAL, "the key in %s does not belong to the certificate in %s",
                             name_of(key != NULL ? key : cert), name_of(cert));
    return error;
}

/* The authorities in a file; a server tells clients their names. */
static int load_authorities(SSL_CTX *context, const char *source, bool server) {
    int error = 0, count = 0;
    BIO *bio = open_pem(source, &error);
    if (bio == NULL) return error;
    for (X509 *one; error == 0 && (one = PEM_read_bio_X509(bio, NULL, no_phrase, NULL)) != NULL; count++) {
        if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one) != 1 ||
            (server && SSL_CTX_add_client_CA(context, one) != 1))
            error = cc__tls_fail(ENOMEM, "there is no memory for %s", name_of(source));
        X509_free(one);
    }
    (void)BIO_free(bio);
    if (error == 0 && count == 0) error = cc__tls_fail(EINVAL, "there is no certificate in %s", name_of(source));
    return error;
}

/* ---- what OpenSSL asks while it computes ---- */

/* Which certificate a client gets that names a host. */
static int choose_identity(SSL *ssl, int *alert, void *arg) {
    const char *host = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    const struct extra *e = extra_of(ssl);
    (void)alert, (void)arg;
    if (host == NULL || e->count == 1) return SSL_TLSEXT_ERR_OK;
    for (size_t i = 0; i < e->count; i++) {
        const struct identity *id = &e->list[i];
        if (X509_check_host(id->cert, host, 0, 0, NULL) != 1) continue;
        if (i > 0 && SSL_use_cert_and_key(ssl, id->cert, id->key, id->chain, 1) != 1) return SSL_TLSEXT_ERR_ALERT_FATAL;
        break;
    }
    return SSL_TLSEXT_ERR_OK;
}

static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *length, const unsigned char *offered,
                           unsigned offered_length, void *arg) {
    const struct extra *e = extra_of(ssl);
    unsigned char *found = NULL;
    (void)arg;
    if (SSL_select_next_proto(&found, length, e->alpn, (unsigned)e->alpn_length, offered, offered_length) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

static int keep_session(SSL *ssl, SSL_SESSION *session) {
    CCTls *tls;
    const char *host = cc__tls_conn_host(ssl, &tls);
    if (host == NULL || SSL_SESSION_is_resumable(session) != 1) return 0;
    cc__tls_keep_session(tls, ssl, host, session);
    return 1;
}

/* ---- a context ---- */

static int parse_protocols(struct extra *e, const char *list) {
    for (const char *at = list;;) {
        size_t length = strcspn(at, ",");
        if (length == 0 || length > 63 || e->alpn_length + 1 + length > sizeof e->alpn)
            return cc__tls_fail(EINVAL, "\"%s\" is no list of application protocols", list);
        e->alpn[e->alpn_length++] = (unsigned char)length;
        memcpy(e->alpn + e->alpn_length, at, length);
        e->alpn_length += length;
        if (at[length] == 0) return 0;
        at += length + 1;
    }
}

static int set_protocols(SSL_CTX *context, struct extra *e, const char *list, bool server) {
    int error = parse_protocols(e, list);
    if (error != 0) return error;
    if (server)
        SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    else if (SSL_CTX_set_alpn_protos(context, e->alpn, (unsigned)e->alpn_length) != 0)
        return cc__tls_fail(ENOMEM, "there is no memory for application protocols");
    return 0;
}

static int set_identities(SSL_CTX *context, struct extra *e, const CCTlsOptions *o) {
    if (o->cert == NULL) return 0;
    e->list = calloc(o->more_count + 1, sizeof *e->list);
    if (e->list == NULL) return cc__tls_fail(ENOMEM, "there is no memory for certificates");
    int error = 0;
    for (size_t i = 0; i <= o->more_count && error == 0; i++) {
        e->count = i + 1;
        error =
            load_identity(&e->list[i], i == 0 ? o->cert : o->more[i - 1].cert, i == 0 ? o->key : o->more[i - 1].key);
    }
    if (error != 0) return error;
    const struct identity *first = &e->list[0];
    if (SSL_CTX_use_cert_and_key(context, first->cert, first->key, first->chain, 1) == 1) return 0;
    const char *words = ERR_reason_error_string(ERR_peek_error());
    return cc__tls_fail(EINVAL, "the certificate in %s cannot be used: %s", name_of(o->cert), words);
}

static int set_peers(SSL_CTX *context, const CCTlsOptions *o, CCTlsVerify verify, bool server) {
    static const unsigned char id[] = "ccc_tls";
    int error = 0, mode = SSL_VERIFY_NONE;
    if (verify == CC_TLS_VERIFY_ASKED) mode = SSL_VERIFY_PEER;
    if (verify == CC_TLS_VERIFY_PEER) mode = SSL_VERIFY_PEER | (server ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
    SSL_CTX_set_verify(context, mode, NULL);
    if (o->ca != NULL)
        error = load_authorities(context, o->ca, server);
    else if (!server && SSL_CTX_set_default_verify_paths(context) != 1)
        error = cc__tls_fail(ENOMEM, "the system's authorities cannot be used");
    if (server) (void)SSL_CTX_set_session_id_context(context, id, sizeof id - 1);
    return error;
}

static int version_of(unsigned number) {
    return number == 12 ? TLS1_2_VERSION : TLS1_3_VERSION;
}

static int set_versions(SSL_CTX *context, const CCTlsOptions *o) {
    if (SSL_CTX_set_min_proto_version(context, version_of(o->min_version != 0 ? o->min_version : 12)) != 1 ||
        (o->max_version != 0 && SSL_CTX_set_max_proto_version(context, version_of(o->max_version)) != 1))
        return cc__tls_fail(EINVAL, "OpenSSL does not have these versions of TLS");
    const char *ciphers = o->ciphers != NULL ? o->ciphers : CIPHERS;
    if (SSL_CTX_set_cipher_list(context, ciphers) != 1)
        return cc__tls_fail(EINVAL, "OpenSSL knows none of the ciphers \"%s\"", ciphers);
    if (o->ciphersuites != NULL && SSL_CTX_set_ciphersuites(context, o->ciphersuites) != 1)
        return cc__tls_fail(EINVAL, "OpenSSL does not know the cipher suites \"%s\"", o->ciphersuites);
    return 0;
}

static void set_sessions(SSL_CTX *context, const CCTlsOptions *o, bool server) {
    if (o->no_tickets) {
        (void)SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        (void)SSL_CTX_set_num_tickets(context, 0);
    } else {
        (void)SSL_CTX_set_num_tickets(context, 1); /* a client of this library keeps one */
    }
    /* The server keeps no state for a client: the ticket contains the session. */
    long mode = server || o->no_tickets ? SSL_SESS_CACHE_OFF : SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL;
    (void)SSL_CTX_set_session_cache_mode(context, mode);
    if (mode != SSL_SESS_CACHE_OFF) SSL_CTX_sess_set_new_cb(context, keep_session);
}

static int fill_context(SSL_CTX *context, struct extra *e, const CCTlsOptions *o, CCTlsVerify verify, bool server) {
    (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                           SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    /* The chain is that of the file: otherwise OpenSSL would build one in each handshake. */
    (void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN);
    if (o->ktls) (void)SSL_CTX_set_options(context, SSL_OP_ENABLE_KTLS);
    int error = set_versions(context, o);
    if (error == 0) error = set_identities(context, e, o);
    if (error == 0) error = set_peers(context, o, verify, server);
    if (error == 0 && o->alpn != NULL) error = set_protocols(context, e, o->alpn, server);
    set_sessions(context, o, server);
    if (server) (void)SSL_CTX_set_tlsext_servername_callback(context, choose_identity);
    return error;
}

struct build {
    const CCTlsOptions *options;
    bool server;
    CCTlsVerify verify;
    SSL_CTX *context;
    int error;
    char text[320]; /* the text belongs to this thread; the caller may be a fiber */
};

static void *build_context(void *arg) {
    struct build *b = arg;
    int saved = errno;
    (void)pthread_once(&extra_once, make_index);
    ERR_clear_error();
    b->context = SSL_CTX_new(b->server ? TLS_server_method() : TLS_client_method());
    struct extra *e = calloc(1, sizeof *e);
    if (b->context == NULL || e == NULL || SSL_CTX_set_ex_data(b->context, extra_index, e) != 1) {
        b->error = cc__tls_fail(ENOMEM, "there is no memory for TLS");
        free(e);
    } else {
        b->error = fill_context(b->context, e, b->options, b->verify, b->server);
    }
    if (b->error != 0) {
        SSL_CTX_free(b->context);
        b->context = NULL;
        (void)snprintf(b->text, sizeof b->text, "%s", cc_tls_error());
    }
    ERR_clear_error();
    errno = saved;
    return NULL;
}

static int check_options(const CCTlsOptions *o, bool server) {
    for (size_t i = 0; i < sizeof o->reserved / sizeof o->reserved[0]; i++)
        if (o->reserved[i] != 0) return cc__tls_fail(EINVAL, "an option is set that this version does not know");
    if (o->ktls > 1) return cc__tls_fail(EINVAL, "ktls is 0 or 1");
    if (server && o->cert == NULL) return cc__tls_fail(EINVAL, "a server needs a certificate");
    if (o->key != NULL && o->cert == NULL) return cc__tls_fail(EINVAL, "there is a key, and no certificate for it");
    if (o->more_count > 0 && (!server || o->more == NULL))
        return cc__tls_fail(EINVAL, "further certificates are for servers");
    for (size_t i = 0; i < o->more_count; i++)
        if (o->more[i].cert == NULL) return cc__tls_fail(EINVAL, "a further certificate is missing");
    if (o->verify < CC_TLS_VERIFY_DEFAULT || o->verify > CC_TLS_VERIFY_PEER ||
        (!server && o->verify == CC_TLS_VERIFY_ASKED))
        return cc__tls_fail(EINVAL, "this is no way to verify a peer");
    if (server && o->verify > CC_TLS_VERIFY_NONE && o->ca == NULL)
        return cc__tls_fail(EINVAL, "a server that asks for certificates needs to know their authorities");
    if ((o->min_version != 0 && o->min_version != 12 && o->min_version != 13) ||
        (o->max_version != 0 && o->max_version != 12 && o->max_version != 13) ||
        (o->max_version != 0 && o->max_version < o->min_version))
        return cc__tls_fail(EINVAL, "the versions are 12 and 13");
    if (o->max_handshakes > CC_SEM_MAX) return cc__tls_fail(EINVAL, "these are too many handshakes at a time");
    return 0;
}

static int build(struct build *b) {
    int error = check_options(b->options, b->server);
    if (error != 0) return error;
    b->verify = b->options->verify != CC_TLS_VERIFY_DEFAULT ? b->options->verify
                : b->server                                 ? CC_TLS_VERIFY_NONE
                                                            : CC_TLS_VERIFY_PEER;
    error = cc_blocking(build_context, b, NULL);
    if (error == EAGAIN) { /* no thread: then here */
        (void)build_context(b);
        error = 0;
    }
    if (error != 0) return cc__tls_fail(error, "the certificates were not read: %s", strerror(error));
    return b->error == 0 ? 0 : cc__tls_fail(b->error, "%s", b->text);
}

/* ---- the settings ---- */

static int create(CCTls **tls, const CCTlsOptions *options, bool server) {
    static const CCTlsOptions none;
    if (tls == NULL) return EINVAL;
    *tls = NULL;
    struct build b = {.options = options != NULL ? options : &none, .server = server};
    int error = build(&b);
    if (error != 0) return error;
    CCTls *t = calloc(1, sizeof *t);
    if (t == NULL) {
        SSL_CTX_free(b.context);
        return cc__tls_fail(ENOMEM, "there is no memory for TLS");
    }
    (void)pthread_mutex_init(&t->lock, NULL);
    t->server = server;
    t->refs = 1;
    t->context = b.context;
    t->verify = b.verify;
    t->handshake_ms = b.options->handshake_ms != 0 ? b.options->handshake_ms : HANDSHAKE_MS;
    t->handshakes = (CCSem)CC_SEM_INIT(b.options->max_handshakes != 0 ? b.options->max_handshakes : HANDSHAKES);
    *tls = t;
    return 0;
}

int cc_tls_client(CCTls **tls, const CCTlsOptions *options) {
    return create(tls, options, false);
}
int cc_tls_server(CCTls **tls, const CCTlsOptions *options) {
    return create(tls, options, true);
}

static void forget_sessions_locked(CCTls *tls) {
    for (unsigned i = 0; i < SESSIONS_KEPT; i++) {
        free(tls->sessions[i].host);
        SSL_SESSION_free(tls->sessions[i].session);
        tls->sessions[i] = (struct session){0};
    }
}

/* Tickets of the old context stay valid in the new one, unless they stand for a client certificate that was verified.
 */
static void pass_on_ticket_keys(SSL_CTX *from, SSL_CTX *to) {
    unsigned char keys[256];
    long length = SSL_CTX_set_tlsext_ticket_keys(from, NULL, 0);
    if (length <= 0 || (size_t)length > sizeof keys) return;
    if (SSL_CTX_get_tlsext_ticket_keys(from, keys, length) == 1) (void)SSL_CTX_set_tlsext_ticket_keys(to, keys, length);
    OPENSSL_cleanse(keys, sizeof keys);
}

int cc_tls_reload(CCTls *tls, const CCTlsOptions *options) {
    static const CCTlsOptions none;
    if (tls == NULL) return EINVAL;
    struct build b = {.options = options != NULL ? options : &none, .server = tls->server};
    int error = build(&b);
    if (error != 0) return error;
    (void)pthread_mutex_lock(&tls->lock);
    SSL_CTX *old = tls->context;
    if (tls->server && b.verify == CC_TLS_VERIFY_NONE && tls->verify == CC_TLS_VERIFY_NONE)
        pass_on_ticket_keys(old, b.context);
    tls->context = b.context;
    tls->verify = b.verify;
    forget_sessions_locked(tls);
    (void)pthread_mutex_unlock(&tls->lock);
    SSL_CTX_free(old);
    return 0;
}

void cc__tls_keep(CCTls *tls) {
    (void)pthread_mutex_lock(&tls->lock);
    tls->refs++;
    (void)pthread_mutex_unlock(&tls->lock);
}

void cc__tls_drop(CCTls *tls) {
    (void)pthread_mutex_lock(&tls->lock);
    bool last = --tls->refs == 0;
    (void)pthread_mutex_unlock(&tls->lock);
    if (!last) return;
    forget_sessions_locked(tls);
    SSL_CTX_free(tls->context);
    (void)pthread_mutex_destroy(&tls->lock);
    free(tls);
}

void cc_tls_free(CCTls *tls) {
    if (tls != NULL) cc__tls_drop(tls);
}

SSL *cc__tls_new_ssl(CCTls *tls, CCTlsVerify *verify) {
    (void)pthread_mutex_lock(&tls->lock);
    SSL *ssl = SSL_new(tls->context);
    *verify = tls->verify;
    (void)pthread_mutex_unlock(&tls->lock);
    return ssl;
}

/* ---- sessions of clients ---- */

static bool is_present_locked(const CCTls *tls, const SSL *ssl) {
    return SSL_get_SSL_CTX(ssl) == tls->context;
}

SSL_SESSION *cc__tls_take_session(CCTls *tls, const SSL *ssl, const char *host) {
    SSL_SESSION *found = NULL;
    (void)pthread_mutex_lock(&tls->lock);
    for (unsigned i = 0; i < SESSIONS_KEPT && found == NULL && is_present_locked(tls, ssl); i++) {
        struct session *s = &tls->sessions[i];
        if (s->host == NULL || strcmp(s->host, host) != 0) continue;
        found = s->session; /* a ticket is used once: an observer who sees it twice could link the connections */
        free(s->host);
        *s = (struct session){0};
    }
    (void)pthread_mutex_unlock(&tls->lock);
    return found;
}

/* Where the session of a host is stored: in place of its last one, in a free slot, or in place of another's. */
static struct session *place_locked(CCTls *tls, const char *host) {
    struct session *place = NULL;
    for (unsigned i = 0; i < SESSIONS_KEPT; i++) {
        struct session *s = &tls->sessions[i];
        if (s->host != NULL && strcmp(s->host, host) == 0) return s;
        if (s->host == NULL && place == NULL) place = s;
    }
    return place != NULL ? place : &tls->sessions[tls->next_session++ % SESSIONS_KEPT];
}

void cc__tls_keep_session(CCTls *tls, const SSL *ssl, const char *host, SSL_SESSION *session) {
    struct session old = {strdup(host), session};
    (void)pthread_mutex_lock(&tls->lock);
    if (old.host != NULL && is_present_locked(tls, ssl)) {
        struct session *place = place_locked(tls, host), new = old;
        old = *place;
        *place = new;
    }
    (void)pthread_mutex_unlock(&tls->lock);
    free(old.host);
    SSL_SESSION_free(old.session);
}
