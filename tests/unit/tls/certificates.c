/* certificates.c - verification: certificates that are valid, expired, of another host, of an unknown issuer; client
 * certificates; application protocols, versions, names; files. */
#include "tls.h"

#include <sys/stat.h>

static void check_text(const char *part) {
    if (strstr(cc_tls_error(), part) == NULL)
        test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", cc_tls_error(), part);
}

/* A word there and back. */
static void talk(struct ends e) {
    char text[8];
    CHECK_EQ(cc_write(e.here, "question", 8, NULL), 0);
    CHECK_EQ(cc_read_full(e.there, text, 8, NULL), 0);
    CHECK(memcmp(text, "question", 8) == 0);
    CHECK_EQ(cc_write(e.there, "answer", 6, NULL), 0);
    CHECK_EQ(cc_read_full(e.here, text, 6, NULL), 0);
    CHECK(memcmp(text, "answer", 6) == 0);
}

TEST_WORKERS(a_valid_certificate_is_accepted) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w);
    talk(e);
    CCTlsInfo client = info_of(e.here), server = info_of(e.there);
    CHECK_EQ(client.version, 13);
    CHECK(client.verified && !client.resumed && client.alpn[0] == 0);
    CHECK(strcmp(client.peer, "CN = localhost") == 0 && strcmp(client.host, "localhost") == 0);
    CHECK(strcmp(server.host, "localhost") == 0 && server.peer[0] == 0 && !server.verified);
    CHECK(strcmp(client.cipher, server.cipher) == 0 && client.cipher[0] != 0);
    unsigned char fingerprint[32];
    unsigned length = sizeof fingerprint;
    CHECK_EQ(X509_digest(w.cert.cert, EVP_sha256(), fingerprint, &length), 1);
    CHECK(memcmp(fingerprint, client.fingerprint, 32) == 0);
    close_pair(e);
    e = try_pair(&w, "127.0.0.1", 0, 0); /* an address is looked for, too, and not sent as a name */
    CHECK(info_of(e.there).host[0] == 0);
    talk(e);
    close_pair(e);
    free_world(&w);
}

/* A trailing dot says that the name is complete, and is not part of it. */
TEST(a_name_with_a_dot_at_its_end) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = try_pair(&w, "localhost.", 0, 0);
    CHECK(strcmp(info_of(e.there).host, "localhost") == 0);
    close_pair(e);
    e = plain_pair();
    CHECK_EQ(cc_tls_over(w.client, &e.here, ".", CC_FOREVER), EINVAL);
    close_pair(e);
    free_world(&w);
}

/* The client rejects this certificate, with this message. */
static void refused(struct wish wish, const char *host, const char *words) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct made unknown = make_cert((struct wish){.name = "somebody", .authority = true});
    if (wish.by == NULL && wish.authority) wish.by = &unknown;
    wish.authority = false;
    if (wish.by == NULL && wish.from_days != 0) wish.by = &w.ca;
    if (wish.by == NULL && strcmp(wish.name, "other") == 0) wish.by = &w.ca;
    struct made bad = make_cert(wish);
    CHECK_EQ(cc_tls_reload(w.server, &(CCTlsOptions){.cert = bad.cert_pem, .key = bad.key_pem}), 0);
    struct ends e = try_pair(&w, host, EKEYREJECTED, EPROTO); /* the server gets an alert */
    check_text(words);
    check_text(host);
    close_pair(e);
    free_cert(&bad);
    free_cert(&unknown);
    free_world(&w);
}

TEST(an_expired_one_is_refused) {
    refused((struct wish){.name = "localhost", .hosts = "DNS:localhost", .from_days = -10, .for_days = 5}, "localhost",
            "has expired");
}
TEST(one_of_the_future_is_refused) {
    refused((struct wish){.name = "localhost", .hosts = "DNS:localhost", .from_days = 5, .for_days = 5}, "localhost",
            "not yet valid");
}
TEST(one_of_another_host_is_refused) {
    refused((struct wish){.name = "other", .hosts = "DNS:example.org"}, "localhost", "hostname mismatch");
    refused((struct wish){.name = "other", .hosts = "DNS:example.org"}, "127.0.0.1", "IP address mismatch");
    refused((struct wish){.name = "other", .hosts = "DNS:*.example.org"}, "a.b.example.org", "hostname mismatch");
}
TEST(one_of_an_unknown_issuer_is_refused) {
    refused((struct wish){.name = "localhost", .hosts = "DNS:localhost"}, "localhost", "self-signed");
    refused((struct wish){.name = "localhost", .hosts = "DNS:localhost", .authority = true}, "localhost",
            "unable to get local issuer");
}

TEST(the_authorities_of_the_system_do_not_know_it_either) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    CHECK_EQ(cc_tls_reload(w.client, NULL), 0);
    close_pair(try_pair(&w, "localhost", EKEYREJECTED, EPROTO));
    CHECK_EQ(cc_tls_reload(w.client, &(CCTlsOptions){.verify = CC_TLS_VERIFY_NONE}), 0);
    struct ends e = tls_pair(&w); /* without verification any certificate is accepted */
    CHECK(!info_of(e.here).verified);
    close_pair(e);
    e = try_pair(&w, NULL, 0, 0);
    close_pair(e);
    free_world(&w);
}

TEST(a_refusal_says_which_side_refused) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    CHECK_EQ(cc_tls_reload(w.client, NULL), 0);
    struct ends e = plain_pair();
    char byte;
    size_t n;
    CHECK_EQ(cc_tls_over(w.server, &e.there, NULL, CC_FOREVER), 0);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, shake, .conn = e.there, .expected = EPROTO), 0);
        CHECK_EQ(cc_tls_over(w.client, &e.here, "localhost", CC_FOREVER), EKEYREJECTED);
    }
    for (int i = 0; i < 2; i++) { /* it stays */
        CHECK_EQ(cc_read(e.there, &byte, 1, &n), EPROTO);
        check_text("the client has ended the connection with the alert \"unknown ca\"");
        CHECK_EQ(cc_write(e.there, "x", 1, &n), EPROTO);
        CHECK_EQ(cc_conn_alive(e.there), EPROTO);
    }
    close_pair(e);
    free_world(&w);
}

/* ---- client certificates ---- */

TEST(client_certificates) {
    struct made ca = make_cert((struct wish){.name = "authority of clients", .authority = true});
    struct made good = make_cert((struct wish){.name = "known client", .by = &ca});
    struct made wrong = make_cert((struct wish){.name = "somebody"});
    struct made old = make_cert((struct wish){.name = "old client", .by = &ca, .from_days = -10, .for_days = 5});
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){.verify = CC_TLS_VERIFY_PEER, .ca = ca.cert_pem});
    CCTlsOptions with = {.ca = w.ca.cert_pem, .cert = good.cert_pem, .key = good.key_pem};
    CHECK_EQ(cc_tls_reload(w.client, &with), 0);
    struct ends e = tls_pair(&w);
    talk(e);
    CHECK(info_of(e.there).verified && strcmp(info_of(e.there).peer, "CN = known client") == 0);
    close_pair(e);
    e = tls_pair(&w);
    talk(e);
    CHECK(info_of(e.there).resumed && info_of(e.there).verified);
    close_pair(e);

    /* In TLS 1.3 the client completes its handshake before the server has verified the certificate: its first read
     * returns the error. */
    const struct made *bad[] = {NULL, &wrong, &old};
    const char *words[] = {"\"certificate required\"", "\"unknown ca\"", "\"certificate expired\""};
    for (int i = 0; i < 3; i++) {
        char byte;
        size_t n;
        with.cert = bad[i] != NULL ? bad[i]->cert_pem : NULL;
        with.key = bad[i] != NULL ? bad[i]->key_pem : NULL;
        CHECK_EQ(cc_tls_reload(w.client, &with), 0);
        e = try_pair(&w, "localhost", 0, EKEYREJECTED);
        CHECK_EQ(cc_read(e.here, &byte, 1, &n), EPROTO);
        check_text(words[i]);
        close_pair(e);
    }
    /* A server that only requests certificates accepts clients without one. */
    CCTlsOptions asks = {
        .cert = w.cert.cert_pem, .key = w.cert.key_pem, .verify = CC_TLS_VERIFY_ASKED, .ca = ca.cert_pem};
    CHECK_EQ(cc_tls_reload(w.server, &asks), 0);
    e = try_pair(&w, "localhost", 0, EKEYREJECTED); /* expired */
    close_pair(e);
    with.cert = with.key = NULL;
    CHECK_EQ(cc_tls_reload(w.client, &with), 0);
    e = tls_pair(&w);
    talk(e);
    CHECK(!info_of(e.there).verified);
    close_pair(e);
    /* In TLS 1.2 both sides know at once. */
    asks.verify = CC_TLS_VERIFY_PEER;
    asks.max_version = 12;
    CHECK_EQ(cc_tls_reload(w.server, &asks), 0);
    e = try_pair(&w, "localhost", EPROTO, EKEYREJECTED);
    close_pair(e);
    free_cert(&ca);
    free_cert(&good);
    free_cert(&wrong);
    free_cert(&old);
    free_world(&w);
}

/* ---- what is agreed on ---- */

TEST(application_protocols) {
    struct world w = make_world((CCTlsOptions){.alpn = "spdy,http/1.1,h2"}, (CCTlsOptions){.alpn = "h2,http/1.1"});
    struct ends e = tls_pair(&w);
    CHECK(strcmp(info_of(e.here).alpn, "h2") == 0 && strcmp(info_of(e.there).alpn, "h2") == 0); /* the server's order */
    close_pair(e);
    CCTlsOptions o = {.ca = w.ca.cert_pem, .alpn = "gopher"};
    CHECK_EQ(cc_tls_reload(w.client, &o), 0);
    close_pair(try_pair(&w, "localhost", EPROTO, EPROTO));
    check_text("no application protocol");
    o.alpn = NULL;
    CHECK_EQ(cc_tls_reload(w.client, &o), 0);
    e = tls_pair(&w);
    CHECK(info_of(e.there).alpn[0] == 0);
    close_pair(e);
    free_world(&w);
}

TEST(versions_and_ciphers) {
    struct world w =
        make_world((CCTlsOptions){.max_version = 12, .ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"}, (CCTlsOptions){0});
    struct ends e = tls_pair(&w);
    talk(e);
    CHECK_EQ(info_of(e.here).version, 12);
    CHECK(strcmp(info_of(e.here).cipher, "ECDHE-ECDSA-AES128-GCM-SHA256") == 0);
    close_pair(e);
    CHECK_EQ(
        cc_tls_reload(w.server, &(CCTlsOptions){.cert = w.cert.cert_pem, .key = w.cert.key_pem, .min_version = 13}), 0);
    close_pair(try_pair(&w, "localhost", EPROTO, EPROTO));
    check_text("protocol version");
    CHECK_EQ(
        cc_tls_reload(w.client, &(CCTlsOptions){.ca = w.ca.cert_pem, .ciphersuites = "TLS_CHACHA20_POLY1305_SHA256"}),
        0);
    e = tls_pair(&w);
    talk(e);
    CHECK(strcmp(info_of(e.there).cipher, "TLS_CHACHA20_POLY1305_SHA256") == 0);
    close_pair(e);
    free_world(&w);
}

TEST(a_server_has_several_names) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct made one = make_cert((struct wish){.name = "one", .hosts = "DNS:one.example", .by = &w.ca});
    struct made two = make_cert((struct wish){.name = "two", .hosts = "DNS:*.two.example", .by = &w.ca});
    CCTlsCert more[] = {{one.cert_pem, one.key_pem}, {two.cert_pem, two.key_pem}};
    CHECK_EQ(
        cc_tls_reload(w.server,
                      &(CCTlsOptions){.cert = w.cert.cert_pem, .key = w.cert.key_pem, .more = more, .more_count = 2}),
        0);
    const char *names[] = {"localhost", "one.example", "www.two.example"};
    const char *subjects[] = {"CN = localhost", "CN = one", "CN = two"};
    for (int i = 0; i < 3; i++) {
        struct ends e = try_pair(&w, names[i], 0, 0);
        talk(e);
        CHECK(strcmp(info_of(e.here).peer, subjects[i]) == 0);
        CHECK(strcmp(info_of(e.there).host, names[i]) == 0);
        close_pair(e);
    }
    close_pair(try_pair(&w, "three.example", EKEYREJECTED, EPROTO));
    free_cert(&one);
    free_cert(&two);
    free_world(&w);
}

/* ---- tickets ---- */

static bool resumes(struct world *w) {
    struct ends e = tls_pair(w);
    talk(e); /* the ticket comes behind the handshake */
    bool resumed = info_of(e.here).resumed;
    CHECK_EQ(info_of(e.there).resumed, resumed);
    CHECK(info_of(e.here).verified);
    close_pair(e);
    return resumed;
}

TEST(sessions_are_resumed) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    CHECK(!resumes(&w));
    for (int i = 0; i < 3; i++) CHECK(resumes(&w));
    /* Other certificates, and tickets stay valid. */
    CHECK_EQ(cc_tls_reload(w.server, &(CCTlsOptions){.cert = w.cert.cert_pem, .key = w.cert.key_pem}), 0);
    CHECK(resumes(&w));
    /* A ticket of another server is not accepted, and does no harm. */
    CCTls *first = w.server;
    w.server = server_of(&(CCTlsOptions){.cert = w.cert.cert_pem, .key = w.cert.key_pem});
    CHECK(!resumes(&w));
    CHECK(resumes(&w));
    cc_tls_free(first);
    /* A client with new settings starts without a ticket, and one that disables tickets gets none. */
    CHECK_EQ(cc_tls_reload(w.client, &(CCTlsOptions){.ca = w.ca.cert_pem}), 0);
    CHECK(!resumes(&w));
    CHECK_EQ(cc_tls_reload(w.client, &(CCTlsOptions){.ca = w.ca.cert_pem, .no_tickets = true}), 0);
    CHECK(!resumes(&w));
    CHECK(!resumes(&w));
    CHECK_EQ(cc_tls_reload(w.client, &(CCTlsOptions){.ca = w.ca.cert_pem, .max_version = 12}), 0);
    CHECK(!resumes(&w));
    CHECK(resumes(&w));
    free_world(&w);
}

TEST(tickets_of_clients_with_certificates_end_with_a_reload) {
    struct made client = make_cert((struct wish){.name = "client"});
    CCTlsOptions server = {.verify = CC_TLS_VERIFY_PEER, .ca = client.cert_pem};
    struct world w = make_world((CCTlsOptions){.cert = client.cert_pem, .key = client.key_pem}, server);
    CHECK(!resumes(&w));
    CHECK(resumes(&w));
    server.cert = w.cert.cert_pem;
    server.key = w.cert.key_pem;
    CHECK_EQ(cc_tls_reload(w.server, &server), 0);
    CHECK(!resumes(&w));
    free_cert(&client);
    free_world(&w);
}

/* A ticket stands for a certificate that the settings of its connection have accepted: new ones may not. */
TEST(a_ticket_of_old_settings_is_not_kept) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct made stranger = make_cert((struct wish){.name = "somebody", .authority = true});
    struct ends e = tls_pair(&w);
    CHECK_EQ(cc_tls_reload(w.client, &(CCTlsOptions){.ca = stranger.cert_pem}), 0);
    talk(e); /* here it comes */
    close_pair(e);
    close_pair(try_pair(&w, "localhost", EKEYREJECTED, EPROTO));
    free_cert(&stranger);
    free_world(&w);
}

/* ---- settings ---- */

TEST(files_and_texts) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct made other = make_cert((struct wish){.name = "other"});
    char both[] = "/tmp/ccc-tls-XXXXXX", text[8192];
    int fd = mkstemp(both);
    CHECK(fd >= 0);
    int length = snprintf(text, sizeof text, "%s%s", w.cert.cert_pem, w.cert.key_pem);
    CHECK_EQ(write(fd, text, (size_t)length), length);
    close(fd);
    CCTls *tls;
    CHECK_EQ(cc_tls_reload(w.server, &(CCTlsOptions){.cert = both}), 0); /* the key is in the same file */
    struct ends e = tls_pair(&w);
    talk(e);
    close_pair(e);

    const struct {
        CCTlsOptions options;
        int error;
        const char *words;
    } bad[] = {
        {{0}, EINVAL, "a server needs a certificate"},
        {{.cert = "/nonexistent.pem"}, ENOENT, "/nonexistent.pem cannot be read: No such file"},
        {{.cert = "/dev/null"}, EINVAL, "there is no certificate in /dev/null"},
        {{.cert = w.cert.cert_pem}, EINVAL, "there is no key in the PEM text"},
        {{.cert = w.cert.cert_pem, .key = other.key_pem}, EINVAL, "does not belong to the certificate"},
        {{.cert = w.cert.cert_pem, .key = "-----BEGIN nonsense"}, EINVAL, "there is no key"},
        {{.cert = both, .ca = "/dev/null"}, EINVAL, "there is no certificate in /dev/null"},
        {{.cert = both, .verify = CC_TLS_VERIFY_PEER}, EINVAL, "needs to know their authorities"},
        {{.cert = both, .verify = (CCTlsVerify)9}, EINVAL, "no way to verify"},
        {{.cert = both, .alpn = "h2,"}, EINVAL, "no list of application protocols"},
        {{.cert = both, .min_version = 11}, EINVAL, "versions are 12 and 13"},
        {{.cert = both, .min_version = 13, .max_version = 12}, EINVAL, "versions are 12 and 13"},
        {{.cert = both, .ciphers = "nonsense"}, EINVAL, "knows none of the ciphers"},
        {{.cert = both, .ciphersuites = "nonsense"}, EINVAL, "does not know the cipher suites"},
        {{.cert = both, .reserved = {1}}, EINVAL, "this version does not know"},
        {{.cert = both, .more_count = 1}, EINVAL, "further certificates"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tls = (CCTls *)1;
        CHECK_EQ(cc_tls_server(&tls, &bad[i].options), bad[i].error);
        CHECK(tls == NULL);
        check_text(bad[i].words);
        CHECK_EQ(cc_tls_reload(w.server, &bad[i].options), bad[i].error);
    }
    e = tls_pair(&w); /* nothing has changed */
    close_pair(e);
    CHECK_EQ(cc_tls_client(&tls, &(CCTlsOptions){.key = both}), EINVAL);
    CHECK_EQ(cc_tls_client(&tls, &(CCTlsOptions){.verify = CC_TLS_VERIFY_ASKED}), EINVAL);
    CHECK_EQ(cc_tls_client(NULL, NULL), EINVAL);
    CHECK_EQ(cc_tls_reload(NULL, NULL), EINVAL);
    cc_tls_free(NULL);
    unlink(both);
    free_cert(&other);
    free_world(&w);
}

TEST(bad_arguments) {
    struct world w = make_world((CCTlsOptions){0}, (CCTlsOptions){0});
    struct ends e = plain_pair();
    CCConn *before = e.here, *none = NULL;
    CCTlsInfo info;
    CCListener *l;
    CHECK_EQ(cc_tls_over(NULL, &e.here, "localhost", CC_FOREVER), EINVAL);
    CHECK_EQ(cc_tls_over(w.client, NULL, "localhost", CC_FOREVER), EINVAL);
    CHECK_EQ(cc_tls_over(w.client, &none, "localhost", CC_FOREVER), EINVAL);
    CHECK_EQ(cc_tls_over(w.client, &e.here, NULL, CC_FOREVER), EINVAL);
    check_text("host");
    CHECK_EQ(cc_tls_over(w.server, &e.here, "localhost", CC_FOREVER), EINVAL);
    CHECK(e.here == before);
    CHECK_EQ(cc_tls_handshake(e.here, CC_FOREVER), EOPNOTSUPP);
    CHECK_EQ(cc_tls_handshake(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_tls_info(e.here, &info), EOPNOTSUPP);
    CHECK_EQ(cc_tls_info(NULL, &info), EINVAL);
    CHECK_EQ(cc_tls_register(NULL, NULL), EINVAL);
    CHECK_EQ(cc_tls_register(w.server, w.client), EINVAL);
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(cc_tls_listen(w.client, l), EINVAL);
    CHECK_EQ(cc_tls_listen(w.server, NULL), EINVAL);
    CHECK_EQ(cc_tls_listen(w.server, l), 0);
    CHECK_EQ(cc_tls_listen(w.server, l), EEXIST);
    cc_listener_close(l);
    close_pair(e);
    free_world(&w);
}
