/* uv.c - an echo server on libuv, one loop: uv [ignored]. Built with -luv. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <uv.h>

enum { BUFFER = 2048 };

struct connection {
    uv_tcp_t tcp;
    uv_write_t write;
    char bytes[BUFFER];
};

static void on_close(uv_handle_t *handle) {
    free(handle);
}

static void allocate(uv_handle_t *handle, size_t size, uv_buf_t *buffer) {
    struct connection *c = (struct connection *)handle;
    (void)size;
    *buffer = uv_buf_init(c->bytes, BUFFER);
}

static void on_write(uv_write_t *write, int status) {
    if (status != 0) uv_close((uv_handle_t *)write->handle, on_close);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer) {
    struct connection *c = (struct connection *)stream;
    if (n < 0) {
        uv_close((uv_handle_t *)stream, on_close);
    } else if (n > 0) {
        uv_buf_t out = uv_buf_init(buffer->base, (unsigned)n);
        if (uv_try_write(stream, &out, 1) != n) uv_write(&c->write, stream, &out, 1, on_write);
    }
}

static void on_connection(uv_stream_t *server, int status) {
    struct connection *c = malloc(sizeof *c);
    if (status != 0 || c == NULL) return;
    uv_tcp_init(uv_default_loop(), &c->tcp);
    if (uv_accept(server, (uv_stream_t *)&c->tcp) == 0) {
        uv_tcp_nodelay(&c->tcp, 1);
        uv_read_start((uv_stream_t *)&c->tcp, allocate, on_read);
    } else {
        uv_close((uv_handle_t *)&c->tcp, on_close);
    }
}

int main(void) {
    struct sockaddr_in address;
    int length = sizeof address;
    struct rlimit limit;
    uv_tcp_t server;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_init(uv_default_loop(), &server);
    uv_tcp_bind(&server, (const struct sockaddr *)&address, 0);
    if (uv_listen((uv_stream_t *)&server, 4096, on_connection) != 0) return 1;
    uv_tcp_getsockname(&server, (struct sockaddr *)&address, &length);
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
