/* download.c - fetches many pages concurrently, a few at a time: download HOST:PORT PATH..., for example from
 * http_server.
 *
 * Each has a deadline, and the first failure cancels the others. Without arguments it starts a server itself. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_A_TIME = 4, PAGE_MS = 30000, PAGE_MAX = 1 << 20 };

struct page {
    const char *path;
    uint64_t bytes;
};

static struct {
    char where[300];
    CCSem slots;
} download = {.slots = CC_SEM_INIT(AT_A_TIME)};

/* Reads the head; then the body, of which only the length is kept. */
static int read_page(CCConn *conn, struct page *page) {
    CCReader in;
    char *line;
    size_t n;
    int status = 0;
    unsigned long long length = 0;
    cc_reader_init(&in, conn, 0);
    int error = cc_reader_line(&in, &line, &n);
    if (error == 0 && (sscanf(line, "HTTP/1.%*d %d", &status) != 1 || status != 200)) error = EPROTO;
    while (error == 0 && (error = cc_reader_line(&in, &line, &n)) == 0 && n > 0)
        (void)sscanf(line, "Content-Length: %llu", &length);
    if (error == 0 && length > PAGE_MAX) error = EFBIG;
    if (error == 0) error = cc_reader_skip(&in, length); /* ENODATA: the connection ended early */
    if (error == 0) page->bytes = length;
    cc_reader_free(&in);
    return error;
}

static int fetch_page(struct page *page) {
    CCConn *conn;
    char request[300];
    CCDeadline deadline = cc_after_ms(PAGE_MS);
    int error = cc_dial_until(&conn, download.where, NULL, deadline);
    if (error != 0) return error;
    cc_conn_deadline(conn, deadline, deadline);
    int size = snprintf(request, sizeof request, "GET %.250s HTTP/1.0\r\n\r\n", page->path);
    error = cc_write(conn, request, (size_t)size, NULL);
    if (error == 0) error = read_page(conn, page);
    cc_close(conn);
    return error;
}

CC_TASK(fetch, { struct page *page; }) {
    int error = cc_sem_acquire(&download.slots);
    if (error != 0) return CC_ERROR(error);
    error = fetch_page(self->page);
    cc_sem_release(&download.slots, 1);
    return error == 0 ? NULL : cc_fail(error, "%s: %s", self->page->path, strerror(error));
}

static int fetch_all(struct page *pages, size_t count) {
    int error = 0;
    uint64_t sum = 0;
    CCError why = {0};
    CCNursery *all = cc_nursery_create(NULL);
    if (all == NULL) return ENOMEM;
    for (size_t i = 0; i < count && error == 0; i++) error = CC_GO_IN(all, fetch, .page = &pages[i]);
    int failed = cc_nursery_wait(all);
    if (failed != 0 && cc_nursery_failure(all, 0, &why) == 0) printf("failed: %s\n", why.text);
    cc_nursery_free(all);
    for (size_t i = 0; i < count; i++) sum += pages[i].bytes;
    if (error == 0 && failed == 0) printf("%zu pages, %llu bytes\n", count, (unsigned long long)sum);
    return error != 0 ? error : failed;
}

/* ---- a server to fetch from: /N has N bytes, /cut ends early ---- */

static int answer(CCConn *conn, void *arg) {
    CCReader in;
    CCWriter out;
    char *line;
    size_t n;
    (void)arg;
    cc_reader_init(&in, conn, 0);
    cc_writer_init(&out, conn, 0);
    int error = cc_reader_line(&in, &line, &n);
    bool cut = error == 0 && strncmp(line, "GET /cut", 8) == 0;
    int size = cut ? 100 : error == 0 ? atoi(line + 5) : 0;
    while (error == 0 && (error = cc_reader_line(&in, &line, &n)) == 0 && n > 0) continue;
    if (error == 0) error = cc_writer_print(&out, "HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n", size);
    if (error == 0) error = cc_writer_print(&out, "%*s", cut ? size / 2 : size, "");
    if (error == 0) error = cc_writer_flush(&out);
    cc_reader_free(&in);
    cc_writer_free(&out);
    return error;
}

static int show(void) {
    struct page pages[20];
    char paths[20][16];
    CCListener *listener;
    CCAddr addr;
    int error = cc_listen(&listener, "tcp://127.0.0.1:0", NULL);
    if (error != 0) return error;
    cc_listener_addr(listener, &addr);
    strcpy(download.where, "tcp://");
    cc_addr_print(&addr, download.where + 6, sizeof download.where - 6);
    for (int i = 0; i < 20; i++) {
        snprintf(paths[i], sizeof paths[i], "/%d", 1000 * (i + 1));
        pages[i] = (struct page){paths[i], 0};
    }
    CC_NURSERY(servers) {
        if ((error = cc_serve(servers, listener, answer, NULL, NULL)) == 0) {
            error = fetch_all(pages, 20);
            pages[7] = (struct page){"/cut", 0};
            (void)fetch_all(pages, 8);
        }
        cc_nursery_cancel(servers);
    }
    cc_listener_close(listener);
    return error;
}

struct arguments {
    int count;
    char **list;
};

static void *run(void *arg) {
    const struct arguments *a = arg;
    if (a->count < 3) return CC_ERROR(show());
    size_t count = (size_t)a->count - 2;
    struct page *pages = calloc(count, sizeof *pages);
    if (pages == NULL) return CC_ERROR(ENOMEM);
    for (size_t i = 0; i < count; i++) pages[i].path = a->list[i + 2];
    snprintf(download.where, sizeof download.where, "tcp://%s", a->list[1]);
    int error = fetch_all(pages, count);
    free(pages);
    return CC_ERROR(error);
}

int main(int argc, char **argv) {
    void *result = NULL;
    int error = cc_run(run, &(struct arguments){argc, argv}, &result);
    if (error == 0) error = (int)(intptr_t)result;
    if (error != 0) fprintf(stderr, "download: %s\n", strerror(error));
    return error != 0;
}
