/* load.c - a client that measures TLS servers, by OpenSSL alone:
 *
 *   load PORT CA.pem handshakes N     N connections one after the other, each with one request; no session is resumed
 *   load PORT CA.pem resumed N        the same with tickets
 *   load PORT CA.pem bytes N SIZE     N times a page of SIZE bytes over one connection
 *   load PORT CA.pem idle N           N connections with one request each; says "ready", and waits for the end of its
 *   input
 *
 * Prints the seconds that it took.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in address = {.sin_family = AF_INET};
static SSL_CTX *context;
static SSL_SESSION *ticket;
static int resume;

static void fail(const char *what) {
    perror(what);
    ERR_print_errors_fp(stderr);
    exit(1);
}

static SSL *open_connection(int fd) {
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
    SSL *ssl = SSL_new(context);
    SSL_set_fd(ssl, fd);
    SSL_set_tlsext_host_name(ssl, "localhost");
    SSL_set1_host(ssl, "localhost");
    if (resume && ticket != NULL) SSL_set_session(ssl, ticket);
    if (SSL_connect(ssl) != 1) fail("handshake");
    return ssl;
}

/* One request; the length of the page is known from the header. */
static void get(SSL *ssl, const char *path, size_t size) {
    static char buffer[256 * 1024];
    char request[256];
    int n = snprintf(request, sizeof request, "GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    size_t put, got = 0, have = 0, header = 0;
    if (SSL_write_ex(ssl, request, (size_t)n, &put) != 1) fail("write");
    while (header == 0) {
        if (SSL_read_ex(ssl, buffer + have, sizeof buffer - 1 - have, &got) != 1) fail("read");
        have += got;
        buffer[have] = 0;
        const char *end = strstr(buffer, "\r\n\r\n");
        if (end != NULL) header = (size_t)(end + 4 - buffer);
    }
    if (size == 0) {
        const char *length = strstr(buffer, "ontent-");
        if (length == NULL || strncasecmp(length, "ontent-Length:", 14) != 0) length = strstr(buffer, "ontent-Length:");
        size = length != NULL ? strtoul(length + 14, NULL, 10) : 0;
    }
    for (have -= header; have < size; have += got)
        if (SSL_read_ex(ssl, buffer, sizeof buffer, &got) != 1) fail("read");
}

static int socket_of(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) fail("socket");
    return fd;
}

static void handshakes(long n) {
    for (long i = 0; i < n; i++) {
        int fd = socket_of();
        SSL *ssl = open_connection(fd);
        get(ssl, "", 0);
        if (resume) {
            SSL_SESSION_free(ticket);
            ticket = SSL_get1_session(ssl);
        }
        SSL_shutdown(ssl);
        SSL_free(ssl);
        close(fd);
    }
}

int main(int argc, char **argv) {
    struct rlimit limit = {20000, 20000};
    if (argc < 5) return fprintf(stderr, "load PORT CA.pem handshakes|resumed|bytes|idle N [SIZE]\n"), 2;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)atoi(argv[1]));
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    if (SSL_CTX_load_verify_locations(context, argv[2], NULL) != 1) fail(argv[2]);
    long n = atol(argv[4]);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (strcmp(argv[3], "bytes") == 0) {
        SSL *ssl = open_connection(socket_of());
        for (long i = 0; i < n; i++) get(ssl, argv[5], strtoul(argv[5], NULL, 10));
    } else if (strcmp(argv[3], "idle") == 0) {
        for (long i = 0; i < n; i++) get(open_connection(socket_of()), "", 0);
    } else {
        resume = strcmp(argv[3], "resumed") == 0;
        handshakes(n);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.3f\n", (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
    if (strcmp(argv[3], "idle") == 0) {
        printf("ready\n");
        fflush(stdout);
        while (getchar() != EOF) continue;
    }
    return 0;
}
