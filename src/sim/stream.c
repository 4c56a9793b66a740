/* stream.c - simulated streams: connections with a window, listeners, Unix sockets, pipes.
 *
 * What is written is sent as one packet and fills the reader's window (SYS-5). What is read returns as much credit to
 * the writer, after the latency of a packet. A packet for a connection that no longer exists is answered by a reset.
 */
#include "sim/system.h"

#include "base/mem.h"
#include "os/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

enum {
    CONNECT_S = 127,        /* until a connect without an answer fails, as on Linux */
    UNREACHABLE_S = 3,      /* until an address that no host has is reported */
    UNACKNOWLEDGED_S = 924, /* until a connection fails whose peer acknowledges nothing */
    KEEPALIVE_PROBES = 5,
    WINDOW_PROBE_S = 120, /* the longest time between two probes of a full window, as on Linux */
    SYN_AGAIN_S = 1,
};

/* ---- connecting ---- */

static int make_ring(struct sock *s) {
    if (s->bytes == NULL) s->bytes = cc__mem_alloc_small(s->window);
    return s->bytes != NULL ? 0 : -ENOBUFS;
}

int cc__stream_pair(struct sock *a, struct sock *b) {
    struct sock *both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct sock *s = both[i], *other = both[1 - i];
        if (make_ring(s) != 0) return -ENOBUFS;
        s->kind = SOCK_CONNECTED;
        s->family = AF_UNIX;
        s->type = SOCK_STREAM;
        s->is_local = s->has_peer = true;
        s->other = other->self;
        s->peer_host = other->host;
        s->credit = other->window;
        s->local.any.sa_family = s->peer.any.sa_family = AF_UNIX;
    }
    return 0;
}

static void start_timer(struct sock *s, enum packet_kind kind, uint64_t after, int error) {
    struct packet *p = cc__sys_packet(kind, s, 0);
    if (p == NULL) return;
    p->to = s->self;
    p->error = error;
    cc__sys_send_after(p, after);
}

static struct sock *make_accepted(struct sock *listener, const struct packet *syn) {
    struct sock *s = cc__sys_make(SOCK_CONNECTED, listener->host);
    if (s == NULL) return NULL;
    s->family = listener->family;
    s->type = SOCK_STREAM;
    s->is_local = listener->is_local;
    s->keepalive_s = listener->keepalive_s;
    s->user_timeout_ms = listener->user_timeout_ms;
    s->window = listener->window;
    s->other = syn->from;
    s->peer_host = syn->from_host;
    s->has_peer = true;
    s->peer = syn->source;
    s->local = syn->target_name;
    if (make_ring(s) != 0) {
        cc__sys_free(s);
        return NULL;
    }
    listener->waiting[listener->waiting_count++] = s->self;
    cc__sys_report(listener, POLLER_READ);
    return s;
}

/* A Unix socket is connected at once, or fails. */
static int connect_local(struct sock *s, const struct endpoint *to, const union sys_name *name) {
    struct sock *listener = cc__sys_at(SOCK_LISTENER, s->host, to);
    if (listener == NULL) return -ECONNREFUSED;
    if (listener->waiting_count >= listener->backlog) return -EAGAIN;
    int rc = cc__sys_bind_any(s, s->host, false);
    if (rc == 0) rc = make_ring(s);
    if (rc != 0) return rc;
    struct packet syn = {.from = s->self, .from_host = s->host, .source = s->local, .target_name = *name};
    struct sock *accepted = make_accepted(listener, &syn);
    if (accepted == NULL) return -ENOBUFS;
    accepted->credit = s->window;
    s->credit = accepted->window;
    s->other = accepted->self;
    s->peer = *name;
    s->has_peer = true;
    s->kind = SOCK_CONNECTED;
    return 0;
}

int cc__stream_connect(struct sock *s, const struct endpoint *to, const union sys_name *name) {
    if (to->family != s->family) return -EAFNOSUPPORT;
    cc__sys.stats.connects++;
    if (s->is_local) return connect_local(s, to, name);
    if (to->port == 0) return -ECONNREFUSED;
    int rc = cc__sys_bind_any(s, to->host, to->loopback);
    if (rc == 0) rc = make_ring(s);
    struct packet *p = rc == 0 ? cc__sys_packet(PACKET_SYN, s, 0) : NULL;
    if (p == NULL) return rc != 0 ? rc : -ENOBUFS;
    s->kind = SOCK_CONNECTING;
    s->peer = *name;
    s->has_peer = true;
    if (to->host == HOSTS_MAX) {
        cc__mem_free(p);
        start_timer(s, TIMER_CONNECT, UNREACHABLE_S * SECOND, EHOSTUNREACH);
        return -EINPROGRESS;
    }
    s->peer_host = to->host;
    p->to_host = to->host;
    p->source = s->local;
    p->target = *to;
    p->target_name = *name;
    start_timer(s, TIMER_CONNECT, CONNECT_S * SECOND, ETIMEDOUT);
    if (cc__sys_chance(cc__sys.net.black_hole_ppm)) {
        cc__sys.stats.black_holes++;
        cc__mem_free(p);
    } else if (cc__sys_chance(cc__sys.net.refuse_ppm)) {
        cc__sys.stats.refusals++;
        cc__mem_free(p);
        start_timer(s, TIMER_CONNECT, 2 * cc__sys_latency(s->host, to->host, false), ECONNREFUSED);
    } else {
        cc__sys_send(s, p);
    }
    return -EINPROGRESS;
}

int cc__stream_accept(struct sock *listener, struct sock **accepted) {
    while (listener->waiting_count > 0) {
        int rc = cc__sys_may_open();
        if (rc != 0) return rc;
        unsigned i = cc__sys_draw(listener->waiting_count); /* in any order */
        struct ref ref = listener->waiting[i];
        listener->waiting[i] = listener->waiting[--listener->waiting_count];
        *accepted = cc__sys_find(ref);
        if (*accepted == NULL) continue;
        (*accepted)->is_open = true;
        cc__sys.stats.accepts++;
        return 0;
    }
    return -EAGAIN;
}

/* ---- the end of a connection ---- */

static void fail(struct sock *s, int error) {
    if (s->broken) return;
    s->broken = true;
    s->error = error;
    s->unacknowledged = 0;
    if (!s->is_local && cc__sys_draw(2) == 0) s->count = 0; /* what has arrived can still be read, or not */
    cc__sys_report(s, POLLER_READ | POLLER_WRITE | POLLER_HANGUP);
}

/* To the other end, after what was sent before. */
static void send_end(struct sock *s, enum packet_kind kind) {
    if (s->severed) return;
    struct packet *p = cc__sys_packet(kind, s, 0);
    if (p == NULL) return;
    p->error = ECONNRESET;
    cc__sys_send(s, p);
}

/* The connection that a packet is for does not exist. */
static void answer_reset(const struct packet *to, int error) {
    struct packet *p = cc__mem_alloc_small(sizeof *p);
    if (p == NULL) return;
    p->kind = PACKET_RST;
    p->error = error;
    p->from = to->to;
    p->to = to->from;
    cc__sys_answer(to, p);
}

void cc__stream_close(struct sock *s) {
    if (s->kind != SOCK_CONNECTED || s->broken) return;
    bool reset = (s->reset_on_close && !s->is_local) || (s->count > 0 && !s->is_pipe);
    if (reset)
        send_end(s, PACKET_RST);
    else if (!s->fin_sent || s->is_pipe)
        send_end(s, PACKET_FIN);
}

int cc__stream_shutdown(struct sock *s, bool read, bool write) {
    if (s->broken) return -ENOTCONN;
    if (write && !s->fin_sent) {
        s->fin_sent = true;
        send_end(s, PACKET_FIN);
        if (s->fin_received) cc__sys_report(s, POLLER_READ | POLLER_WRITE | POLLER_HANGUP);
    }
    if (read) {
        s->no_reads = true;
        cc__sys_report(s, POLLER_READ | POLLER_HANGUP);
    }
    return 0;
}

/* ---- bytes ---- */

static size_t length_of(const struct iovec *parts, size_t n) {
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += parts[i].iov_len;
    return sum;
}

static size_t shorten(size_t n) {
    if (n < 2 || !cc__sys_chance(cc__sys.net.short_ppm)) return n;
    cc__sys.stats.shorts++;
    return 1 + cc__sys_draw((uint32_t)(n - 1));
}

/* From a vector to contiguous memory. */
static void copy_in(char *to, const struct iovec *parts, size_t n, size_t size) {
    for (size_t i = 0; i < n && size > 0; i++) {
        size_t part = parts[i].iov_len < size ? parts[i].iov_len : size;
        if (part > 0) memcpy(to, parts[i].iov_base, part);
        to += part;
        size -= part;
    }
}

static void copy_ring(const struct sock *s, const struct iovec *parts, size_t n, size_t size) {
    size_t at = s->begin;
    for (size_t i = 0; i < n && size > 0; i++) {
        size_t part = parts[i].iov_len < size ? parts[i].iov_len : size, first = s->window - at;
        if (first > part) first = part;
        if (first > 0) memcpy(parts[i].iov_base, s->bytes + at, first);
        if (part > first) memcpy((char *)parts[i].iov_base + first, s->bytes, part - first);
        at = (at + part) % s->window;
        size -= part;
    }
}

static int take_error(struct sock *s) {
    int error = s->error;
    s->error = 0;
    return -error;
}

ssize_t cc__stream_read(struct sock *s, const struct iovec *parts, size_t n, bool peeks) {
    if (s->kind != SOCK_CONNECTED && s->kind != SOCK_CONNECTING) return s->kind == SOCK_SPARE ? -EINVAL : -ENOTCONN;
    size_t wanted = length_of(parts, n), got = wanted < s->count ? wanted : s->count;
    if (s->is_pipe && s->no_reads) return -EBADF;
    if (got == 0 && wanted > 0) {
        if (s->error != 0 && !s->fin_received) return take_error(s);
        if (s->broken || s->fin_received || s->no_reads) return 0;
        return -EAGAIN;
    }
    if (wanted == 0) return 0;
    got = shorten(got);
    copy_ring(s, parts, n, got);
    if (peeks) return (ssize_t)got;
    s->begin = (s->begin + got) % s->window;
    s->count -= got;
    struct packet *p = s->broken || s->severed ? NULL : cc__sys_packet(PACKET_CREDIT, s, 0);
    if (p != NULL) {
        p->size = got;
        cc__sys_send(s, p);
    }
    return (ssize_t)got;
}

static uint64_t patience(const struct sock *s) {
    return s->user_timeout_ms != 0 ? s->user_timeout_ms * UINT64_C(1000000) : UNACKNOWLEDGED_S * SECOND;
}

/* The peer may be silent from now on, or has lost the connection. A side with unacknowledged bytes has a timer; one
 * that has filled the window, or has keepalive, learns of it by probes. While the peer answers there are none, because
 * a timer hides a deadlock. */
static void expect_silence(struct sock *s, bool restarted) {
    if (s->kind != SOCK_CONNECTED || s->is_local || s->crashed) return;
    if (s->keepalive_s != 0) start_timer(s, TIMER_KEEPALIVE, (uint64_t)s->keepalive_s * KEEPALIVE_PROBES * SECOND, 0);
    uint64_t after = restarted ? WINDOW_PROBE_S * SECOND : patience(s);
    if (s->credit == 0 && s->unacknowledged == 0) start_timer(s, TIMER_WINDOW, after, 0);
}

/* The seed may reset the connection now, or make it lose all packets. */
static bool perhaps_break(struct sock *s) {
    if (s->is_local) return false;
    struct sock *other = cc__sys_find(s->other);
    if (cc__sys_chance(cc__sys.net.reset_ppm)) {
        cc__sys.stats.resets++;
        send_end(s, PACKET_RST);
        start_timer(s, TIMER_UNACKNOWLEDGED, cc__sys_latency(s->host, s->peer_host, false), ECONNRESET);
        s->unacknowledged++; /* so that the timer is not void */
        s->since = 0;
        s->severed = true; /* what is sent meanwhile is lost */
        return true;
    }
    if (other != NULL && !s->severed && cc__sys_chance(cc__sys.net.half_open_ppm)) {
        cc__sys.stats.half_opens++;
        s->severed = other->severed = true;
        expect_silence(s, false);
        expect_silence(other, false);
    }
    return false;
}

/* A writer to a pipe or a Unix socket learns at once, without a packet, that there is no reader. */
static bool nobody_reads(const struct sock *s) {
    const struct sock *other = s->is_local ? cc__sys_find(s->other) : NULL;
    return s->is_local && (other == NULL || other->no_reads);
}

ssize_t cc__stream_peek(struct sock *s) {
    char byte;
    struct iovec one = {&byte, 1};
    if (!s->is_pipe || !s->no_reads) return cc__stream_read(s, &one, 1, true);
    return s->broken || nobody_reads(s) ? 0 : -EAGAIN;
}

ssize_t cc__stream_write(struct sock *s, const struct iovec *parts, size_t n) {
    if (s->kind == SOCK_CONNECTING && !s->broken) return -EAGAIN;
    if (s->kind != SOCK_CONNECTED && s->kind != SOCK_CONNECTING) return s->kind == SOCK_SPARE ? -EINVAL : -ENOTCONN;
    size_t wanted = length_of(parts, n), put = wanted < s->credit ? wanted : s->credit;
    if (wanted > 0 && !s->fin_sent && nobody_reads(s)) return -EPIPE; /* a pending error is for the reader */
    if (s->error != 0) return take_error(s);
    if (s->broken || s->fin_sent) return s->is_pipe && !s->broken ? -EBADF : -EPIPE;
    if (wanted == 0) return 0;
    if (put == 0) return -EAGAIN;
    put = shorten(put);
    struct packet *p = cc__sys_packet(PACKET_DATA, s, put);
    if (p == NULL) return -ENOBUFS;
    copy_in(p->bytes, parts, n, put);
    s->credit -= put;
    if (s->unacknowledged == 0) {
        s->since = cc__clock_now();
        if (!s->is_local) start_timer(s, TIMER_UNACKNOWLEDGED, patience(s), ETIMEDOUT);
    }
    s->unacknowledged += put;
    if (perhaps_break(s) || s->severed)
        cc__mem_free(p);
    else
        cc__sys_send(s, p);
    return (ssize_t)put;
}

unsigned cc__stream_sides(const struct sock *s) {
    unsigned ready = 0;
    if (s->count > 0 || s->error != 0 || s->broken || s->fin_received || s->no_reads) ready |= POLLER_READ;
    bool writes = s->kind == SOCK_CONNECTED && !s->fin_sent && (s->credit > 0 || nobody_reads(s));
    if (s->error != 0 || s->broken || writes) ready |= POLLER_WRITE;
    if (s->broken || s->fin_received) ready |= POLLER_HANGUP;
    return ready;
}

int cc__stream_gone(const struct sock *s, unsigned *sides) {
    if (s->is_pipe) { /* no_reads: its writing end */
        *sides = s->no_reads ? POLLER_WRITE & *sides : s->count > 0 ? POLLER_READ : 0u;
        return s->no_reads ? (s->broken || nobody_reads(s) ? POLLERR : 0) : s->fin_received ? POLLHUP : 0;
    }
    bool closed = s->is_local && s->fin_received && cc__sys_find(s->other) == NULL;
    if (s->fin_sent) *sides |= POLLER_WRITE; /* it need not wait for its error */
    return (s->broken || closed || (s->fin_sent && s->fin_received) ? POLLHUP : 0) | (s->error != 0 ? POLLERR : 0);
}

/* ---- arrival ---- */

static void arrive_syn(struct packet *p) {
    struct sock *client = cc__sys_find(p->from), *listener = cc__sys_at(SOCK_LISTENER, p->to_host, &p->target);
    if (client == NULL || client->kind != SOCK_CONNECTING) return;
    if (listener == NULL) {
        answer_reset(p, ECONNREFUSED);
        return;
    }
    struct sock *s = NULL;
    if (listener->waiting_count < listener->backlog) s = make_accepted(listener, p);
    if (s == NULL) { /* the backlog is full: it is sent again */
        struct packet *again = cc__sys_packet(PACKET_SYN, client, 0);
        if (again == NULL) return;
        again->to_host = p->to_host;
        again->source = p->source;
        again->target = p->target;
        again->target_name = p->target_name;
        cc__sys_send_after(again, SYN_AGAIN_S * SECOND);
        return;
    }
    s->credit = client->window;
    struct packet *answer = cc__sys_packet(PACKET_SYN_ACK, s, 0);
    if (answer != NULL) cc__sys_send(s, answer);
}

static void arrive_syn_ack(struct sock *s, const struct packet *p) {
    struct sock *other = cc__sys_find(p->from);
    s->kind = SOCK_CONNECTED;
    s->other = p->from;
    s->credit = other != NULL ? other->window : s->window;
    cc__sys_report(s, POLLER_WRITE);
}

static void arrive_data(struct sock *s, const struct packet *p) {
    struct sock *sender = cc__sys_find(p->from);
    if (sender != NULL && !sender->broken) {
        sender->unacknowledged -= p->size < sender->unacknowledged ? p->size : sender->unacknowledged;
        sender->since = cc__clock_now();
    }
    cc__sys.stats.bytes += p->size;
    size_t at = (s->begin + s->count) % s->window, first = s->window - at;
    if (first > p->size) first = p->size;
    memcpy(s->bytes + at, p->bytes, first);
    memcpy(s->bytes, p->bytes + first, p->size - first);
    s->count += p->size;
    cc__sys_report(s, POLLER_READ);
}

/* The result of a probe: 0, or an errno value if the other side would not answer, or reset. */
static int probe(const struct sock *s) {
    if (s->severed || !cc__sys.hosts[s->peer_host].is_up || cc__sys_is_cut(s->host, s->peer_host)) return ETIMEDOUT;
    const struct sock *other = cc__sys_find(s->other);
    return other == NULL || other->crashed ? ECONNRESET : 0;
}

static void arrive_timer(struct sock *s, const struct packet *p) {
    uint64_t now = cc__clock_now();
    if (p->kind == TIMER_UNACKNOWLEDGED && p->error == ETIMEDOUT && s->since + patience(s) > now)
        start_timer(s, TIMER_UNACKNOWLEDGED, s->since + patience(s) - now, ETIMEDOUT);
    else if (p->kind != TIMER_KEEPALIVE && p->kind != TIMER_WINDOW)
        fail(s, p->error);
    else if (probe(s) != 0)
        fail(s, probe(s));
}

void cc__stream_deliver(struct packet *p) {
    struct sock *s = cc__sys_find(p->to);
    if (s != NULL && s->crashed) s = NULL;
    if (p->kind == PACKET_SYN) {
        arrive_syn(p);
    } else if (s == NULL) {
        if (p->kind == PACKET_DATA || p->kind == PACKET_SYN_ACK) answer_reset(p, ECONNRESET);
    } else if (!s->broken && !(s->severed && p->kind < TIMER_CONNECT && p->kind != PACKET_RST)) {
        switch (p->kind) {
        case PACKET_SYN_ACK:
            arrive_syn_ack(s, p);
            break;
        case PACKET_DATA:
            arrive_data(s, p);
            break;
        case PACKET_FIN:
            s->fin_received = true;
            if (s->is_pipe && !s->fin_sent) /* the reader has gone */
                fail(s, EPIPE);
            else
                cc__sys_report(s, POLLER_READ | POLLER_HANGUP);
            break;
        case PACKET_RST:
            fail(s, s->fin_received && p->error == ECONNRESET ? EPIPE : p->error); /* as on Linux */
            break;
        case PACKET_CREDIT:
            s->credit += p->size;
            cc__sys_report(s, POLLER_WRITE);
            break;
        default:
            arrive_timer(s, p);
            break;
        }
    }
    cc__mem_free(p);
}

void cc__stream_expect_silence(uint32_t host, bool restarted) {
    for (uint32_t i = 0; i < cc__sys.socks_count; i++) {
        struct sock *s = cc__sys.socks[i];
        if (s != NULL && (s->peer_host == host || s->host == host)) expect_silence(s, restarted);
    }
}
