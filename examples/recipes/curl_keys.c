/* curl_keys.c - a library that calls back on a thread of its own, and fibers that wait for it by wake keys.
 *
 * The thread runs curl's own loop (curl_multi_poll) and knows nothing of fibers; when a transfer is done, it calls the
 * function that was given to it. That wakes the fiber by its key. When a fiber times out, its key expires: the late
 * callback gets ESRCH and touches nothing of the fiber. So no frame has to be kept for the library.
 *
 *   curl_keys http://127.0.0.1:8080/
 */
#include "recipe.h"

#include <curl/curl.h>
#include <pthread.h>

/* ---- the library: a queue of transfers, a thread, a callback ---- */

struct transfer {
    CURL *handle;
    void (*done)(CURLcode code, void *context);
    CCWakeKey context; /* a copy, which `done` gets a pointer to */
    struct transfer *next;
};

static CURLM *multi;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct transfer *started;
static bool stopping;

static size_t drop_bytes(char *bytes, size_t size, size_t count, void *arg) {
    (void)bytes, (void)arg;
    return size * count;
}

static void start(struct transfer *t) {
    pthread_mutex_lock(&lock);
    t->next = started;
    started = t;
    pthread_mutex_unlock(&lock);
    curl_multi_wakeup(multi);
}

static bool take_started(void) {
    pthread_mutex_lock(&lock);
    struct transfer *t = started;
    bool stop = stopping;
    started = NULL;
    pthread_mutex_unlock(&lock);
    for (; t != NULL; t = t->next) curl_multi_add_handle(multi, t->handle);
    return !stop;
}

static void call_back(void) {
    CURLMsg *m;
    for (int left = 0; (m = curl_multi_info_read(multi, &left)) != NULL;) {
        struct transfer *t = NULL;
        CURL *handle = m->easy_handle;
        CURLcode code = m->data.result;
        if (m->msg != CURLMSG_DONE) continue;
        curl_easy_getinfo(handle, CURLINFO_PRIVATE, (char **)&t);
        curl_multi_remove_handle(multi, handle);
        t->done(code, &t->context);
        curl_easy_cleanup(handle);
        free(t);
    }
}

static void *loop(void *arg) {
    int running = 0;
    (void)arg;
    while (take_started() || running > 0) {
        curl_multi_perform(multi, &running);
        call_back();
        curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    return NULL;
}

/* ---- the fibers ---- */

static const char *where;
static atomic_int late;

/* On the library's thread. */
static void wake(CURLcode code, void *context) {
    if (cc_wake(*(CCWakeKey *)context, code) == ESRCH) atomic_fetch_add(&late, 1);
}

/* The code of curl; ETIMEDOUT and others negative. */
static int fetch_until(CCDeadline deadline) {
    uint64_t code = 0;
    struct transfer *t = calloc(1, sizeof *t);
    if (t == NULL || (t->handle = curl_easy_init()) == NULL) abort();
    curl_easy_setopt(t->handle, CURLOPT_URL, where);
    curl_easy_setopt(t->handle, CURLOPT_WRITEFUNCTION, drop_bytes);
    curl_easy_setopt(t->handle, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(t->handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(t->handle, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(t->handle, CURLOPT_PRIVATE, (char *)t);
    t->done = wake;
    CCWakeKey key;
    if (cc_wake_key_open(&key) != 0) abort();
    t->context = key;
    start(t); /* from here on the library owns it */
    int error = cc_wake_key_wait_until(key, &code, deadline);
    return error != 0 ? -error : (int)code;
}

static bool fetch(int i) {
    if (i % 10 == 9) { /* some time out, and try again */
        int early = fetch_until(CC_PASSED);
        if (early != -ETIMEDOUT && early != 0) return false;
    }
    int code = fetch_until(CC_FOREVER);
    if (code > 0) fprintf(stderr, "curl: %s\n", curl_easy_strerror((CURLcode)code));
    return code == 0;
}

int main(int argc, char **argv) {
    pthread_t thread;
    where = argc > 1 ? argv[1] : "http://127.0.0.1/";
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0 || (multi = curl_multi_init()) == NULL) return 1;
    if (pthread_create(&thread, NULL, loop, NULL) != 0) return 1;
    int status = recipe_run(fetch);
    pthread_mutex_lock(&lock);
    stopping = true;
    pthread_mutex_unlock(&lock);
    curl_multi_wakeup(multi);
    pthread_join(thread, NULL);
    curl_multi_cleanup(multi);
    curl_global_cleanup();
    return status != 0 || atomic_load(&late) == 0;
}
