/* udp.c - datagrams in batches; several of one length as one, where the system supports it (GSO, GRO). */
#include "base/attr.h"
#include "base/mem.h"
#include "net/addr.h"
#include "net/conn.h"
#include "net/where.h"
#include "os/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { BATCH = 16 }; /* messages per system call: what fits on a small stack */
/* How much the system splits at a time: UDP_MAX_SEGMENTS of older kernels, and the maximum for IPv6. */
enum { GSO_SEGMENTS = 64, GSO_BYTES = 65535 - 40 - 8 };

struct CCUdp {
    struct io_use use; /* never changed: calls take copies */
    _Atomic uint32_t refs;
    _Atomic uint32_t closed; /* a word: riscv64 cannot exchange bytes */
    _Atomic uint32_t failed; /* an errno value for the next receive; 0: none */
    bool six;                /* an IPv6 socket: IPv4 addresses are mapped */
    bool gso;
};

/* The arguments of the system call for a batch. */
struct batch {
    struct mmsghdr list[BATCH];
    struct iovec parts[BATCH];
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } names[BATCH];
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } controls[BATCH];
};

/* ---- create ---- */

static int set_up(CCUdp *u, int fd, const struct where *w, const CCAddr *addr, bool dial) {
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    const CCAddr *local = dial ? &w->dial.local : addr;
    int error = cc__conn_set(fd, false, &w->conn);
    if (error == 0 && w->listen.reuseport) error = -cc__os_set(fd, OS_REUSEPORT, 1);
    if (error == 0 && addr->kind == CC_ADDR_IP6) error = -cc__os_set(fd, OS_V6ONLY, w->listen.v6only);
    if (error == 0 && w->gro) (void)cc__os_set(fd, OS_UDP_GRO, 1); /* without GRO nothing arrives coalesced */
    u->gso = cc__os_set(fd, OS_UDP_SEGMENT, 0) == 0;
    if (error == 0 && local->kind != CC_ADDR_NONE) {
        error = cc_addr_to_sockaddr(local, (struct sockaddr *)&name, &length);
        if (error == 0) error = -cc__os_bind(fd, (struct sockaddr *)&name, length);
    }
    length = sizeof name;
    if (error == 0 && dial) {
        error = cc_addr_to_sockaddr(addr, (struct sockaddr *)&name, &length);
        if (error == 0) error = -cc__os_connect(fd, (struct sockaddr *)&name, length);
    }
    if (error == 0) error = cc__fd_adopt(fd, true);
    return error == 0 ? cc__fd_find(fd, &u->use) : error;
}

static int open_at(CCUdp *u, const struct where *w, const CCAddr *addr, bool dial) {
    if (dial && w->dial.local.kind != CC_ADDR_NONE && w->dial.local.kind != addr->kind) return EAFNOSUPPORT;
    int fd = cc__os_socket(cc__addr_family(addr), SOCK_DGRAM);
    if (fd < 0) return -fd;
    int error = set_up(u, fd, w, addr, dial);
    if (error != 0) (void)cc__fd_close(fd);
    u->six = addr->kind == CC_ADDR_IP6;
    return error;
}

static int open_udp(CCUdp **udp, const char *text, const CCUdpOptions *options, bool dial) {
    struct where where = {0};
    CCAddr list[WHERE_ADDRS];
    size_t count = 0;
    if (udp == NULL) return EINVAL;
    *udp = NULL;
    if (options != NULL) {
        if (cc__reserved_used(options) || cc__reserved_used(&options->local)) return EINVAL;
        where.listen.reuseport = options->reuseport;
        where.listen.v6only = options->v6only;
        where.gro = options->gro;
        where.dial.local = options->local;
        where.conn.send_buffer = options->send_buffer;
        where.conn.receive_buffer = options->receive_buffer;
    }
    int error = cc__where_parse(&where, text, TRANSPORT_UDP, dial ? USE_DIAL : USE_LISTEN);
    if (error == 0 && dial && where.addr.kind == CC_ADDR_NONE && where.host[0] == 0) error = EINVAL;
    if (error == 0) error = cc__where_addrs(&where, list, &count, CC_FOREVER);
    if (error != 0) return error;
    CCUdp *u = cc__mem_alloc_small(sizeof *u);
    if (u == NULL) return ENOMEM;
    error = ENOENT;
    for (size_t i = 0; i < count && error != 0; i++) error = open_at(u, &where, &list[i], dial);
    if (error != 0) {
        cc__mem_free(u);
        return error;
    }
    cc__set(&u->refs, 1);
    *udp = u;
    return 0;
}

int cc_udp_bind(CCUdp **udp, const char *where, const CCUdpOptions *options) {
    return open_udp(udp, where, options, false);
}
int cc_udp_dial(CCUdp **udp, const char *where, const CCUdpOptions *options) {
    return open_udp(udp, where, options, true);
}

static void keep(CCUdp *u) {
    (void)cc__add(&u->refs, 1);
}
static void drop(CCUdp *u) {
    if (cc__sub(&u->refs, 1) == 1) cc__mem_free(u);
}

void cc_udp_close(CCUdp *u) {
    if (u == NULL) return;
    if (!cc__swap(&u->closed, 1)) (void)cc__fd_close_used(&u->use);
    drop(u);
}

int cc_udp_addr(CCUdp *u, CCAddr *addr) {
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    if (u == NULL || addr == NULL) return EINVAL;
    struct io_use use = u->use;
    int error = cc__fd_enter(&use);
    if (error != 0) return error;
    error = -cc__os_name(use.fd->number, false, (struct sockaddr *)&name, &length);
    cc__fd_leave(&use);
    return error != 0 ? error : cc_addr_from_sockaddr(addr, (struct sockaddr *)&name, length);
}

int cc_udp_fd(CCUdp *u) {
    return u == NULL ? -1 : u->use.fd->number;
}

/* ---- receive ---- */

static ssize_t attempt_receive(int fd, struct call *c, enum os_mode mode) {
    (void)mode;
    return cc__os_receive_many(fd, c->messages.list, c->messages.count);
}

static void prepare_receive(struct batch *b, const CCDatagram *list, unsigned count) {
    memset(b->list, 0, count * sizeof b->list[0]);
    for (unsigned i = 0; i < count; i++) {
        struct msghdr *m = &b->list[i].msg_hdr;
        b->parts[i] = (struct iovec){list[i].bytes, list[i].size};
        m->msg_iov = &b->parts[i];
        m->msg_iovlen = 1;
        m->msg_name = &b->names[i];
        m->msg_namelen = sizeof b->names[i];
        m->msg_control = &b->controls[i];
        m->msg_controllen = sizeof b->controls[i];
    }
}

static void note_received(struct batch *b, CCDatagram *list, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        struct msghdr *m = &b->list[i].msg_hdr;
        list[i].length = b->list[i].msg_len;
        list[i].segment = 0;
        list[i].reserved[0] = list[i].reserved[1] = 0;
        if (cc_addr_from_sockaddr(&list[i].addr, &b->names[i].any, m->msg_namelen) != 0) list[i].addr = (CCAddr){0};
        for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h != NULL; h = CMSG_NXTHDR(m, h)) {
            int segment;
            if (h->cmsg_level != IPPROTO_UDP || h->cmsg_type != UDP_GRO) continue;
            memcpy(&segment, CMSG_DATA(h), sizeof segment);
            if (segment > 0 && (size_t)segment < list[i].length) list[i].segment = (size_t)segment;
        }
    }
}

/* segment_max: for a receive the field is an output, and may have any value before. */
static bool bad_list(const CCUdp *u, const CCDatagram *list, size_t count, size_t segment_max) {
    if (u == NULL || (list == NULL && count > 0)) return true;
    for (size_t i = 0; i < count; i++)
        if ((list[i].bytes == NULL && list[i].size > 0) || list[i].segment > segment_max) return true;
    return false;
}

static bool uses_reserved(const CCDatagram *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (cc__reserved_used(&list[i]) || cc__reserved_used(&list[i].addr)) return true;
    return false;
}

/* The first batch waits if necessary, the others take what is available. */
static int receive(CCUdp *u, CCDatagram *list, size_t count, size_t *n, enum how how, CCDeadline deadline) {
    struct batch b;
    if (n == NULL) return EINVAL;
    *n = 0;
    if (bad_list(u, list, count, SIZE_MAX)) return EINVAL;
    if (count == 0) return 0;
    keep(u);
    int error = cc__get(&u->failed) != 0 ? (int)cc__swap(&u->failed, 0) : 0;
    while (error == 0 && *n < count) {
        unsigned part = count - *n < BATCH ? (unsigned)(count - *n) : BATCH;
        struct io_use use = u->use;
        struct call call = {.side = IO_READ, .attempt = attempt_receive, .messages = {b.list, part}};
        ssize_t got = 0;
        prepare_receive(&b, list + *n, part);
        error = cc__call_run(&use, &call, *n == 0 ? how : HOW_TRY, cc__wait_deadline(deadline), &got);
        if (error != 0) break;
        note_received(&b, list + *n, (unsigned)got);
        *n += (size_t)got;
        if ((unsigned)got < part) break;
    }
    if (*n > 0 && error != 0 && error != EAGAIN) cc__set(&u->failed, (uint32_t)error); /* the system reports it once */
    drop(u);
    return *n > 0 ? 0 : error;
}
int cc_udp_recv(CCUdp *udp, CCDatagram *list, size_t count, size_t *n) {
    return receive(udp, list, count, n, HOW_WAIT, CC_FOREVER);
}
int cc_udp_recv_try(CCUdp *udp, CCDatagram *list, size_t count, size_t *n) {
    return receive(udp, list, count, n, HOW_TRY, CC_FOREVER);
}
int cc_udp_recv_until(CCUdp *udp, CCDatagram *list, size_t count, size_t *n, CCDeadline deadline) {
    return receive(udp, list, count, n, HOW_WAIT, deadline);
}

/* ---- send ---- */

static ssize_t attempt_send(int fd, struct call *c, enum os_mode mode) {
    (void)mode;
    return cc__os_send_many(fd, c->messages.list, c->messages.count);
}

/* An IPv4 address as mapped for an IPv6 socket. */
static CCAddr mapped(const CCAddr *addr) {
    CCAddr six = {.kind = CC_ADDR_IP6, .length = 16, .port = addr->port, .bytes = {[10] = 0xff, [11] = 0xff}};
    memcpy(six.bytes + 12, addr->bytes, 4);
    return six;
}

static int prepare_message(CCUdp *u, struct batch *b, unsigned i, const CCDatagram *d, size_t from, size_t size,
                           size_t segment) {
    struct msghdr *m = &b->list[i].msg_hdr;
    memset(&b->list[i], 0, sizeof b->list[i]);
    b->parts[i] = (struct iovec){(char *)d->bytes + from, size};
    m->msg_iov = &b->parts[i];
    m->msg_iovlen = 1;
    if (d->addr.kind != CC_ADDR_NONE) {
        CCAddr addr = u->six && d->addr.kind == CC_ADDR_IP4 ? mapped(&d->addr) : d->addr;
        socklen_t length = sizeof b->names[i];
        int error = addr.kind == CC_ADDR_UNIX ? EAFNOSUPPORT : cc_addr_to_sockaddr(&addr, &b->names[i].any, &length);
        if (error != 0) return error;
        m->msg_name = &b->names[i];
        m->msg_namelen = length;
    }
    if (segment != 0) {
        uint16_t value = (uint16_t)segment;
        memset(&b->controls[i], 0, sizeof b->controls[i]);
        m->msg_control = &b->controls[i];
        m->msg_controllen = CMSG_SPACE(sizeof value);
        b->controls[i].header.cmsg_level = IPPROTO_UDP;
        b->controls[i].header.cmsg_type = UDP_SEGMENT;
        b->controls[i].header.cmsg_len = CMSG_LEN(sizeof value);
        memcpy(CMSG_DATA(&b->controls[i].header), &value, sizeof value);
    }
    return 0;
}

/* The progress of a send: whole datagrams of the list, and bytes of the next one, whose segments are sent one by
 * one. */
struct progress {
    size_t done, offset;
};

static bool is_joined(const CCDatagram *d) {
    return d->segment != 0 && d->size > d->segment;
}

/* How many bytes of it are sent next: all, or as many whole segments as the system splits at a time, or one. */
static size_t next_size(const CCDatagram *d, size_t left, bool gso) {
    if (!is_joined(d)) return left;
    size_t segments = gso ? GSO_BYTES / d->segment : 1;
    if (segments > GSO_SEGMENTS) segments = GSO_SEGMENTS;
    size_t most = segments > 0 ? segments * d->segment : d->segment;
    return left < most ? left : most;
}

/* Fills the next batch; *error is that of the first message that cannot be sent. */
static unsigned prepare_send(CCUdp *u, struct batch *b, const CCDatagram *list, size_t count, struct progress at,
                             bool gso, int *error) {
    unsigned n = 0;
    *error = 0;
    for (; n < BATCH && at.done < count; n++) {
        const CCDatagram *d = &list[at.done];
        size_t size = next_size(d, d->size - at.offset, gso);
        *error = prepare_message(u, b, n, d, at.offset, size, is_joined(d) && size > d->segment ? d->segment : 0);
        if (*error != 0) break;
        at.offset += size;
        if (at.offset >= d->size) at = (struct progress){at.done + 1, 0};
    }
    return n;
}

static void advance(const CCDatagram *list, const struct batch *b, unsigned sent, struct progress *at) {
    for (unsigned i = 0; i < sent; i++) {
        at->offset += b->parts[i].iov_len;
        if (at->offset >= list[at->done].size) *at = (struct progress){at->done + 1, 0};
    }
}

static bool is_refused(int error) {
    return error == EINVAL || error == EMSGSIZE || error == EIO;
}

static int send_all(CCUdp *u, const CCDatagram *list, size_t count, size_t *n, enum how how, CCDeadline deadline) {
    struct batch b;
    struct progress at = {0, 0};
    size_t ignored;
    int error = 0;
    if (n == NULL) n = &ignored;
    *n = 0;
    if (bad_list(u, list, count, UINT16_MAX) || uses_reserved(list, count)) return EINVAL;
    keep(u);
    bool gso = u->gso;
    while (error == 0 && at.done < count) {
        int unfit;
        unsigned part = prepare_send(u, &b, list, count, at, gso, &unfit);
        struct io_use use = u->use;
        struct call call = {.side = IO_WRITE, .attempt = attempt_send, .messages = {b.list, part}};
        ssize_t sent = 0;
        error = part == 0 ? unfit : cc__call_run(&use, &call, how, cc__wait_deadline(deadline), &sent);
        if (error == 0) advance(list, &b, (unsigned)sent, &at);
        if (gso && is_refused(error) && is_joined(&list[at.done])) {
            gso = false; /* not for these: longer than the path MTU, or without checksums */
            error = 0;
        }
    }
    drop(u);
    *n = at.done;
    return error == EAGAIN && at.done > 0 ? 0 : error;
}
int cc_udp_send(CCUdp *udp, const CCDatagram *list, size_t count, size_t *n) {
    return send_all(udp, list, count, n, HOW_WAIT, CC_FOREVER);
}
int cc_udp_send_try(CCUdp *udp, const CCDatagram *list, size_t count, size_t *n) {
    return send_all(udp, list, count, n, HOW_TRY, CC_FOREVER);
}
int cc_udp_send_until(CCUdp *udp, const CCDatagram *list, size_t count, size_t *n, CCDeadline deadline) {
    return send_all(udp, list, count, n, HOW_WAIT, deadline);
}
