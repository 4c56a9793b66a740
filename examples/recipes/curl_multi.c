/* curl_multi.c - curl's multi interface on fibers: one fiber drives all transfers, the others wait for theirs.
 *
 * The driver owns the multi handle, so nothing in curl is shared. curl says which sockets it waits for and until when
 * (CURLMOPT_SOCKETFUNCTION, CURLMOPT_TIMERFUNCTION), and cc_poll waits for them.
 *
 *   curl_multi http://127.0.0.1:8080/
 */
#include "recipe.h"

#include <curl/curl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SOCKETS_MAX = 1024 };

struct transfer {
    CURL *handle;
    CURLcode code;
    CCEvent done;
};

static const char *where;
static CCChan *transfers; /* of struct transfer *, to the driver */
static int wakes;         /* an eventfd: there is one, or the channel is closed */

static struct pollfd waits[SOCKETS_MAX] = {{.events = POLLIN}}; /* the first is `wakes` */
static size_t wait_count = 1;
static CCDeadline timeout = {0};

/* curl: wait for this socket; what == CURL_POLL_REMOVE: no more. */
static int on_socket(CURL *handle, curl_socket_t s, int what, void *arg, void *place) {
    size_t i = 1;
    (void)handle, (void)arg, (void)place;
    while (i < wait_count && waits[i].fd != s) i++;
    if (what == CURL_POLL_REMOVE) {
        if (i < wait_count) waits[i] = waits[--wait_count];
        return 0;
    }
    if (i == SOCKETS_MAX) return -1;
    if (i == wait_count) wait_count++;
    waits[i] = (struct pollfd){
        .fd = s, .events = (short)((what & CURL_POLL_IN ? POLLIN : 0) | (what & CURL_POLL_OUT ? POLLOUT : 0))};
    return 0;
}

static int on_timer(CURLM *multi, long ms, void *arg) {
    (void)multi, (void)arg;
    timeout = ms < 0 ? CC_FOREVER : ms == 0 ? CC_PASSED : cc_after_ms((uint64_t)ms);
    return 0;
}

static void finish(CURLM *multi) {
    int left = 0;
    CURLMsg *m;
    while ((m = curl_multi_info_read(multi, &left)) != NULL) {
        struct transfer *t = NULL;
        CURL *handle = m->easy_handle;
        CURLcode code = m->data.result;
        if (m->msg != CURLMSG_DONE) continue;
        curl_easy_getinfo(handle, CURLINFO_PRIVATE, (char **)&t);
        curl_multi_remove_handle(multi, handle);
        t->code = code;
        cc_event_set(&t->done);
    }
}

/* Receives what was sent; false: the channel is closed. */
static bool take(CURLM *multi) {
    struct transfer *t;
    eventfd_t ignored;
    (void)eventfd_read(wakes, &ignored);
    for (;;) {
        int error = cc_chan_recv_try(transfers, &t, sizeof t);
        if (error != 0) return error == EAGAIN;
        curl_multi_add_handle(multi, t->handle);
    }
}

static void *drive(void *arg) {
    CURLM *multi = curl_multi_init();
    int running = 0;
    bool open = true;
    (void)arg;
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    waits[0].fd = wakes;
    while (open) {
        size_t ready = 0;
        int error = cc_poll(waits, wait_count, timeout, &ready);
        if (error == ETIMEDOUT) {
            timeout = CC_FOREVER;
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
        } else if (error != 0) {
            break;
        }
        if (waits[0].revents != 0) open = take(multi);
        struct pollfd now[SOCKETS_MAX]; /* curl changes `waits` meanwhile */
        size_t count = 0;
        for (size_t i = 1; i < wait_count; i++)
            if (waits[i].revents != 0) now[count++] = waits[i];
        for (size_t i = 0; i < count; i++) {
            int what = (now[i].revents & (POLLIN | POLLHUP) ? CURL_CSELECT_IN : 0) |
                       (now[i].revents & POLLOUT ? CURL_CSELECT_OUT : 0) |
                       (now[i].revents & POLLERR ? CURL_CSELECT_ERR : 0);
            curl_multi_socket_action(multi, now[i].fd, what, &running);
        }
        finish(multi);
    }
    curl_multi_cleanup(multi);
    return NULL;
}

/* As curl_easy_perform. */
static CURLcode perform(CURL *handle) {
    struct transfer t = {.handle = handle, .code = CURLE_ABORTED_BY_CALLBACK}, *at = &t;
    curl_easy_setopt(handle, CURLOPT_PRIVATE, (char *)at);
    if (cc_chan_send(transfers, &at, sizeof at) != 0) return t.code;
    eventfd_write(wakes, 1);
    CC_SHIELD { /* the driver has a pointer to this frame */
        if (cc_event_wait(&t.done) != 0) abort();
    }
    return t.code;
}

static size_t count_bytes(char *bytes, size_t size, size_t count, void *total) {
    (void)bytes;
    *(size_t *)total += size * count;
    return size * count;
}

static bool fetch(int i) {
    size_t bytes = 0;
    CURL *handle = curl_easy_init();
    (void)i;
    if (handle == NULL) return false;
    curl_easy_setopt(handle, CURLOPT_URL, where);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, count_bytes);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, &bytes);
    curl_easy_setopt(handle, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT, 60L);
    CURLcode code = perform(handle);
    if (code != CURLE_OK) fprintf(stderr, "curl: %s\n", curl_easy_strerror(code));
    curl_easy_cleanup(handle);
    return code == CURLE_OK && bytes > 0;
}

int main(int argc, char **argv) {
    where = argc > 1 ? argv[1] : "http://127.0.0.1/";
    wakes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    transfers = cc_chan_create(sizeof(struct transfer *), RECIPE_FIBERS);
    CCTask driver;
    if (wakes < 0 || transfers == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != 0) return 1;
    if (cc_spawn(&driver, drive, NULL, NULL) != 0) return 1;
    int status = recipe_run(fetch);
    cc_chan_close(transfers);
    eventfd_write(wakes, 1);
    cc_block_on(driver);
    cc_chan_free(transfers);
    close(wakes);
    curl_global_cleanup();
    return status;
}
