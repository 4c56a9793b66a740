/* server.c - the thread that serves the live page, its connections, and the one job that may take seconds.
 *
 *   READING --a whole head--> WRITING --all sent--> DRAINING --the peer's end, or 2 s--> closed
 *              |                  ^
 *              '--> JOB ----------'   a trace or a CPU profile, made by a second thread
 *
 * LIVE-1  The thread waits only in poll(2): no client can block the others. Every state has a deadline; a head has at
 *         most REQUEST_MAX bytes; there are at most CLIENTS connections, and a further one replaces the oldest that
 *         still sends its request, if there is one.
 * LIVE-2  On the loopback interface Host must be a name of this machine, or any web page could send requests by a host
 *         name that resolves to it (DNS rebinding); and the token is required, except for the page itself. A cookie
 *         would send it to every other server of this machine: cookies belong to a host, not to a port.
 * LIVE-3  It responds while workers are stuck. Of the locks that they hold it waits only for internal ones, and for
 *         another report at most `patience_ms`. It is inside the runtime while it inspects, and not while it sends: no
 *         client can delay a shutdown.
 * LIVE-4  The thread that starts or stops the page holds `change`; the page's own threads never take it.
 */
#include "base/error.h"
#include "base/fatal.h"
#include "base/mem.h"
#include "diag/diag.h"
#include "inspect/waits.h"
#include "live/live.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/file.h"
#include "os/socket.h"
#include "os/thread.h"
#include "sched/upcalls.h"

#include <ccc/cc_profile.h>
#include <ccc/cc_record.h>
#include <ccc/cc_time.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CLIENTS = 32,
    ANSWER_MS = 30000, /* for a response to be received */
    NO_FD_MS = 100,    /* until the next attempt when descriptors have run out */
    SECONDS_MAX = 30,  /* of a job */
};
#define MS UINT64_C(1000000)
static _Atomic uint32_t request_ms = 2000, patience_ms = 5000; /* for a request, and for the peer to close;
                                                                  for another report to finish */

void cc__live_set_pace(unsigned request, unsigned patience) {
    cc__set(&request_ms, request);
    cc__set(&patience_ms, patience);
}

/* From READING on in the order in which they are replaced by new connections; one that waits for a job is not. */
enum client_state { CLIENT_FREE, CLIENT_JOB, CLIENT_READING, CLIENT_DRAINING, CLIENT_WRITING };

struct client {
    enum client_state state;
    int fd;
    uint64_t until;
    struct response response;
    size_t length; /* of the request so far */
    char request[REQUEST_MAX + 1];
};

/* A trace or a profile. */
struct job {
    struct client *client; /* NULL: there is none */
    enum { JOB_TRACE, JOB_CPU, JOB_PROFILE } kind;
    unsigned what, seconds; /* CCRecordFormat; CCProfile */
    pthread_t thread;
    int result;
    _Atomic uint32_t done;
};

static struct {
    pthread_mutex_t change;
    _Atomic uint32_t runs, stops, ending;
    _Atomic uint32_t hurry; /* a job has to end early */
    pthread_t thread;
    int listener, wake_pipe[2]; /* a byte wakes the thread */
    unsigned port;              /* 0: a Unix socket */
    uint64_t accepts_at;        /* no accept before this time */
    const char *folder;
    struct client *clients;
    struct job job;
    struct os_file_id file; /* the socket's */
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
    char token[TOKEN_LENGTH + 1];
} live = {.change = PTHREAD_MUTEX_INITIALIZER, .listener = -1, .wake_pipe = {-1, -1}};

bool cc__live_is_ending(void) {
    return cc__get(&live.ending) != 0;
}

static void ring(void) {
    struct iovec byte = {"", 1};
    (void)cc__os_writev(live.wake_pipe[1], &byte, 1, OS_OWN); /* a full pipe wakes it as well */
}

/* ---- responses ---- */

static void make_nonce(char *nonce) {
    unsigned char bytes[TOKEN_LENGTH / 2];
    if (!cc__os_random(bytes, sizeof bytes)) memset(bytes, 0, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
}

static void begin_answer(struct client *c, int status, const char *type, const char *nonce) {
    cc__response_begin(&c->response, status, type, nonce);
    c->state = CLIENT_WRITING;
    c->until = cc__clock_real() + ANSWER_MS * MS;
}

static int answer_dump(struct out *out, const struct request *request) {
    (void)request;
    return cc__dump_text(out) == 0 ? 200 : 503;
}

static int answer_dump_json(struct out *out, const struct request *request) {
    (void)request;
    return cc__dump_json(out) == 0 ? 200 : 503;
}

static const struct route {
    const char *path, *type;
    int (*answer)(struct out *out, const struct request *request);
    bool unbounded;
} routes[] = {
    {"/stats", "application/json", cc__answer_stats, false},
    {"/groups", "application/json", cc__answer_groups, false},
    {"/fibers", "application/json", cc__answer_fibers, false},
    {"/fiber", "application/json", cc__answer_fiber, false},
    {"/scopes", "application/json", cc__answer_scopes, false},
    {"/channels", "application/json", cc__answer_channels, false},
    {"/wrong", "application/json", cc__answer_wrong, false},
    {"/unreachable", "application/json", cc__answer_unreachable, false},
    {"/dump", "text/plain", answer_dump, true},
    {"/dump.json", "application/json", answer_dump_json, true},
    {"/metrics", "application/openmetrics-text; version=1.0.0", cc__answer_metrics, false},
};

/* LIVE-3. It leaves addresses on the stack, which the search for unreachable fibers would take for references. */
static CC_NOINLINE int look(struct client *c, const struct route *route, const struct request *request) {
    if (!cc__response_open(&c->response, !route->unbounded)) return 503;
    struct out out = {.file = c->response.body};
    if (cc__upcall_enter(false) != 0) return 503;
    int status = 503;
    if (cc__dump_begin_until(cc__clock_real() + cc__get(&patience_ms) * MS)) {
        status = route->answer(&out, request);
        cc__out_flush(&out);
        cc__dump_end();
    }
    cc__upcall_leave();
    if (!cc__response_close(&c->response)) status = 503;
    return status;
}

static CC_NOINLINE void wipe_stack(void) {
    char below[48 * 1024];
    explicit_bzero(below, sizeof below);
}

/* The page, with a nonce in the place of PAGE_NONCE. */
static int put_page(struct client *c, const char *nonce) {
    if (cc__page_size == 0 || !cc__response_open(&c->response, false)) return 503;
    FILE *body = c->response.body;
    const unsigned char *at = cc__page, *end = cc__page + cc__page_size, *mark;
    while ((mark = memmem(at, (size_t)(end - at), PAGE_NONCE, TOKEN_LENGTH)) != NULL) {
        (void)fwrite(at, 1, (size_t)(mark - at), body);
        (void)fwrite(nonce, 1, TOKEN_LENGTH, body);
        at = mark + TOKEN_LENGTH;
    }
    (void)fwrite(at, 1, (size_t)(end - at), body);
    return cc__response_close(&c->response) ? 200 : 503;
}

/* ---- jobs ---- */

/* A running recording is not restarted: then the file has its events so far, and those of the given seconds. For
 * traces, and for profiles that are made of recorded events. */
static int record_for(struct job *job, int fd) {
    int rc = cc_record_start(NULL);
    if (rc != 0 && rc != EALREADY) return rc;
    uint64_t until = cc__clock_real() + job->seconds * 1000 * MS;
    while (cc__clock_real() < until && cc__get(&live.hurry) == 0) cc__thread_nap((long)(10 * MS));
    int written = job->kind == JOB_TRACE ? cc_record_write(fd, (CCRecordFormat)job->what)
                                         : cc_profile_write(fd, (CCProfile)job->what);
    if (rc == 0) (void)cc_record_stop();
    return written;
}

static void *run_job(void *arg) {
    struct job *job = arg;
    int fd = fileno(job->client->response.body);
    cc__thread_name("ccc/view-job");
    cc__quiet_thread_is_ours(1, cc__thread_id());
    bool records = job->kind == JOB_TRACE ||
                   (job->kind == JOB_PROFILE && (job->what == CC_PROFILE_BLOCK || job->what == CC_PROFILE_CONTENTION));
    job->result = records                ? record_for(job, fd)
                  : job->kind == JOB_CPU ? cc__profile_cpu(fd, cc_after_ms(job->seconds * 1000), &live.hurry)
                                         : cc_profile_write(fd, (CCProfile)job->what);
    cc__quiet_thread_is_ours(1, 0);
    cc__set_release(&job->done, 1); /* pairs with end_job */
    ring();
    return NULL;
}

/* /trace?format=go&seconds=2, /profile?kind=cpu&seconds=5. Returns the status; 200: the job has started. */
static int start_job(struct client *c, const struct request *request, bool trace) {
    static const char *const formats[] = {"go", "perfetto", "text"};
    static const char *const kinds[] = {"fibers", "leaks", "block", "contention", "cpu"};
    char word[16] = "";
    unsigned what = 0, count = trace ? array_len(formats) : array_len(kinds);
    if (live.job.client != NULL) return 503;
    if (cc__request_value(request, trace ? "format" : "kind", word, sizeof word))
        while (what < count && strcmp(word, trace ? formats[what] : kinds[what]) != 0) what++;
    if (what == count) return 400;
    if (!cc__response_open(&c->response, false)) return 503;
    live.job = (struct job){.client = c,
                            .kind = trace               ? JOB_TRACE
                                    : what == count - 1 ? JOB_CPU
                                                        : JOB_PROFILE,
                            .what = what,
                            .seconds = cc__request_number(request, "seconds", SECONDS_MAX, 2)};
    c->state = CLIENT_JOB;
    c->until = UINT64_MAX;
    if (cc__thread_start_quiet(&live.job.thread, run_job, &live.job) == 0) return 200;
    live.job.client = NULL;
    return 503;
}

static void end_job(void) {
    struct client *c = live.job.client;
    if (c == NULL || !cc__get_acquire(&live.job.done)) return;
    cc__thread_join(live.job.thread);
    live.job.client = NULL;
    bool good = live.job.result == 0 && cc__response_close(&c->response);
    begin_answer(c,
                 good                       ? 200
                 : live.job.result == EBUSY ? 409
                                            : 503,
                 live.job.kind == JOB_TRACE && live.job.what == CC_RECORD_TEXT ? "text/plain"
                                                                               : "application/octet-stream",
                 NULL);
}

/* ---- connections ---- */

static void drop(struct client *c) {
    if (c->state == CLIENT_FREE) return;
    (void)cc__os_close(c->fd);
    cc__response_free(&c->response);
    *c = (struct client){.state = CLIENT_FREE, .fd = -1};
}

/* The head is complete. */
static void answer(struct client *c) {
    struct request request;
    char nonce[TOKEN_LENGTH + 1] = "";
    const char *type = "text/html";
    bool page = false;
    int status = cc__request_read(c->request, live.port, live.token, &request);
    if (status == 200) {
        const struct route *route = routes;
        while (route < routes + array_len(routes) && strcmp(route->path, request.path) != 0) route++;
        if (strcmp(request.path, "/trace") == 0 || strcmp(request.path, "/profile") == 0) {
            status = start_job(c, &request, request.path[1] == 't');
            if (status == 200) return; /* end_job responds */
        } else if (strcmp(request.path, "/") == 0) {
            page = true;
            make_nonce(nonce);
            status = put_page(c, nonce);
        } else if (route < routes + array_len(routes)) {
            type = route->type;
            status = look(c, route, &request);
            wipe_stack();
        } else {
            status = 404;
        }
    }
    begin_answer(c, status, type, page ? nonce : NULL);
}

/* Bytes after the head are ignored: one request per connection. */
static void receive(struct client *c) {
    struct iovec room = {c->request + c->length, REQUEST_MAX - c->length};
    ssize_t n = cc__os_readv(c->fd, &room, 1, OS_OWN_SOCKET);
    if (n == -EAGAIN) return;
    if (n <= 0) {
        drop(c);
        return;
    }
    c->length += (size_t)n;
    c->request[c->length] = '\0';
    if (memchr(c->request, '\0', c->length) != NULL)
        begin_answer(c, 400, NULL, NULL);
    else if (strstr(c->request, "\r\n\r\n") != NULL)
        answer(c);
    else if (c->length == REQUEST_MAX)
        begin_answer(c, 431, NULL, NULL);
}

/* Closing a socket with unread bytes resets the connection, and the peer may lose the response: so it is drained. */
static void transmit(struct client *c) {
    ssize_t n = cc__response_send(&c->response, c->fd);
    if (n == -EAGAIN) return;
    if (n <= 0) {
        drop(c);
        return;
    }
    (void)cc__os_shutdown(c->fd, false, true);
    c->state = CLIENT_DRAINING;
    c->until = cc__clock_real() + cc__get(&request_ms) * MS;
}

static void drain(struct client *c) {
    struct iovec room = {c->request, REQUEST_MAX};
    ssize_t n = cc__os_readv(c->fd, &room, 1, OS_OWN_SOCKET);
    if (n <= 0 && n != -EAGAIN) drop(c);
}

static struct client *place(void) { /* LIVE-1 */
    struct client *oldest = NULL;
    for (struct client *c = live.clients; c < live.clients + CLIENTS; c++) {
        if (c->state == CLIENT_FREE) return c;
        if (c->state != CLIENT_JOB &&
            (oldest == NULL || c->state < oldest->state || (c->state == oldest->state && c->until < oldest->until)))
            oldest = c;
    }
    drop(oldest);
    return oldest;
}

static bool may_look(int fd) {
    int64_t pid;
    uint32_t uid, gid;
    return live.port != 0 || (cc__os_credentials(fd, &pid, &uid, &gid) == 0 && cc__os_may_look(uid));
}

static void accept_one(void) {
    int fd = cc__os_above_standard(cc__os_accept(live.listener, NULL, NULL, OS_OWN));
    if (fd == -EAGAIN || fd == -ECONNABORTED) return;
    if (fd < 0) {
        live.accepts_at = cc__clock_real() + NO_FD_MS * MS;
        return;
    }
    if (!may_look(fd)) {
        (void)cc__os_close(fd);
        return;
    }
    struct client *c = place();
    *c = (struct client){.state = CLIENT_READING, .fd = fd, .until = cc__clock_real() + cc__get(&request_ms) * MS};
}

static void serve(struct client *c) {
    if (c->state == CLIENT_READING) receive(c);
    if (c->state == CLIENT_WRITING) transmit(c);
    if (c->state == CLIENT_DRAINING) drain(c);
}

/* ---- the thread ---- */

static int timeout_ms(uint64_t now) {
    uint64_t next = live.accepts_at > now ? live.accepts_at : UINT64_MAX;
    for (unsigned i = 0; i < CLIENTS; i++)
        if (live.clients[i].state != CLIENT_FREE && live.clients[i].until < next) next = live.clients[i].until;
    return next == UINT64_MAX ? -1 : next <= now ? 0 : (int)((next - now) / MS) + 1;
}

static void drain_wake_pipe(void) {
    char bytes[64];
    struct iovec room = {bytes, sizeof bytes};
    while (cc__os_readv(live.wake_pipe[0], &room, 1, OS_OWN) > 0) {
    }
}

static void *run(void *arg) {
    (void)arg;
    struct pollfd fds[CLIENTS + 2];
    struct client *whose[CLIENTS + 2];
    cc__thread_name("ccc/view");
    cc__quiet_thread_is_ours(0, cc__thread_id());
    while (!cc__get_acquire(&live.stops)) { /* pairs with cc_view_stop */
        uint64_t now = cc__clock_real();
        nfds_t n = 0;
        fds[n++] = (struct pollfd){.fd = live.wake_pipe[0], .events = POLLIN};
        fds[n++] = (struct pollfd){.fd = live.accepts_at <= now ? live.listener : -1, .events = POLLIN};
        for (struct client *c = live.clients; c < live.clients + CLIENTS; c++) {
            if (c->state == CLIENT_FREE || c->state == CLIENT_JOB) continue;
            whose[n] = c;
            fds[n++] = (struct pollfd){.fd = c->fd, .events = c->state == CLIENT_WRITING ? POLLOUT : POLLIN};
        }
        if (cc__os_wait_any(fds, (unsigned)n, timeout_ms(now)) < 0) cc__thread_nap((long)(NO_FD_MS * MS));
        if (fds[0].revents != 0) drain_wake_pipe();
        end_job();
        now = cc__clock_real();
        for (nfds_t i = 2; i < n; i++)
            if (fds[i].revents != 0) serve(whose[i]);
        for (struct client *c = live.clients; c < live.clients + CLIENTS; c++)
            if (c->state != CLIENT_FREE && c->until <= now) drop(c);
        if (fds[1].revents != 0) accept_one(); /* last: it may replace a connection */
    }
    cc__quiet_thread_is_ours(0, 0);
    return NULL;
}

/* ---- start and stop ---- */

static int listen_tcp(unsigned port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    struct sockaddr *name = (struct sockaddr *)(void *)&address;
    if (port != 0) (void)cc__os_set(live.listener, OS_REUSEADDR, 1);
    int rc = cc__os_bind(live.listener, name, length);
    if (rc == 0) rc = cc__os_listen(live.listener, CLIENTS);
    if (rc == 0) rc = cc__os_name(live.listener, false, name, &length);
    live.port = ntohs(address.sin_port);
    return -rc;
}

/* A crashed process with the same id may have left its socket, on which no process listens. */
static void remove_stale(const struct sockaddr_un *address) {
    struct os_file_id id;
    int fd = cc__os_socket(AF_UNIX, SOCK_STREAM);
    if (fd < 0) return;
    if (cc__os_connect(fd, (const struct sockaddr *)(const void *)address, sizeof *address) == -ECONNREFUSED &&
        cc__os_socket_file(address->sun_path, &id) == 0)
        (void)cc__os_unlink(address->sun_path);
    (void)cc__os_close(fd);
}

static int name_socket(const char *path) {
    size_t room = sizeof live.path;
    if (path != NULL) return strlen(path) < room ? (strcpy(live.path, path), 0) : EINVAL;
    if (live.folder == NULL) return EACCES;
    if ((size_t)snprintf(live.path, room, "%s/%d.sock", live.folder, getpid()) >= room) return EINVAL;
    return -cc__os_private_folder(live.folder);
}

static int listen_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int rc = name_socket(path);
    if (rc != 0) return rc;
    memcpy(address.sun_path, live.path, sizeof live.path);
    if (path == NULL) remove_stale(&address);
    rc = cc__os_socket_mode(live.listener, 0600);
    if (rc == 0) rc = cc__os_bind(live.listener, (const struct sockaddr *)(const void *)&address, sizeof address);
    if (rc != 0) {
        live.path[0] = '\0';
        return -rc;
    }
    rc = cc__os_socket_file(live.path, &live.file);
    if (rc == 0) rc = cc__os_chmod_socket(live.path, 0600);
    if (rc == 0) rc = cc__os_listen(live.listener, CLIENTS);
    return -rc;
}

/* Unlinks the path, if it is still that of our socket. */
static void remove_name(void) {
    struct os_file_id now;
    if (live.path[0] == '\0') return;
    if (cc__os_socket_file(live.path, &now) == 0 && now.device == live.file.device && now.number == live.file.number)
        (void)cc__os_unlink(live.path);
    live.path[0] = '\0';
}

static void close_fd(int *fd) {
    if (*fd >= 0) (void)cc__os_close(*fd);
    *fd = -1;
}

static void close_all(void) {
    for (unsigned i = 0; live.clients != NULL && i < CLIENTS; i++) drop(&live.clients[i]);
    close_fd(&live.listener);
    close_fd(&live.wake_pipe[0]);
    close_fd(&live.wake_pipe[1]);
    cc__mem_free(live.clients);
    live.clients = NULL;
    live.port = 0;
}

static int open_all(const CCViewConfig *config) {
    unsigned char secret[TOKEN_LENGTH / 2];
    live.clients = cc__mem_alloc(CLIENTS * sizeof *live.clients);
    if (live.clients == NULL) return ENOMEM;
    for (unsigned i = 0; i < CLIENTS; i++) live.clients[i] = (struct client){.state = CLIENT_FREE, .fd = -1};
    if (!cc__os_random(secret, sizeof secret)) return EAGAIN;
    for (size_t i = 0; i < sizeof secret; i++) snprintf(live.token + 2 * i, 3, "%02x", secret[i]);
    int rc = cc__os_pipe(live.wake_pipe);
    if (rc < 0) return -rc;
    for (int i = 0; i < 2; i++) live.wake_pipe[i] = cc__os_above_standard(live.wake_pipe[i]);
    live.listener = cc__os_above_standard(cc__os_socket(config->tcp ? AF_INET : AF_UNIX, SOCK_STREAM));
    if (live.listener < 0) {
        rc = -live.listener;
        live.listener = -1;
        return rc;
    }
    return config->tcp ? listen_tcp(config->port) : listen_unix(config->path);
}

static int start_locked(const CCViewConfig *config) {
    if (cc__get(&live.runs)) return EALREADY;
    int rc = open_all(config);
    cc__set(&live.stops, 0);
    cc__set(&live.hurry, cc__get(&live.ending));
    live.job.client = NULL;
    live.accepts_at = 0;
    if (rc == 0) rc = cc__thread_start_quiet(&live.thread, run, NULL);
    if (rc == 0) {
        cc__set_release(&live.runs, 1);
    } else {
        remove_name();
        close_all();
    }
    return rc;
}

static int start(const CCViewConfig *config) {
    pthread_mutex_lock(&live.change);
    int rc = start_locked(config);
    pthread_mutex_unlock(&live.change);
    return rc;
}

int cc_view_start(const CCViewConfig *given) {
    CC_KEEP_ERRNO;
    CCViewConfig config = given != NULL ? *given : (CCViewConfig){0};
    if (cc__reserved_used(&config) || (config.tcp && config.path != NULL) || (!config.tcp && config.port != 0) ||
        (config.path != NULL && config.path[0] == '\0'))
        return EINVAL;
    bool outside = cc__worker() == NULL;
    int rc = outside ? cc__upcall_enter(true) : 0;
    if (rc != 0) return rc;
    rc = cc__clock_is_simulated() ? ENOTSUP : start(&config); /* the entry may have started the simulation */
    if (outside) cc__upcall_leave();
    return rc;
}

int cc_view_stop(void) { /* LIVE-4 */
    CC_KEEP_ERRNO;
    pthread_mutex_lock(&live.change);
    bool runs = cc__get(&live.runs);
    if (runs) {
        cc__set_release(&live.stops, 1);
        cc__set(&live.hurry, 1);
        ring();
        cc__thread_join(live.thread);
        if (live.job.client != NULL) cc__thread_join(live.job.thread);
        remove_name();
        close_all();
        cc__set(&live.runs, 0);
    }
    pthread_mutex_unlock(&live.change);
    return runs ? 0 : EALREADY;
}

int cc_view_address(char *text, size_t size) {
    if (text == NULL || size == 0) return EINVAL;
    text[0] = '\0';
    pthread_mutex_lock(&live.change);
    bool runs = cc__get(&live.runs);
    if (runs && live.port != 0)
        snprintf(text, size, "http://127.0.0.1:%u/?t=%s", live.port, live.token);
    else if (runs)
        snprintf(text, size, "%s", live.path);
    pthread_mutex_unlock(&live.change);
    return runs ? 0 : ESRCH;
}

/* ---- for rt ---- */

void cc__live_folder(const char *folder) {
    live.folder = folder;
}

void cc__live_begin(const CCViewConfig *config) {
    char address[CC_VIEW_ADDRESS_MAX];
    int rc = start(config);
    if (rc == EALREADY) return;
    if (rc == 0 && cc_view_address(address, sizeof address) == 0)
        cc__warn("view at %s", address);
    else
        cc__warn("there is no view, because of error %d (%s)", rc, strerror(rc));
}

void cc__live_ending(bool on) {
    cc__set(&live.ending, on);
    cc__set(&live.hurry, on);
}

void cc__live_end(void) {
    (void)cc_view_stop();
    cc__set(&live.ending, 0);
}

void cc__live_exit(void) {
    pthread_mutex_lock(&live.change);
    remove_name();
    pthread_mutex_unlock(&live.change);
}

void cc__live_forget(void) {
    live.change = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    if (live.clients == NULL) return;
    live.path[0] = '\0'; /* it is the parent's socket */
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct client *c = &live.clients[i];
        if (c->fd >= 0) (void)cc__os_close(c->fd);
        if (c->response.body != NULL) { /* buffered bytes are the parent's too */
            __fpurge(c->response.body);
            if (fileno_unlocked(c->response.body) >= 0) (void)cc__os_close(fileno_unlocked(c->response.body));
        }
        *c = (struct client){.state = CLIENT_FREE, .fd = -1};
    }
    close_all();
    cc__set(&live.runs, 0);
}
