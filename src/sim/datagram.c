/* datagram.c - simulated datagrams: each may be lost, duplicated or late. */
#include "sim/system.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

enum { MESSAGE_MAX = 65507, QUEUE_MAX = 212992 }; /* bytes that wait to be received, as on Linux */

static void send_copy(struct sock *s, const struct packet *p) {
    struct packet *copy = cc__sys_packet(PACKET_MESSAGE, s, p->size);
    if (copy == NULL) return;
    copy->to_host = p->to_host;
    copy->source = p->source;
    copy->target = p->target;
    memcpy(copy->bytes, p->bytes, p->size);
    cc__sys_send_after(copy, cc__sys_latency(s->host, p->to_host, false));
}

static int find_target(struct sock *s, const struct msghdr *m, struct endpoint *to) {
    if (m->msg_name == NULL && !s->has_peer) return -EDESTADDRREQ;
    int rc = m->msg_name != NULL ? cc__sys_endpoint(m->msg_name, m->msg_namelen, s->host, to)
                                 : cc__sys_endpoint(&s->peer.any, cc__sys_name_length(&s->peer), s->host, to);
    if (rc != 0) return rc;
    return to->family != s->family ? -EAFNOSUPPORT : to->port == 0 ? -EINVAL : to->host == HOSTS_MAX ? -ENETUNREACH : 0;
}

/* An IPv6 socket reaches a host with an IPv4 address as well, by IPv4. */
static bool is_mapped(const union sys_name *name) {
    static const unsigned char prefix[12] = {[10] = 0xff, [11] = 0xff};
    return name->any.sa_family == AF_INET6 && memcmp(&name->in6.sin6_addr, prefix, sizeof prefix) == 0;
}

ssize_t cc__message_send(struct sock *s, const struct msghdr *m) {
    size_t size = 0, at = 0;
    struct endpoint to;
    for (size_t i = 0; i < m->msg_iovlen; i++) size += m->msg_iov[i].iov_len;
    if (size > MESSAGE_MAX) return -EMSGSIZE;
    if (s->error != 0) {
        int error = s->error;
        s->error = 0;
        return -error;
    }
    int rc = find_target(s, m, &to);
    if (rc == 0 && !s->bound) rc = cc__sys_bind_any(s, to.host, to.loopback);
    struct packet *p = rc == 0 ? cc__sys_packet(PACKET_MESSAGE, s, size) : NULL;
    if (p == NULL) return rc != 0 ? rc : -ENOBUFS;
    for (size_t i = 0; i < m->msg_iovlen; i++) {
        if (m->msg_iov[i].iov_len > 0) memcpy(p->bytes + at, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
        at += m->msg_iov[i].iov_len;
    }
    union sys_name target;
    memset(&target, 0, sizeof target);
    if (m->msg_name != NULL)
        memcpy(&target, m->msg_name, m->msg_namelen < sizeof target ? m->msg_namelen : sizeof target);
    else
        target = s->peer;
    if (is_mapped(&target)) to.family = AF_INET;
    struct endpoint from = {.family = to.family, .loopback = to.loopback};
    p->to_host = to.host;
    p->target = to;
    p->source = cc__sys_name(to.family, &from, s->host, s->local_place.port);
    if (cc__sys_chance(cc__sys.net.duplicate_ppm)) {
        cc__sys.stats.duplicates++;
        send_copy(s, p);
    }
    if (cc__sys_chance(cc__sys.net.loss_ppm)) {
        cc__sys.stats.losses++;
        cc__mem_free(p);
    } else {
        cc__sys_send_after(p, cc__sys_latency(s->host, to.host, false));
    }
    return (ssize_t)size;
}

ssize_t cc__message_receive(struct sock *s, struct msghdr *m, bool whole) {
    struct packet *p = s->first;
    if (p == NULL && s->error != 0) {
        int error = s->error;
        s->error = 0;
        return -error;
    }
    if (p == NULL) return -EAGAIN;
    size_t at = 0;
    for (size_t i = 0; i < m->msg_iovlen && at < p->size; i++) {
        size_t part = m->msg_iov[i].iov_len < p->size - at ? m->msg_iov[i].iov_len : p->size - at;
        if (part > 0) memcpy(m->msg_iov[i].iov_base, p->bytes + at, part);
        at += part;
    }
    ssize_t size = (ssize_t)(whole ? p->size : at);
    if (at < p->size) m->msg_flags |= MSG_TRUNC;
    if (m->msg_name != NULL) cc__sys_copy_name(&p->source, m->msg_name, &m->msg_namelen);
    s->first = p->next;
    if (s->first == NULL) s->last = NULL;
    s->queued_bytes -= p->size;
    cc__mem_free(p);
    return size;
}

/* An IPv6 socket sees the mapped address of an IPv4 peer. */
static void map_source(struct packet *p) {
    union sys_name six;
    memset(&six, 0, sizeof six);
    unsigned char *ip = (unsigned char *)&six.in6.sin6_addr;
    six.in6.sin6_family = AF_INET6;
    six.in6.sin6_port = p->source.in.sin_port;
    ip[10] = ip[11] = 0xff;
    memcpy(ip + 12, &p->source.in.sin_addr, 4);
    p->source = six;
}

static bool same_name(const union sys_name *a, const union sys_name *b) {
    if (a->any.sa_family != b->any.sa_family) return false;
    if (a->any.sa_family == AF_INET)
        return a->in.sin_port == b->in.sin_port && memcmp(&a->in.sin_addr, &b->in.sin_addr, 4) == 0;
    return a->in6.sin6_port == b->in6.sin6_port && memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, 16) == 0;
}

static void answer_unreachable(const struct packet *to) {
    struct packet *p = cc__mem_alloc_small(sizeof *p);
    if (p == NULL) return;
    p->kind = PACKET_UNREACHABLE;
    p->to = to->from;
    cc__sys_answer(to, p);
}

void cc__message_deliver(struct packet *p) {
    if (p->kind == PACKET_UNREACHABLE) {
        struct sock *s = cc__sys_find(p->to);
        if (s != NULL && s->has_peer && !s->crashed) {
            s->error = ECONNREFUSED;
            cc__sys_report(s, POLLER_READ | POLLER_WRITE);
        }
        cc__mem_free(p);
        return;
    }
    struct sock *s = cc__sys_at(SOCK_MESSAGES, p->to_host, &p->target);
    if (s == NULL) answer_unreachable(p);
    if (s != NULL && s->family == AF_INET6 && p->source.any.sa_family == AF_INET) map_source(p);
    bool wanted = s != NULL && (!s->has_peer || same_name(&s->peer, &p->source));
    if (wanted && s->queued_bytes + p->size > QUEUE_MAX) cc__sys.stats.losses++;
    if (!wanted || s->queued_bytes + p->size > QUEUE_MAX) {
        cc__mem_free(p);
        return;
    }
    cc__sys.stats.bytes += p->size;
    p->next = NULL;
    *(s->last != NULL ? &s->last->next : &s->first) = p;
    s->last = p;
    s->queued_bytes += p->size;
    cc__sys_report(s, POLLER_READ);
}

void cc__message_drop_all(struct sock *s) {
    for (struct packet *next; s->first != NULL; s->first = next) {
        next = s->first->next;
        cc__mem_free(s->first);
    }
    s->last = NULL;
    s->queued_bytes = 0;
}
