/* http_server.c - a tiny HTTP/1.0 responder: http_server WHERE, as in http_server tcp://:8080; then try curl.
 *
 * GET and HEAD of / and of /bytes/N. Requests have limits: a line's length, the number of lines, and the time that all
 * of them may take. Without arguments it sends itself a few requests, valid and invalid.
 */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 4096, HEADERS = 64, REQUEST_MS = 10000, WRITE_MS = 30000 };

static int respond(CCWriter *out, int status, const char *reason, uint64_t length) {
    return cc_writer_print(out,
                           "HTTP/1.0 %d %s\r\nContent-Length: %llu\r\nContent-Type: text/plain\r\n"
                           "Connection: close\r\n\r\n",
                           status, reason, (unsigned long long)length);
}

static int respond_text(CCWriter *out, int status, const char *text, bool head) {
    int error = respond(out, status, text, strlen(text) + 1);
    return error != 0 || head ? error : cc_writer_print(out, "%s\n", text);
}

static int respond_bytes(CCWriter *out, const char *number, bool head) {
    static const char line[] = "All work and no play makes Jack a dull boy.\n";
    char *end;
    unsigned long long left = strtoull(number, &end, 10);
    if (*number < '0' || *number > '9' || *end != 0) return respond_text(out, 400, "Bad Request", head);
    int error = respond(out, 200, "OK", left);
    while (error == 0 && left > 0 && !head) { /* waits when the client is slow: nothing is buffered without limit */
        size_t part = left < sizeof line - 1 ? (size_t)left : sizeof line - 1;
        error = cc_writer_write(out, line, part, NULL);
        left -= part;
    }
    return error;
}

/* Reads the request line, in three parts, and skips the rest of the header. Returns 0, a status, or -errno. */
static int read_request(CCReader *in, char *method, char *path) {
    char *line, version[9];
    size_t n;
    int error = cc_reader_line(in, &line, &n);
    if (error == 0 && sscanf(line, "%7s %255s %8s", method, path, version) != 3) return 400;
    if (error == 0 && strncmp(version, "HTTP/1.", 7) != 0) return 505;
    for (int i = 0; error == 0 && (error = cc_reader_line(in, &line, &n)) == 0 && n > 0; i++)
        if (i >= HEADERS) return 431;
    return error == EMSGSIZE ? 431 : error == ETIMEDOUT ? 408 : -error;
}

static const char *reason_of(int status) {
    return status == 400 ? "Bad Request" : status == 408 ? "Request Timeout" : status == 431 ? "Too Large" : "Sorry";
}

static int handle(CCConn *conn, void *arg) {
    char method[8] = "", path[256] = "";
    CCReader in;
    CCWriter out;
    (void)arg;
    cc_conn_deadline(conn, cc_after_ms(REQUEST_MS), CC_FOREVER);
    cc_reader_init(&in, conn, LINE);
    cc_writer_init(&out, conn, 0);
    int status = read_request(&in, method, path), error = status < 0 ? -status : 0;
    bool head = strcmp(method, "HEAD") == 0;
    cc_conn_deadline(conn, CC_FOREVER, cc_after_ms(WRITE_MS));
    if (status > 0)
        error = respond_text(&out, status, reason_of(status), false);
    else if (status == 0 && strcmp(method, "GET") != 0 && !head)
        error = respond_text(&out, 501, "Not Implemented", false);
    else if (status == 0 && strcmp(path, "/") == 0)
        error = respond_text(&out, 200, "Hello.", head);
    else if (status == 0 && strncmp(path, "/bytes/", 7) == 0)
        error = respond_bytes(&out, path + 7, head);
    else if (status == 0)
        error = respond_text(&out, 404, "Not Found", head);
    if (error == 0) error = cc_writer_flush(&out);
    cc_reader_free(&in);
    cc_writer_free(&out);
    return error == ENODATA ? 0 : error;
}

/* ---- a few requests ---- */

static void ask(const CCAddr *addr, const char *what, size_t repeat, const char *request, const char *last) {
    CCConn *conn;
    CCReader in;
    char *line, status[64] = "";
    const void *body;
    size_t n, bytes = 0;
    int error = cc_dial_addr(&conn, addr, NULL, CC_FOREVER);
    for (size_t i = 0; i < repeat && error == 0; i++) error = cc_write(conn, request, strlen(request), NULL);
    if (error == 0) error = cc_write(conn, last, strlen(last), NULL);
    cc_reader_init(&in, conn, 0);
    error = cc_reader_line(&in, &line, &n);
    if (error == 0) snprintf(status, sizeof status, "%s", line);
    while (error == 0 && n > 0) error = cc_reader_line(&in, &line, &n);
    while (error == 0 && cc_reader_peek(&in, 1, &body, &n) == 0) {
        bytes += n;
        error = cc_reader_skip(&in, n);
    }
    printf("%s: %s, %zu bytes\n", what, status, bytes);
    cc_reader_free(&in);
    cc_close(conn);
}

static void *run(void *arg) {
    const char *where = arg;
    CCServeOptions options = {.max_conns = 10000, .grace_ms = 5000};
    CCListener *listener;
    CCAddr addr;
    int error = cc_listen(&listener, where != NULL ? where : "tcp://127.0.0.1:0", NULL);
    if (error != 0) return CC_ERROR(error);
    if (where != NULL) return CC_ERROR(cc_serve(NULL, listener, handle, NULL, &options));
    cc_listener_addr(listener, &addr);
    CC_NURSERY(servers) {
        if (cc_serve(servers, listener, handle, NULL, &options) != 0) break;
        ask(&addr, "GET /", 1, "GET / HTTP/1.0\r\n", "\r\n");
        ask(&addr, "GET /bytes/1000000", 1, "GET /bytes/1000000 HTTP/1.0\r\n", "Host: here\r\n\r\n");
        ask(&addr, "HEAD /bytes/1000000", 1, "HEAD /bytes/1000000 HTTP/1.0\r\n", "\r\n");
        ask(&addr, "GET /nothing", 1, "GET /nothing HTTP/1.1\n", "\n");
        ask(&addr, "garbage", 1, "garbage\r\n", "\r\n");
        ask(&addr, "a POST", 1, "POST / HTTP/1.0\r\n", "\r\n");
        ask(&addr, "an endless line", LINE / 4, "xxxx", "");
        cc_nursery_cancel(servers);
    }
    cc_listener_close(listener);
    return NULL;
}

int main(int argc, char **argv) {
    void *result = NULL;
    int error = cc_run(run, argc > 1 ? argv[1] : NULL, &result);
    if (error == 0) error = (int)(intptr_t)result;
    if (error != 0) fprintf(stderr, "http_server: %s\n", strerror(error));
    return error != 0;
}
