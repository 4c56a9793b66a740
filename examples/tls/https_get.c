/* https_get.c - fetches a page over HTTPS: https_get HOST:PORT[/PATH] [CA.pem [CERT.pem KEY.pem]]
 *
 * The server's certificate is verified, by the authorities of the system unless others are named. The page goes to
 * standard output; the negotiated parameters and errors to standard error. */
#include <ccc/cc_tls.h>
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int fail(const char *what, int error) {
    fprintf(stderr, "%s: %s%s%s\n", what, strerror(error), cc_tls_error()[0] != 0 ? ": " : "", cc_tls_error());
    return 1;
}

/* The header; *length: of the page, UINT64_MAX: until the end. */
static int read_header(CCReader *in, int *status, uint64_t *length) {
    char *line;
    size_t n;
    *length = UINT64_MAX;
    int error = cc_reader_line(in, &line, &n);
    if (error != 0) return error;
    if (sscanf(line, "HTTP/1.%*c %d", status) != 1) return EPROTO;
    while ((error = cc_reader_line(in, &line, &n)) == 0 && n > 0)
        if (strncasecmp(line, "Content-Length:", 15) == 0) *length = strtoull(line + 15, NULL, 10);
    return error;
}

static int fetch(CCConn *c, const char *host, const char *path) {
    CCReader in;
    char request[1024];
    int status = 0;
    uint64_t length;
    int n = snprintf(request, sizeof request, "GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host);
    int error = n < 0 || (size_t)n >= sizeof request ? EINVAL : cc_write(c, request, (size_t)n, NULL);
    if (error == 0) error = cc_reader_init(&in, c, 0);
    if (error != 0) return error;
    error = read_header(&in, &status, &length);
    while (error == 0 && length > 0) {
        const void *bytes;
        size_t have;
        error = cc_reader_peek(&in, 1, &bytes, &have);
        if (error != 0) break;
        if (have > length) have = (size_t)length;
        if (fwrite(bytes, 1, have, stdout) != have) error = EIO;
        length -= length == UINT64_MAX ? 0 : have;
        if (error == 0) error = cc_reader_skip(&in, have);
    }
    cc_reader_free(&in);
    if (error == ENODATA && length == UINT64_MAX) error = 0;
    return error == 0 && status != 200 ? EPROTO : error;
}

static void *run(void *arg) {
    char **argv = arg, where[512];
    CCTlsOptions options = {.alpn = "http/1.1", .ca = argv[2]};
    if (argv[2] != NULL && argv[3] != NULL) {
        options.cert = argv[3];
        options.key = argv[4];
    }
    char *path = strchr(argv[1], '/');
    if (path != NULL) *path++ = 0;
    CCTls *tls;
    CCConn *c;
    int error = cc_tls_client(&tls, &options);
    if (error != 0) return fail("settings", error), "failed";
    error = cc_tls_register(tls, NULL);
    if (error != 0) return fail("settings", error), "failed";
    snprintf(where, sizeof where, "tls://%s", argv[1]);
    error = cc_dial_until(&c, where, NULL, cc_after_ms(30000));
    if (error != 0) return fail(where, error), "failed";
    CCTlsInfo info;
    if (cc_tls_info(c, &info) == 0) fprintf(stderr, "TLS 1.%u, %s, %s\n", info.version - 10, info.cipher, info.peer);
    error = fetch(c, argv[1], path != NULL ? path : "");
    cc_close(c);
    cc_tls_free(tls);
    return error != 0 ? (fail(where, error), "failed") : NULL;
}

int main(int argc, char **argv) {
    void *failed = NULL;
    if (argc < 2 || argc == 4 || argc > 5) {
        fprintf(stderr, "https_get HOST:PORT[/PATH] [CA.pem [CERT.pem KEY.pem]]\n");
        return 2;
    }
    int error = cc_run(run, argv, &failed);
    return error != 0 || failed != NULL || cc_runtime_shutdown(5000) != 0;
}
