/* openssl.c - TLS by OpenSSL on fibers: a custom BIO that reads and writes by cc_fd_read and cc_fd_write. Everything
 * else of OpenSSL is used as usual, in blocking style.
 *
 *   openssl 127.0.0.1 8443 ca.pem
 */
#include "recipe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>

static BIO_METHOD *method;
static SSL_CTX *context;
static struct sockaddr_in where = {.sin_family = AF_INET};

static int bio_read(BIO *bio, char *buffer, size_t size, size_t *n) {
    int fd = (int)(intptr_t)BIO_get_data(bio), error = cc_fd_read(fd, buffer, size, n);
    if (error == 0 && *n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    errno = error; /* what SSL_ERROR_SYSCALL stands for */
    return error == 0 && *n > 0;
}

static int bio_write(BIO *bio, const char *bytes, size_t size, size_t *n) {
    int fd = (int)(intptr_t)BIO_get_data(bio), error = cc_fd_write(fd, bytes, size, n);
    errno = error;
    return error == 0;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer) {
    (void)number, (void)pointer;
    if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    return command == BIO_CTRL_FLUSH;
}

/* A BIO for a descriptor, which the caller still owns. */
static BIO *bio_of(int fd) {
    BIO *bio = BIO_new(method);
    if (bio == NULL) return NULL;
    BIO_set_data(bio, (void *)(intptr_t)fd);
    BIO_set_init(bio, 1);
    return bio;
}

static bool talk(SSL *ssl) {
    static const char request[] = "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n";
    char answer[4096] = "", rest[4096];
    size_t n = 0;
    if (SSL_connect(ssl) != 1 || SSL_write_ex(ssl, request, sizeof request - 1, &n) != 1) return false;
    if (SSL_read_ex(ssl, answer, sizeof answer - 1, &n) != 1) return false;
    while (SSL_read_ex(ssl, rest, sizeof rest, &n) == 1) {
    }
    bool ended = SSL_get_error(ssl, 0) == SSL_ERROR_ZERO_RETURN; /* by close_notify, not by a broken connection */
    SSL_shutdown(ssl);
    return ended && strncmp(answer, "HTTP/1.", 7) == 0 && strstr(answer, " 200 ") != NULL;
}

static bool fetch(int i) {
    (void)i;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || cc_fd_adopt(fd) != 0) return false;
    SSL *ssl = SSL_new(context);
    BIO *bio = bio_of(fd);
    SSL_set_bio(ssl, bio, bio);
    SSL_set1_host(ssl, "localhost");
    SSL_set_tlsext_host_name(ssl, "localhost");
    bool good = cc_fd_connect(fd, (struct sockaddr *)&where, sizeof where) == 0 && talk(ssl);
    if (!good) ERR_print_errors_fp(stderr); /* before the fiber waits again: the error queue belongs to the thread */
    SSL_free(ssl);
    cc_fd_close(fd);
    return good;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "openssl ADDRESS PORT CA_FILE\n");
        return 2;
    }
    inet_pton(AF_INET, argv[1], &where.sin_addr);
    where.sin_port = htons((uint16_t)atoi(argv[2]));
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "fiber");
    BIO_meth_set_read_ex(method, bio_read);
    BIO_meth_set_write_ex(method, bio_write);
    BIO_meth_set_ctrl(method, bio_ctrl);
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_load_verify_locations(context, argv[3], NULL) != 1) return 1;
    int status = recipe_run(fetch);
    SSL_CTX_free(context);
    BIO_meth_free(method);
    return status;
}
