/* https_server.c - a small HTTPS server: GET /N returns N bytes, everything else a line.
 *
 *   https_server CHAIN.pem KEY.pem [WHERE] [CLIENTS.pem]
 *
 * WHERE is "tls://[::]:8443" if it is left out. With CLIENTS.pem clients need a certificate of these authorities.
 * SIGHUP reloads the certificates, Ctrl-C shuts it down gracefully. Except for the certificates, the code is the same
 * as without TLS. */
#include <ccc/cc_tls.h>
#include <ccc/ccc.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static CCTlsOptions options = {.alpn = "http/1.1"};
static CCTls *tls;

/* The header of a request, up to its empty line. *keep: the client wants to go on. */
static int read_request(CCReader *in, char *path, size_t size, bool *keep) {
    char *line;
    size_t n;
    int error = cc_reader_line(in, &line, &n);
    if (error != 0) return error;
    char version = 0;
    char target[256];
    if (sscanf(line, "GET %255s HTTP/1.%c", target, &version) != 2) return EPROTO;
    snprintf(path, size, "%s", target);
    *keep = version == '1';
    while ((error = cc_reader_line(in, &line, &n)) == 0 && n > 0) {
        if (strcasecmp(line, "Connection: close") == 0) *keep = false;
        if (strcasecmp(line, "Connection: keep-alive") == 0) *keep = true;
    }
    return error;
}

static int answer(CCWriter *out, const char *path, bool keep) {
    static const char zeros[64 * 1024];
    char *end, text[] = "hello over TLS\n";
    unsigned long long size = strtoull(path + 1, &end, 10);
    bool counted = path[1] != 0 && *end == 0;
    if (!counted) size = sizeof text - 1;
    int error = cc_writer_print(out, "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n%s\r\n", size,
                                keep ? "" : "Connection: close\r\n");
    if (!counted) return error != 0 ? error : cc_writer_write(out, text, size, NULL);
    while (error == 0 && size > 0) {
        size_t part = size < sizeof zeros ? (size_t)size : sizeof zeros;
        error = cc_writer_write(out, zeros, part, NULL);
        size -= part;
    }
    return error;
}

/* An idle client is disconnected when the server stops; a request that has arrived is answered behind a shield, within
 * the server's grace period. */
static int serve(CCConn *conn, void *arg) {
    CCReader in;
    CCWriter out;
    CCError why;
    char path[256];
    bool keep = true;
    (void)arg;
    int error = cc_reader_init(&in, conn, 8192);
    if (error == 0) error = cc_writer_init(&out, conn, 0);
    while (error == 0 && keep) {
        error = read_request(&in, path, sizeof path, &keep);
        if (error != 0) break;
        CC_SHIELD {
            if (cc_cancel_reason(&why) == 0) keep = false; /* there is no next request */
            error = answer(&out, path, keep);
            if (error == 0) error = cc_writer_flush(&out);
        }
    }
    cc_reader_free(&in);
    cc_writer_free(&out);
    return error == ENODATA || error == ECANCELED ? 0 : error; /* neither side has more to say */
}

static void say_failure(CCConn *conn, int code, void *arg) {
    (void)conn, (void)arg;
    fprintf(stderr, "%s%s%s\n", strerror(code), cc_tls_error()[0] != 0 ? ": " : "", cc_tls_error());
}

/* SIGHUP: reload the certificates; SIGINT and SIGTERM: shut down. */
static void handle_signals(CCChan *signals) {
    CCSignal s;
    while (cc_chan_recv(signals, &s, sizeof s) == 0 && s.number == SIGHUP) {
        if (cc_tls_reload(tls, &options) == 0)
            printf("the certificates were reloaded\n");
        else
            fprintf(stderr, "the certificates were not reloaded: %s\n", cc_tls_error());
    }
}

static void *run(void *arg) {
    char **argv = arg, text[CC_ADDR_TEXT_MAX];
    CCListener *listener;
    CCAddr addr;
    options.cert = argv[1];
    options.key = argv[2];
    if (argv[3] != NULL && argv[4] != NULL) {
        options.ca = argv[4];
        options.verify = CC_TLS_VERIFY_PEER;
    }
    if (cc_tls_server(&tls, &options) != 0) return fprintf(stderr, "%s\n", cc_tls_error()), "failed";
    if (cc_tls_register(NULL, tls) != 0) return "failed";
    int error = cc_listen(&listener, argv[3] != NULL ? argv[3] : "tls://[::]:8443", NULL);
    if (error != 0) return fprintf(stderr, "cannot listen: %s\n", strerror(error)), "failed";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (cc_listener_addr(listener, &addr) == 0 && cc_addr_print(&addr, text, sizeof text) == 0)
        printf("listening at %s\n", text);
    CCChan *signals = cc_chan_create(sizeof(CCSignal), 4);
    (void)cc_signal_notify(signals, (int[]){SIGHUP, SIGINT, SIGTERM}, 3);
    CC_NURSERY(nursery) {
        CCServeOptions how = {.grace_ms = 2000, .failed = say_failure, .grace_for_shields = true};
        error = cc_serve(nursery, listener, serve, NULL, &how);
        if (error == 0) handle_signals(signals);
        cc_nursery_cancel(nursery);
    }
    (void)cc_signal_stop(signals);
    cc_chan_free(signals);
    cc_listener_close(listener);
    cc_tls_free(tls);
    return NULL;
}

int main(int argc, char **argv) {
    void *failed = NULL;
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "https_server CHAIN.pem KEY.pem [WHERE] [CLIENTS.pem]\n");
        return 2;
    }
    int error = cc_run(run, argv, &failed);
    return error != 0 || failed != NULL || cc_runtime_shutdown(5000) != 0;
}
