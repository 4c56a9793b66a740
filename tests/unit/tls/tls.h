/* tls.h - shared by the tests of TLS: authorities and certificates that are generated on the fly, and a server. */
#ifndef CCC_TESTS_UNIT_TLS_H
#define CCC_TESTS_UNIT_TLS_H

#include "harness.h"

#include <ccc/cc_tls.h>
#include <ccc/ccc.h>
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* OpenSSL is not compiled with the thread sanitizer. What it keeps by thread, its random numbers for one, is used by
 * one fiber after the other, which the sanitizer takes for threads without an order. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
    return "called_from_lib:libcrypto.so\ncalled_from_lib:libssl.so\n";
}

/* ---- certificates ---- */

struct made {
    X509 *cert;
    EVP_PKEY *key;
    char *cert_pem, *key_pem;
};

struct wish {
    const char *name;         /* the subject */
    const char *hosts;        /* "DNS:localhost,IP:127.0.0.1"; NULL: none */
    const struct made *by;    /* NULL: by itself */
    long from_days, for_days; /* 0, 0: from yesterday, for two days */
    bool authority;
};

static inline void add_extension(X509 *cert, X509 *issuer, int nid, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    CHECK(extension != NULL);
    CHECK_EQ(X509_add_ext(cert, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static inline char *text_of(BIO *bio) {
    char *at = NULL;
    long n = BIO_get_mem_data(bio, &at);
    char *text = calloc(1, (size_t)n + 1);
    CHECK(text != NULL);
    memcpy(text, at, (size_t)n);
    BIO_free(bio);
    return text;
}

static inline struct made make_cert(struct wish w) {
    static _Atomic long serial = 1;
    struct made m = {.cert = X509_new(), .key = EVP_EC_gen("P-256")};
    CHECK(m.cert != NULL && m.key != NULL);
    X509 *issuer = w.by != NULL ? w.by->cert : m.cert;
    if (w.for_days == 0) {
        w.from_days = -1;
        w.for_days = 2;
    }
    X509_set_version(m.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(m.cert), atomic_fetch_add(&serial, 1) + (long)getpid() * 1000);
    X509_gmtime_adj(X509_getm_notBefore(m.cert), w.from_days * 86400);
    X509_gmtime_adj(X509_getm_notAfter(m.cert), (w.from_days + w.for_days) * 86400);
    X509_set_pubkey(m.cert, m.key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(m.cert), "CN", MBSTRING_ASC, (const unsigned char *)w.name, -1, -1,
                               0);
    X509_set_issuer_name(m.cert, X509_get_subject_name(issuer));
    add_extension(m.cert, issuer, NID_basic_constraints, w.authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (w.hosts != NULL) add_extension(m.cert, issuer, NID_subject_alt_name, w.hosts);
    CHECK(X509_sign(m.cert, w.by != NULL ? w.by->key : m.key, EVP_sha256()) > 0);
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, m.cert);
    m.cert_pem = text_of(bio);
    bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, m.key, NULL, NULL, 0, NULL, NULL);
    m.key_pem = text_of(bio);
    return m;
}

static inline void free_cert(struct made *m) {
    X509_free(m->cert);
    EVP_PKEY_free(m->key);
    free(m->cert_pem);
    free(m->key_pem);
    *m = (struct made){0};
}

/* TEST_KTLS=1: the kernel can encrypt. Then it is to do so, and all connections are TCP (tests/tls/ktls.sh). A program
 * that chooses by itself defines CHOOSES_KTLS. */
static inline bool kernel_can(void) {
    const char *can = getenv("TEST_KTLS");
    return can != NULL && strcmp(can, "1") == 0;
}

/* An authority, a good certificate of localhost, and settings of both sides. */
struct world {
    struct made ca, cert;
    CCTls *client, *server;
};

static inline CCTls *client_of(const CCTlsOptions *options) {
    CCTls *tls;
    int error = cc_tls_client(&tls, options);
    if (error != 0) test_fail(__FILE__, __LINE__, "cc_tls_client: %d, %s", error, cc_tls_error());
    return tls;
}
static inline CCTls *server_of(const CCTlsOptions *options) {
    CCTls *tls;
    int error = cc_tls_server(&tls, options);
    if (error != 0) test_fail(__FILE__, __LINE__, "cc_tls_server: %d, %s", error, cc_tls_error());
    return tls;
}

/* client, server: what is to be different; ca, cert and key are filled in if they are NULL. */
static inline struct world make_world(CCTlsOptions client, CCTlsOptions server) {
    struct world w = {.ca = make_cert((struct wish){.name = "authority", .authority = true})};
    w.cert = make_cert((struct wish){.name = "localhost", .hosts = "DNS:localhost,IP:127.0.0.1", .by = &w.ca});
    if (client.ca == NULL) client.ca = w.ca.cert_pem;
    if (client.handshake_ms == 0) client.handshake_ms = 300000; /* the machine may stall for long */
    if (server.handshake_ms == 0) server.handshake_ms = 300000;
    if (server.cert == NULL) {
        server.cert = w.cert.cert_pem;
        server.key = w.cert.key_pem;
    }
#ifndef CHOOSES_KTLS
    client.ktls = server.ktls = kernel_can();
#endif
    w.client = client_of(&client);
    w.server = server_of(&server);
    return w;
}

static inline void free_world(struct world *w) {
    cc_tls_free(w->client);
    cc_tls_free(w->server);
    free_cert(&w->cert);
    free_cert(&w->ca);
}

/* ---- both ends of a connection ---- */

struct ends {
    CCConn *here, *there; /* the client, the server */
};

static inline void tcp_pair(CCListener *l, CCConn **one, CCConn **other, const CCDialOptions *options) {
    CCAddr addr;
    CHECK_EQ(cc_listener_addr(l, &addr), 0);
    CHECK_EQ(cc_dial_addr(one, &addr, options, CC_FOREVER), 0);
    CHECK_EQ(cc_accept(l, other), 0);
}

static inline struct ends plain_pair(void) {
    struct ends e;
    if (kernel_can()) {
        CCListener *l; /* less than 1 MB of buffers */
        CCDialOptions options = {.conn = {.send_buffer = 70000, .receive_buffer = 40000}};
        CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0?send_buffer=70000&receive_buffer=40000", NULL), 0);
        tcp_pair(l, &e.here, &e.there, &options);
        cc_listener_close(l);
    } else {
        CHECK_EQ(cc_socketpair(&e.here, &e.there), 0);
    }
    return e;
}

CC_TASK(shake, {
    CCConn *conn;
    int expected;
}) {
    int error = cc_tls_handshake(self->conn, cc_after_ms(60000));
    if (error != self->expected)
        test_fail(__FILE__, __LINE__, "the server's handshake: %d (%s), not %d", error, cc_tls_error(), self->expected);
    return NULL;
}

/* Both handshakes, which end with these errors; the client is only there after a 0. */
static inline void secure_pair(struct world *w, struct ends *e, const char *host, int client_error, int server_error) {
    CHECK_EQ(cc_tls_over(w->server, &e->there, NULL, CC_FOREVER), 0);
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, shake, .conn = e->there, .expected = server_error), 0);
        int error = cc_tls_over(w->client, &e->here, host, cc_after_ms(60000));
        if (error != client_error)
            test_fail(__FILE__, __LINE__, "the client's handshake: %d (%s), not %d", error, cc_tls_error(),
                      client_error);
    }
}

static inline struct ends try_pair(struct world *w, const char *host, int client_error, int server_error) {
    struct ends e = plain_pair();
    secure_pair(w, &e, host, client_error, server_error);
    return e;
}

static inline struct ends tls_pair(struct world *w) {
    return try_pair(w, "localhost", 0, 0);
}

static inline void close_pair(struct ends e) {
    cc_close(e.here);
    cc_close(e.there);
}

static inline CCTlsInfo info_of(CCConn *conn) {
    CCTlsInfo info;
    CHECK_EQ(cc_tls_info(conn, &info), 0);
    return info;
}

/* ---- bytes ---- */

static inline unsigned char byte_at(size_t i) {
    return (unsigned char)(i * 7 + i / 251);
}

CC_TASK(send_stream, {
    CCConn *c;
    size_t size, piece;
}) {
    unsigned char *bytes = malloc(self->piece);
    CHECK(bytes != NULL);
    for (size_t at = 0; at < self->size;) {
        size_t n, part = self->size - at < self->piece ? self->size - at : self->piece;
        for (size_t i = 0; i < part; i++) bytes[i] = byte_at(at + i);
        CHECK_EQ(cc_write(self->c, bytes, part, &n), 0);
        CHECK_EQ(n, part);
        at += part;
    }
    free(bytes);
    CHECK_EQ(cc_shutdown(self->c, CC_SHUT_WRITE), 0);
    return NULL;
}

CC_TASK(take_stream, {
    CCConn *c;
    size_t size, piece;
}) {
    unsigned char *bytes = malloc(self->piece);
    CHECK(bytes != NULL);
    for (size_t at = 0;;) {
        size_t n;
        CHECK_EQ(cc_read(self->c, bytes, self->piece, &n), 0);
        for (size_t i = 0; i < n; i++) CHECK_EQ(bytes[i], byte_at(at + i));
        at += n;
        if (n == 0) {
            CHECK_EQ(at, self->size);
            break;
        }
    }
    free(bytes);
    return NULL;
}

static inline void both_ways(struct ends e, size_t size, size_t write_piece, size_t read_piece) {
    CC_NURSERY(n) {
        CHECK_EQ(CC_GO_IN(n, send_stream, .c = e.here, .size = size, .piece = write_piece), 0);
        CHECK_EQ(CC_GO_IN(n, send_stream, .c = e.there, .size = size, .piece = write_piece), 0);
        CHECK_EQ(CC_GO_IN(n, take_stream, .c = e.here, .size = size, .piece = read_piece), 0);
        CHECK_EQ(CC_GO_IN(n, take_stream, .c = e.there, .size = size, .piece = read_piece), 0);
    }
}

#endif
