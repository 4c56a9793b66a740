/* conn.c - a connection: OpenSSL between two pieces of memory, and fibers that carry bytes between these and the
 * connection below.
 *
 * TLS-3  `in` is empty when OpenSSL needs bytes, and the fiber that reads them holds `reading`, or `handshaking` before
 *        the connection is ready. So OpenSSL gets bytes in the order in which they arrived.
 * TLS-4  What OpenSSL has written is in `sending`, then `out`, and is sent in this order: the fiber that sends it holds
 *        `flushing`. Nothing of it is dropped unless the connection is broken, so that a write that was cancelled
 *        within a record does not corrupt the stream.
 * TLS-5  A connection that waits for its peer holds none of these buffers when they are empty, and OpenSSL none of its
 *        own; a fiber that has waited for a while returns what OpenSSL has used of its stack. `out` is bounded: a peer
 *        that causes answers and does not read them has to wait.
 * TLS-6  From `in_kernel` on the kernel encrypts what is sent (kTLS): bytes of the program are passed to the connection
 *        below unchanged, and `out` holds the other records of OpenSSL, each preceded by its type and length. All that
 *        was written before has been sent by then.
 * TLS-7  The kernel takes a record when TCP has some space, and drops what does not fit if the socket is closed then.
 *        So data counts as sent when the socket is writable again: then there is space for a record. */
#include "tls.h"

#include <ccc/cc_fd.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

enum {
    RECORD = 16 * 1024,   /* the most that one record holds */
    IN_SIZE = 32 * 1024,  /* the most that is read at a time */
    OUT_HIGH = 64 * 1024, /* the most that is encrypted before it is sent */
    OUT_MAX = 128 * 1024, /* the most that OpenSSL may leave in `out` */
    POLL_FIRST_MS = 1,
    POLL_LAST_MS = 64,
    NOTICE_MS = 1000, /* the close_notify: how long it waits for space before it checks for a reader */
    IDLE_MS = 250,    /* for so long a connection keeps the stack that OpenSSL has used */
    DRAIN_MAX = 64 * 1024,
    WHY_SIZE = 320,
    /* TLS-7: a socket is writable when a third of its buffer is free, which has to be more than a record. */
    KERNEL_ROOM = 64 * 1024,
    RECORD_HEAD = 3, /* in `out`: the type and the length of a record that the kernel is to encrypt */
};

/* What OpenSSL asks a BIO; these two are named in a comment of its header only. */
enum { SET_KTLS = 72, SET_RECORD_TYPE = 74 };
/* linux/tls.h */
enum { LEVEL_TLS = 282, CONTROL_RECORD_TYPE = 1 };

struct bytes {
    unsigned char *at;
    size_t begin, end, size;
};

struct tls_conn {
    CCConn *under;
    CCTls *tls;
    SSL *ssl;
    char *host;          /* of a client; NULL: any host */
    CCMutex handshaking; /* one makes the handshake, others wait for it */
    CCMutex reading;     /* TLS-3 */
    CCMutex writing;     /* the records of one write follow one another */
    CCMutex flushing;    /* TLS-4 */
    pthread_mutex_t lock;
    int saved_errno;
    /* lock: */
    struct bytes in, out, sending;
    CCDeadline handshake_until; /* from the first step on */
    bool in_ended;              /* nothing comes behind `in` */
    bool ready;                 /* the handshake has been made */
    bool begun;                 /* the handshake: the first step was made */
    bool has_place;             /* in CCTls.handshakes */
    bool closing;               /* tls_close has begun: no more writes */
    bool closed, aborted;
    bool read_shut;
    bool in_kernel;            /* TLS-6; does not change once `ready` is set */
    bool held;                 /* TLS-7: something was sent since the socket was last seen writable */
    bool spliced;              /* some of it came out of a pipe */
    unsigned char record_type; /* of the next record that OpenSSL writes, if in_kernel; 0: it has not said */
    bool noticed;              /* the close notify was written */
    bool carried;              /* a call waits in `under` to send */
    unsigned inside;           /* calls */
    int broken;                /* an errno value that every call returns */
    int write_broken;          /* that every write returns: the peer does not read any more */
    char *why;                 /* the sentence of `broken` */
};

static const CCConnOps tls_ops;

static CCDeadline earlier(CCDeadline a, CCDeadline b) {
    return b.ns == 0 || (a.ns != 0 && a.ns < b.ns) ? a : b;
}

/* ---- steps: between two switches ---- */

/* errno is the thread's: these are not inlined, so that its address is not kept across a switch. */
static __attribute__((noinline)) void begin_step(struct tls_conn *t) {
    int saved = errno;
    (void)pthread_mutex_lock(&t->lock);
    t->saved_errno = saved;
    ERR_clear_error();
}
static __attribute__((noinline)) void end_step(struct tls_conn *t) {
    int saved = t->saved_errno;
    (void)pthread_mutex_unlock(&t->lock);
    errno = saved;
}

enum step { STEP_DONE, STEP_WANTS_BYTES, STEP_WANTS_ROOM, STEP_END, STEP_FAILED };

static void set_broken_locked(struct tls_conn *t, int code, const char *why) {
    if (t->broken != 0) return;
    t->broken = code;
    t->why = strdup(why);
}

/* What a call of OpenSSL has returned. */
static enum step judge_locked(struct tls_conn *t, int rc) {
    char why[WHY_SIZE];
    switch (SSL_get_error(t->ssl, rc)) {
    case SSL_ERROR_NONE:
        return STEP_DONE;
    case SSL_ERROR_WANT_READ:
        return STEP_WANTS_BYTES;
    case SSL_ERROR_WANT_WRITE:
        return STEP_WANTS_ROOM;
    case SSL_ERROR_ZERO_RETURN:
        return STEP_END;
    default: {
        int code = cc__tls_explain(t->ssl, t->ready,
                                   t->host != NULL  ? t->host
                                   : t->tls->server ? "the client"
                                                    : NULL,
                                   why, sizeof why);
        set_broken_locked(t, code, why);
        return STEP_FAILED;
    }
    }
}

/* The error that stays, with its sentence. */
static int tell_broken_locked(struct tls_conn *t) {
    return cc__tls_fail(t->broken, "%s", t->why != NULL ? t->why : "TLS has failed");
}

/* ---- memory that OpenSSL reads and writes ---- */

static void free_bytes(struct bytes *b) {
    free(b->at);
    *b = (struct bytes){0};
}

/* Something to send, or NULL: all has gone out. The caller holds `flushing`. */
static struct bytes *next_to_send_locked(struct tls_conn *t) {
    if (t->sending.begin == t->sending.end && t->out.begin < t->out.end) {
        struct bytes empty = t->sending;
        t->sending = t->out;
        t->out = empty;
        t->out.begin = t->out.end = 0;
    }
    if (t->write_broken != 0 || t->sending.begin == t->sending.end) {
        free_bytes(&t->sending);
        free_bytes(&t->out);
        return NULL;
    }
    return &t->sending;
}

/* TLS-6. keys: OpenSSL's own struct, which its BIO of sockets can read. false: as before; and for new keys, which
 * OpenSSL cannot change there. */
static bool move_to_kernel_locked(struct tls_conn *t, long sending, void *keys) {
    int fd = cc_conn_fd(t->under), room = 0;
    socklen_t length = sizeof room;
    if (t->in_kernel || !cc_conn_is_plain(t->under)) return false;
    if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &length) != 0 || room < KERNEL_ROOM) return false;
    if (cc_mutex_lock_try(&t->flushing) != 0) return false;
    struct bytes *next;
    while ((next = next_to_send_locked(t)) != NULL) {
        ssize_t n = send(fd, next->at + next->begin, next->end - next->begin, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0) break;
        next->begin += (size_t)n;
    }
    BIO *socket = next == NULL ? BIO_new_socket(fd, BIO_NOCLOSE) : NULL;
    t->in_kernel = socket != NULL && BIO_ctrl(socket, SET_KTLS, sending, keys) > 0;
    (void)BIO_free(socket);
    (void)cc_mutex_unlock(&t->flushing);
    return t->in_kernel;
}

static int bio_read(BIO *bio, char *to, size_t size, size_t *n) {
    struct tls_conn *t = BIO_get_data(bio);
    size_t have = t->in.end - t->in.begin;
    BIO_clear_retry_flags(bio);
    *n = have < size ? have : size;
    if (*n == 0) {
        if (!t->in_ended) BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(to, t->in.at + t->in.begin, *n);
    t->in.begin += *n;
    return 1;
}

static void set_head(unsigned char *at, unsigned char type, size_t size) {
    at[0] = type;
    at[1] = (unsigned char)(size >> 8);
    at[2] = (unsigned char)size;
}

static int bio_write(BIO *bio, const char *from, size_t size, size_t *n) {
    struct tls_conn *t = BIO_get_data(bio);
    struct bytes *out = &t->out;
    size_t head = t->in_kernel ? RECORD_HEAD : 0;
    BIO_clear_retry_flags(bio);
    *n = 0;
    if (t->in_kernel && (t->record_type == 0 || size > RECORD)) { /* bytes of the program do not come this way */
        ERR_raise(ERR_LIB_BIO, ERR_R_INTERNAL_ERROR);
        return 0;
    }
    if (t->write_broken != 0) { /* the peer does not read; its last bytes can still be read */
        *n = size;
        return 1;
    }
    if (out->end + head + size > OUT_MAX) {
        BIO_set_retry_write(bio);
        return 0;
    }
    if (out->end + head + size > out->size) {
        size_t larger = out->size != 0 ? out->size : RECORD + 1024;
        while (larger < out->end + head + size) larger *= 2;
        unsigned char *moved = realloc(out->at, larger);
        if (moved == NULL) {
            ERR_raise(ERR_LIB_BIO, ERR_R_MALLOC_FAILURE);
            return 0;
        }
        out->at = moved;
        out->size = larger;
    }
    if (t->in_kernel) set_head(out->at + out->end, t->record_type, size);
    t->record_type = 0;
    memcpy(out->at + out->end + head, from, size);
    out->end += head + size;
    *n = size;
    return 1;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer) {
    struct tls_conn *t = BIO_get_data(bio);
    switch (command) {
    case BIO_CTRL_EOF:
        return t->in_ended && t->in.begin == t->in.end;
    case BIO_CTRL_FLUSH:
        return 1;
    case SET_KTLS:
        return number != 0 && move_to_kernel_locked(t, number, pointer); /* what is received stays here */
    case BIO_CTRL_GET_KTLS_SEND:
        return t->in_kernel;
    case SET_RECORD_TYPE:
        t->record_type = (unsigned char)number;
        return 0;
    default:
        return 0;
    }
}

static BIO_METHOD *method; /* for ever: fibers may use it when the program exits */
static pthread_once_t method_once = PTHREAD_ONCE_INIT;

static void make_method(void) {
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ccc");
    if (method == NULL) return;
    (void)BIO_meth_set_read_ex(method, bio_read);
    (void)BIO_meth_set_write_ex(method, bio_write);
    (void)BIO_meth_set_ctrl(method, bio_ctrl);
}

/* ---- sending ---- */

/* One record of `out`, by the kernel; its head is moved behind what was sent. */
static int send_record(struct tls_conn *t, unsigned char *at, size_t *put, bool wait, CCDeadline deadline) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(1)];
    } control = {.head = {.cmsg_len = CMSG_LEN(1), .cmsg_level = LEVEL_TLS, .cmsg_type = CONTROL_RECORD_TYPE}};
    size_t n, size = (size_t)at[1] << 8 | at[2];
    struct iovec part = {at + RECORD_HEAD, size};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    *CMSG_DATA(&control.head) = at[0];
    int fd = cc_conn_fd(t->under);
    int error = wait ? cc_fd_sendmsg_until(fd, &message, 0, &n, deadline) : cc_fd_sendmsg_try(fd, &message, 0, &n);
    if (error != 0) return error;
    *put = n < size ? n : RECORD_HEAD + size;
    if (n < size) set_head(at + n, at[0], size - n);
    return 0;
}

/* After a call of the connection below that sends. EINVAL: the kernel does not take bytes from a pipe. */
static int sent(struct tls_conn *t, int error, size_t put, bool wait) {
    begin_step(t);
    t->sending.begin += put;
    t->carried = false;
    t->held = t->in_kernel;
    if (t->closed && error != 0 && error != EAGAIN && wait) error = EBADF;
    if (error != 0 && error != EAGAIN && error != ECANCELED && error != ETIMEDOUT && error != ENOMEM &&
        error != EINVAL) {
        t->write_broken = error;
        (void)next_to_send_locked(t);
    }
    end_step(t);
    return error;
}

/* TLS-7. The caller holds `flushing`. */
static int await_room(struct tls_conn *t, bool wait, CCDeadline deadline) {
    int fd = cc_conn_fd(t->under);
    int error = wait ? cc_fd_wait_until(fd, CC_WRITABLE, NULL, deadline) : cc_fd_wait_try(fd, CC_WRITABLE, NULL);
    begin_step(t);
    if (error == 0) t->held = false;
    if (t->closed && error != EAGAIN) error = EBADF; /* what was shut down is writable */
    end_step(t);
    return error;
}

/* Sends what OpenSSL has written. 0, or an errno value: then it is kept, unless the peer does not read any more.
 * EAGAIN: not all of it can be sent without waiting. */
static int flush(struct tls_conn *t, bool wait, CCDeadline deadline) {
    int error = wait ? cc_mutex_lock_until(&t->flushing, deadline) : cc_mutex_lock_try(&t->flushing);
    if (error != 0) return error;
    for (;;) {
        size_t put = 0;
        begin_step(t);
        const struct bytes *next = next_to_send_locked(t);
        bool in_kernel = t->in_kernel, held = t->held;
        t->carried = wait && next != NULL;
        end_step(t);
        if (next == NULL && held) error = await_room(t, wait, deadline);
        if (next == NULL && held && error == 0) continue; /* another fiber may have written meanwhile */
        if (next == NULL) break;
        unsigned char *from = next->at + next->begin; /* TLS-4: no other fiber changes `sending` */
        size_t size = next->end - next->begin;
        error = in_kernel ? send_record(t, from, &put, wait, deadline)
                : wait    ? cc_write_until(t->under, from, size, &put, deadline)
                          : cc_write_try(t->under, from, size, &put);
        error = sent(t, error, put, wait);
        if (error != 0) break;
    }
    (void)cc_mutex_unlock(&t->flushing);
    return error;
}

static bool has_output_locked(const struct tls_conn *t) {
    return t->out.begin < t->out.end || t->sending.begin < t->sending.end;
}

/* ---- receiving ---- */

/* TLS-5, of the stack: OpenSSL goes deep, and a connection may be idle for hours. */
static int await_idle(struct tls_conn *t, bool drained, CCDeadline deadline) {
    CCDeadline first = cc_after_ms(IDLE_MS);
    if (deadline.ns != 0 && deadline.ns <= first.ns) return cc_conn_await(t->under, drained, deadline);
    int error = cc_conn_await(t->under, drained, first);
    if (error != ETIMEDOUT || cc_now_ns() < first.ns) return error;
    (void)cc_fiber_trim_stack();
    return cc_conn_await(t->under, drained, deadline);
}

/* Until a read of the connection below may find something. Bytes that are left of a write, and that no other fiber
 * sends, are tried again meanwhile: the peer may wait for them. */
static int await_bytes(struct tls_conn *t, bool drained, CCDeadline deadline) {
    for (uint64_t pause = POLL_FIRST_MS;; pause = pause < POLL_LAST_MS ? pause * 2 : pause) {
        begin_step(t);
        if (t->in.begin == t->in.end) free_bytes(&t->in); /* TLS-5 */
        bool left = has_output_locked(t) && !t->carried;
        end_step(t);
        if (!left || flush(t, false, CC_FOREVER) != EAGAIN) return await_idle(t, drained, deadline);
        CCDeadline next = cc_after_ms(pause), until = earlier(next, deadline);
        int error = cc_conn_await(t->under, drained, until);
        if (error != ETIMEDOUT || until.ns != next.ns) return error;
        drained = true;
    }
}

/* Gets bytes for OpenSSL, which has none (TLS-3). EAGAIN: there are none, and it is not to wait. */
static int fill(struct tls_conn *t, bool wait, CCDeadline deadline) {
    for (bool drained = false;; drained = true) {
        size_t n = 0;
        int error = wait ? await_bytes(t, drained, deadline) : 0;
        if (error == 0 && t->in.at == NULL) {
            t->in.at = malloc(IN_SIZE);
            if (t->in.at == NULL) error = ENOMEM;
        }
        if (error == 0) error = cc_read_try(t->under, t->in.at, IN_SIZE, &n);
        begin_step(t);
        t->in.begin = 0;
        t->in.end = n;
        if (error == 0 && n == 0) t->in_ended = true;
        if (t->closed) error = EBADF;
        if (n == 0) free_bytes(&t->in);
        end_step(t);
        if (error != EAGAIN || !wait) return error;
    }
}

/* ---- the handshake ---- */

static void give_place_back_locked(struct tls_conn *t) {
    if (t->has_place) (void)cc_sem_release(&t->tls->handshakes, 1);
    t->has_place = false;
}

/* A server's slot among the handshakes in progress. It is taken when the client has sent something. */
static int take_place(struct tls_conn *t, bool wait, CCDeadline deadline) {
    begin_step(t);
    bool needed = t->tls->server && !t->has_place;
    bool silent = t->in.begin == t->in.end && !t->in_ended;
    end_step(t);
    if (!needed) return 0;
    int error = silent ? fill(t, wait, deadline) : 0;
    if (error == 0)
        error = wait ? cc_sem_acquire_until(&t->tls->handshakes, deadline) : cc_sem_acquire_try(&t->tls->handshakes);
    if (error != 0) return error;
    begin_step(t);
    t->has_place = true;
    end_step(t);
    return 0;
}

static enum step handshake_step(struct tls_conn *t, int *error) {
    enum step step = STEP_FAILED;
    begin_step(t);
    if (t->closed) {
        *error = EBADF;
    } else if (t->broken != 0) {
        *error = tell_broken_locked(t);
    } else {
        step = judge_locked(t, SSL_do_handshake(t->ssl));
        if (step == STEP_END) { /* a close_notify before the end of the handshake */
            set_broken_locked(t, ECONNRESET, "the peer has closed the connection during the handshake");
            step = STEP_FAILED;
        }
        if (step == STEP_FAILED) *error = tell_broken_locked(t);
        if (step == STEP_DONE) t->ready = true;
    }
    if (step == STEP_DONE || step == STEP_FAILED) give_place_back_locked(t);
    end_step(t);
    return step;
}

/* The caller holds `handshaking`. */
static int make_handshake(struct tls_conn *t, bool wait, CCDeadline deadline) {
    int error = take_place(t, wait, deadline);
    while (error == 0) {
        enum step step = handshake_step(t, &error);
        if (step == STEP_FAILED) {
            (void)flush(t, false, CC_FOREVER); /* the alert */
            return error;
        }
        int sent = flush(t, wait, deadline);
        /* A peer that does not read any more may have sent an alert. */
        if (sent == ECANCELED || sent == ETIMEDOUT || sent == ENOMEM || sent == EBADF) return sent;
        if (step == STEP_DONE) return 0;
        if (step == STEP_WANTS_ROOM && sent == EAGAIN) return EAGAIN;
        if (step == STEP_WANTS_BYTES) error = fill(t, wait, deadline);
    }
    return error;
}

/* 0: the connection is ready. */
static int handshake(struct tls_conn *t, bool wait, CCDeadline deadline) {
    begin_step(t);
    bool ready = t->ready;
    if (!t->begun) {
        t->begun = true;
        t->handshake_until = cc_after_ms(t->tls->handshake_ms);
    }
    CCDeadline limit = t->handshake_until;
    end_step(t);
    if (ready) return 0;
    CCDeadline until = earlier(limit, deadline);
    int error = wait ? cc_mutex_lock_until(&t->handshaking, until) : cc_mutex_lock_try(&t->handshaking);
    if (error == 0) {
        begin_step(t);
        ready = t->ready;
        if (t->broken != 0) error = tell_broken_locked(t);
        if (t->closed) error = EBADF;
        end_step(t);
        if (!ready && error == 0) error = make_handshake(t, wait, until);
        (void)cc_mutex_unlock(&t->handshaking);
    }
    if ((error == ETIMEDOUT || error == EAGAIN) && cc_now_ns() >= limit.ns) {
        begin_step(t);
        if (!t->ready) {
            set_broken_locked(t, ETIMEDOUT, "the handshake has taken too long");
            give_place_back_locked(t);
            error = tell_broken_locked(t);
        }
        end_step(t);
    }
    return error;
}

/* ---- calls come and go ---- */

static void enter(struct tls_conn *t) {
    begin_step(t);
    t->inside++;
    end_step(t);
}
static int leave(struct tls_conn *t, int error) {
    begin_step(t);
    t->inside--;
    if (t->closed && error != 0) error = EBADF;
    end_step(t);
    return error;
}

/* ---- reading ---- */

struct place {
    const struct iovec *parts;
    int count;
    size_t skipped; /* bytes of parts[0] that are filled */
};

static bool next_piece(struct place *p, void **at, size_t *size) {
    while (p->count > 0 && p->skipped == p->parts[0].iov_len) {
        p->parts++;
        p->count--;
        p->skipped = 0;
    }
    if (p->count == 0) return false;
    *at = (char *)p->parts[0].iov_base + p->skipped;
    *size = p->parts[0].iov_len - p->skipped;
    return true;
}

/* Reads what OpenSSL has, or can decrypt of what is in memory. */
static enum step read_step(struct tls_conn *t, struct place *to, size_t *n, int *error) {
    enum step step = STEP_DONE;
    void *at;
    size_t size;
    begin_step(t);
    if (t->closed) {
        *error = EBADF;
        step = STEP_FAILED;
    } else if (t->read_shut) {
        step = STEP_END;
    }
    while (step == STEP_DONE && next_piece(to, &at, &size)) {
        size_t got = 0;
        if (t->broken != 0)
            step = STEP_FAILED;
        else
            step = judge_locked(t, SSL_read_ex(t->ssl, at, size, &got));
        to->skipped += got;
        *n += got;
        if (t->in.begin == t->in.end && SSL_pending(t->ssl) == 0) break;
    }
    if (step == STEP_FAILED && *error == 0) *error = tell_broken_locked(t);
    if (*n > 0) step = STEP_DONE; /* what ended it stays */
    if (step == STEP_DONE) *error = 0;
    end_step(t);
    return step;
}

static bool nothing_here(struct tls_conn *t) {
    begin_step(t);
    bool nothing = t->in.begin == t->in.end && !t->in_ended && !SSL_has_pending(t->ssl) && t->broken == 0 &&
                   !t->read_shut && !t->closed && !(SSL_get_shutdown(t->ssl) & SSL_RECEIVED_SHUTDOWN);
    end_step(t);
    return nothing;
}

/* The error of `under`, or what it means here. */
static int after_fill(struct tls_conn *t, int error) {
    begin_step(t);
    if (error != 0 && t->read_shut) error = 0; /* the next step sees it */
    end_step(t);
    return error;
}

static int read_held(struct tls_conn *t, struct place *to, size_t *n, bool wait, CCDeadline deadline) {
    int error = 0;
    if (wait && nothing_here(t)) error = after_fill(t, fill(t, true, deadline));
    while (error == 0) {
        switch (read_step(t, to, n, &error)) {
        case STEP_DONE:
        case STEP_END:
            return 0;
        case STEP_FAILED:
            (void)flush(t, false, CC_FOREVER); /* the alert */
            return error;
        case STEP_WANTS_ROOM:
            error = flush(t, wait, deadline);
            break;
        case STEP_WANTS_BYTES:
            error = after_fill(t, fill(t, wait, deadline));
            break;
        }
    }
    return error;
}

static int tls_read(void *state, const struct iovec *parts, int count, size_t *n, bool wait, CCDeadline deadline) {
    struct tls_conn *t = state;
    struct place to = {parts, count, 0};
    void *at;
    size_t size;
    enter(t);
    int error = handshake(t, wait, deadline);
    if (!next_piece(&to, &at, &size)) return leave(t, error);
    if (error == 0) error = wait ? cc_mutex_lock_until(&t->reading, deadline) : cc_mutex_lock_try(&t->reading);
    if (error == 0) {
        error = read_held(t, &to, n, wait, deadline);
        (void)cc_mutex_unlock(&t->reading);
    }
    return leave(t, error);
}

static int tls_await(void *state, bool drained, CCDeadline deadline) {
    struct tls_conn *t = state;
    enter(t);
    int error = handshake(t, true, deadline);
    if (error == 0) error = cc_mutex_lock_until(&t->reading, deadline);
    if (error == 0) {
        if (drained || nothing_here(t)) error = after_fill(t, await_bytes(t, drained, deadline));
        (void)cc_mutex_unlock(&t->reading);
    }
    return leave(t, error);
}

/* ---- writing ---- */

static int write_error_locked(struct tls_conn *t) {
    return t->closing             ? EBADF
           : t->broken != 0       ? tell_broken_locked(t)
           : t->write_broken != 0 ? t->write_broken
           : t->noticed           ? EPIPE
                                  : 0;
}

/* Encrypts until all is done, or enough: one record if one is not to wait. */
static int write_step(struct tls_conn *t, struct place *from, size_t *n, bool wait, bool *more) {
    void *at;
    size_t size;
    begin_step(t);
    int error = write_error_locked(t);
    if (error == 0 && !wait && has_output_locked(t)) error = EAGAIN;
    *more = false;
    while (error == 0 && next_piece(from, &at, &size)) {
        size_t put = 0;
        *more = t->out.end >= OUT_HIGH || (!wait && has_output_locked(t));
        if (*more) break;
        enum step step = judge_locked(t, SSL_write_ex(t->ssl, at, size < RECORD ? size : RECORD, &put));
        from->skipped += put;
        *n += put;
        if (step == STEP_WANTS_ROOM) {
            *more = true;
            break;
        }
        if (step == STEP_WANTS_BYTES || step == STEP_END)
            set_broken_locked(t, EPROTO, "OpenSSL cannot write before it has read");
        if (t->broken != 0) error = tell_broken_locked(t);
    }
    end_step(t);
    return error;
}

static int write_held(struct tls_conn *t, struct place *from, size_t *n, bool wait, CCDeadline deadline) {
    int error = flush(t, wait, deadline); /* what an earlier one has left */
    if (error != 0 && error != EAGAIN) return error;
    for (bool more = true; more;) {
        error = write_step(t, from, n, wait, &more);
        int sent = flush(t, wait, deadline);
        if (error == 0 && sent != EAGAIN) error = sent;
        if (error == 0 && sent == EAGAIN) more = false;
        if (error != 0) break;
    }
    return error == EAGAIN && *n > 0 ? 0 : error;
}

/* Small pieces together, so that they share a record. */
static int write_joined(struct tls_conn *t, const struct iovec *parts, int count, size_t total, size_t *n, bool wait,
                        CCDeadline deadline) {
    unsigned char *all = malloc(total);
    if (all == NULL) return ENOMEM;
    size_t end = 0;
    for (int i = 0; i < count; i++) {
        if (parts[i].iov_len > 0) memcpy(all + end, parts[i].iov_base, parts[i].iov_len);
        end += parts[i].iov_len;
    }
    struct iovec one = {all, total};
    struct place from = {&one, 1, 0};
    int error = write_held(t, &from, n, wait, deadline);
    free(all);
    return error;
}

/* TLS-6: to the connection below, as it is; from parts, or from a pipe if there are none. The caller holds
 * `writing`. */
static int write_by_kernel(struct tls_conn *t, const struct iovec *parts, int count, int pipe, size_t size, size_t *n,
                           bool wait, CCDeadline deadline) {
    int error = flush(t, wait, deadline);
    if (error == 0) error = wait ? cc_mutex_lock_until(&t->flushing, deadline) : cc_mutex_lock_try(&t->flushing);
    if (error != 0) return error;
    begin_step(t);
    if (SSL_get_key_update_type(t->ssl) != SSL_KEY_UPDATE_NONE)
        set_broken_locked(t, EPROTO, "the peer asks for new keys, and the kernel keeps its own");
    error = write_error_locked(t);
    bool sends = error == 0 && size > 0;
    t->carried = sends && wait;
    if (sends && parts == NULL) t->spliced = true;
    end_step(t);
    if (sends) {
        error = parts == NULL ? cc_fd_splice_until(pipe, cc_conn_fd(t->under), size, n, deadline)
                : wait        ? cc_writev_until(t->under, parts, count, n, deadline)
                              : cc_writev_try(t->under, parts, count, n);
        error = sent(t, error, 0, wait);
    }
    (void)cc_mutex_unlock(&t->flushing);
    if (error != 0 || !sends) return error;
    error = flush(t, wait, deadline);
    return error == EAGAIN ? 0 : error;
}

static int tls_write(void *state, const struct iovec *parts, int count, size_t *n, bool wait, CCDeadline deadline) {
    struct tls_conn *t = state;
    struct place from = {parts, count, 0};
    size_t total = 0;
    for (int i = 0; i < count; i++) total += parts[i].iov_len;
    enter(t);
    int error = handshake(t, wait, deadline);
    if (error == 0) error = wait ? cc_mutex_lock_until(&t->writing, deadline) : cc_mutex_lock_try(&t->writing);
    if (error == 0) {
        error = t->in_kernel ? write_by_kernel(t, parts, count, -1, total, n, wait, deadline)
                : count > 1 && total > 0 && total <= RECORD ? write_joined(t, parts, count, total, n, wait, deadline)
                                                            : write_held(t, &from, n, wait, deadline);
        (void)cc_mutex_unlock(&t->writing);
    }
    return leave(t, error);
}

static int tls_splice(void *state, int pipe, size_t count, size_t *n, CCDeadline deadline) {
    struct tls_conn *t = state;
    begin_step(t);
    t->inside++;
    int error = t->ready && t->in_kernel ? 0 : EINVAL;
    end_step(t);
    if (error == 0 && count > 0) error = cc_mutex_lock_until(&t->writing, deadline);
    if (error == 0 && count > 0) {
        error = write_by_kernel(t, NULL, 0, pipe, count, n, true, deadline);
        (void)cc_mutex_unlock(&t->writing);
    }
    return leave(t, error);
}

/* ---- ends ---- */

/* The close_notify; nothing is written after it. */
static void notify_locked(struct tls_conn *t) {
    if (t->noticed || !t->ready || t->broken != 0) return;
    t->noticed = true;
    (void)SSL_shutdown(t->ssl);
    ERR_clear_error();
}

static bool somebody_reads(struct tls_conn *t) {
    if (cc_mutex_lock_try(&t->reading) != 0) return true;
    (void)cc_mutex_unlock(&t->reading);
    return false;
}

/* A close_notify without space waits for it, as a write does. It cannot be left to a reading fiber, which sends what it
 * finds before it waits for the peer, and may already wait. If no fiber reads, the peer may wait for the caller to do
 * so: then the close_notify is kept here after a while, and the next read that waits sends it. */
static int send_notice(struct tls_conn *t) {
    int error = flush(t, false, CC_FOREVER);
    while (error == EAGAIN) {
        CCDeadline until = cc_after_ms(NOTICE_MS);
        error = flush(t, true, until);
        if (error != ETIMEDOUT || cc_now_ns() < until.ns) break; /* a deadline of the connection below */
        if (!somebody_reads(t)) return 0;
        error = EAGAIN;
    }
    bool left = error == ECANCELED || error == ETIMEDOUT || error == ENOMEM || error == EBADF;
    return left ? error : 0; /* else there is no peer to send it to */
}

static int tls_shutdown(void *state, bool read, bool write) {
    struct tls_conn *t = state;
    begin_step(t);
    t->inside++;
    bool unfinished = write && (!t->ready || (t->carried && !t->noticed)); /* noticed: the end itself will follow */
    if (write && !unfinished) notify_locked(t);
    if (write) t->noticed = true;
    if (read) t->read_shut = true;
    end_step(t);
    int error = 0;
    bool both = read && write; /* waits of others are to end */
    if (write && !unfinished && both) (void)flush(t, false, CC_FOREVER);
    if (write && !unfinished && !both) error = send_notice(t);
    if (both || read || unfinished)
        error = cc_shutdown(t->under, both ? CC_SHUT_BOTH : read ? CC_SHUT_READ : CC_SHUT_WRITE);
    return leave(t, error);
}

/* A connection with unread bytes is reset when it is closed, and the peer loses what it has not read. Bytes that the
 * program did not write must not cause that: the tickets of a server, which a client that only writes never reads, and
 * the close_notify of a client that has ended its side before the answer. */
static void drain(struct tls_conn *t) {
    unsigned char ignored[1024];
    size_t n = 0;
    if (cc_mutex_lock_try(&t->reading) != 0) return;
    for (size_t sum = 0; sum < DRAIN_MAX && cc_read_try(t->under, ignored, sizeof ignored, &n) == 0 && n > 0;) sum += n;
    (void)cc_mutex_unlock(&t->reading);
}

static void tls_close(void *state, bool abort) {
    struct tls_conn *t = state;
    begin_step(t);
    bool quiet = t->inside == 0;
    t->closing = true;
    if (!abort && !t->carried) notify_locked(t);
    bool send = !abort && has_output_locked(t);
    t->inside++; /* flush sees errors as they are */
    end_step(t);
    if (send) (void)flush(t, false, CC_FOREVER);
    if (quiet && !abort) drain(t);
    begin_step(t);
    t->inside--;
    t->closed = true;
    t->aborted = abort;
    end_step(t);
    if (!quiet) (void)cc_shutdown(t->under, CC_SHUT_BOTH);
}

static void free_conn(struct tls_conn *t) {
    begin_step(t);
    give_place_back_locked(t);
    SSL_free(t->ssl);
    ERR_clear_error();
    end_step(t);
    free_bytes(&t->in);
    free_bytes(&t->out);
    free_bytes(&t->sending);
    (void)pthread_mutex_destroy(&t->lock);
    cc__tls_drop(t->tls);
    free(t->host);
    free(t->why);
    free(t);
}

/* TLS-7: a socket that is closed sends what it holds back. If that came out of a pipe, and the peer does not read any
 * more, the system raises SIGPIPE for it, as splice(2) does. Nothing here switches. */
static __attribute__((noinline)) void close_quietly(CCConn *under, void (*end)(CCConn *)) {
    struct timespec now = {0, 0};
    sigset_t signal, before, pending;
    int saved = errno;
    sigemptyset(&signal);
    sigaddset(&signal, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &signal, &before);
    end(under);
    if (!sigismember(&pending, SIGPIPE))
        while (sigtimedwait(&signal, NULL, &now) < 0 && errno == EINTR) {
        }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
}

static void tls_free(void *state) {
    struct tls_conn *t = state;
    CCConn *under = t->under;
    void (*end)(CCConn *) = t->aborted ? cc_abort : cc_close;
    bool spliced = t->spliced;
    free_conn(t);
    if (spliced)
        close_quietly(under, end);
    else
        end(under);
}

/* ---- about a connection ---- */

static int alive_held(struct tls_conn *t) {
    for (;;) {
        char byte;
        size_t n;
        int error = 0;
        begin_step(t);
        enum step step = STEP_FAILED;
        if (t->closed)
            error = EBADF;
        else if (t->read_shut)
            step = STEP_END;
        else if (t->broken == 0)
            step = judge_locked(t, SSL_peek_ex(t->ssl, &byte, 1, &n));
        if (step == STEP_FAILED && error == 0) error = tell_broken_locked(t);
        end_step(t);
        if (step == STEP_DONE) return EAGAIN;
        if (step == STEP_END) return ENODATA;
        if (step == STEP_WANTS_BYTES) error = fill(t, false, CC_FOREVER);
        if (step == STEP_WANTS_ROOM) error = flush(t, false, CC_FOREVER);
        if (error == EAGAIN) return 0;
        if (error != 0) return error;
    }
}

static int tls_alive(void *state) {
    struct tls_conn *t = state;
    enter(t);
    begin_step(t);
    bool ready = t->ready;
    int error = t->broken != 0 ? tell_broken_locked(t) : 0;
    end_step(t);
    if (error == 0 && !ready) {
        error = cc_conn_alive(t->under);
    } else if (error == 0 && cc_mutex_lock_try(&t->reading) == 0) { /* else a reader would have noticed */
        error = alive_held(t);
        (void)cc_mutex_unlock(&t->reading);
    }
    return leave(t, error);
}

static int tls_name(void *state, bool peer, CCAddr *addr) {
    CCConn *under = ((struct tls_conn *)state)->under;
    return peer ? cc_conn_peer(under, addr) : cc_conn_local(under, addr);
}

static int tls_fd(void *state) {
    return cc_conn_fd(((struct tls_conn *)state)->under);
}

static const CCConnOps tls_ops = {
    .read = tls_read,
    .write = tls_write,
    .await = tls_await,
    .shutdown = tls_shutdown,
    .alive = tls_alive,
    .name = tls_name,
    .fd = tls_fd,
    .close = tls_close,
    .free = tls_free,
    .splice = tls_splice,
};

/* ---- make some ---- */

const char *cc__tls_conn_host(const SSL *ssl, CCTls **tls) {
    const struct tls_conn *t = SSL_get_app_data(ssl);
    *tls = t->tls;
    return t->host;
}

/* A host that is an IP address has no name to send, and is compared with other fields of the certificate. */
static bool expect_host(SSL *ssl, const char *host) {
    char plain[64];
    size_t length = strcspn(host, "%"); /* without the zone */
    if (length < sizeof plain) {
        memcpy(plain, host, length);
        plain[length] = 0;
        if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), plain) == 1) return true;
    }
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

static int set_up_client(struct tls_conn *t, const char *host, CCTlsVerify verify) {
    SSL_set_connect_state(t->ssl);
    if (host == NULL)
        return verify == CC_TLS_VERIFY_NONE ? 0 : cc__tls_fail(EINVAL, "the host that is to be expected is missing");
    size_t length = strlen(host);
    t->host = strndup(host, length > 0 && host[length - 1] == '.' ? length - 1 : length); /* "example.org." */
    if (t->host == NULL) return cc__tls_fail(ENOMEM, "there is no memory for TLS");
    if (!expect_host(t->ssl, t->host)) return cc__tls_fail(EINVAL, "\"%.200s\" is no name of a host", host);
    SSL_SESSION *session = cc__tls_take_session(t->tls, t->ssl, t->host);
    if (session != NULL) (void)SSL_set_session(t->ssl, session);
    SSL_SESSION_free(session);
    return 0;
}

static int set_up_locked(struct tls_conn *t, const char *host) {
    CCTlsVerify verify;
    (void)pthread_once(&method_once, make_method);
    BIO *bio = method != NULL ? BIO_new(method) : NULL;
    t->ssl = bio != NULL ? cc__tls_new_ssl(t->tls, &verify) : NULL;
    if (t->ssl == NULL) {
        (void)BIO_free(bio);
        return cc__tls_fail(ENOMEM, "there is no memory for TLS");
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    (void)SSL_set_app_data(t->ssl, t);
    if (!t->tls->server) return set_up_client(t, host, verify);
    SSL_set_accept_state(t->ssl);
    return host == NULL ? 0 : cc__tls_fail(EINVAL, "a server does not know the host of its client");
}

int cc_tls_over(CCTls *tls, CCConn **conn, const char *host, CCDeadline deadline) {
    if (tls == NULL || conn == NULL || *conn == NULL) return EINVAL;
    struct tls_conn *t = calloc(1, sizeof *t);
    if (t == NULL) return cc__tls_fail(ENOMEM, "there is no memory for TLS");
    (void)pthread_mutex_init(&t->lock, NULL);
    t->under = *conn;
    t->tls = tls;
    cc__tls_keep(tls);
    begin_step(t);
    int error = set_up_locked(t, host);
    end_step(t);
    if (error == 0 && !tls->server) error = handshake(t, true, deadline);
    CCConn *made = NULL;
    if (error == 0) error = cc_conn_create(&made, &tls_ops, t);
    if (error != 0) {
        free_conn(t);
        return error;
    }
    *conn = made;
    return 0;
}

static int accepted(CCConn **conn, void *tls) {
    return cc_tls_over(tls, conn, NULL, CC_FOREVER);
}
static void dropped(void *tls) {
    cc__tls_drop(tls);
}

static CCTls *registered[2]; /* client, server: written before the layer is known, and never again */

static int dialled_by_name(CCConn **conn, const char *host, CCDeadline deadline, void *unused) {
    (void)unused;
    return cc_tls_over(registered[0], conn, host, deadline);
}
static int accepted_by_name(CCConn **conn, void *unused) {
    (void)unused;
    return cc_tls_over(registered[1], conn, NULL, CC_FOREVER);
}

int cc_tls_register(CCTls *client, CCTls *server) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if ((client == NULL && server == NULL) || (client != NULL && client->server) || (server != NULL && !server->server))
        return EINVAL;
    (void)pthread_mutex_lock(&lock);
    int error = registered[0] != NULL || registered[1] != NULL ? EEXIST : 0;
    if (error == 0) {
        registered[0] = client;
        registered[1] = server;
        error = cc_conn_layer("tls", &(CCConnLayer){.dialled = client != NULL ? dialled_by_name : NULL,
                                                    .accepted = server != NULL ? accepted_by_name : NULL});
        if (error != 0) registered[0] = registered[1] = NULL;
    }
    (void)pthread_mutex_unlock(&lock);
    if (error == 0 && client != NULL) cc__tls_keep(client);
    if (error == 0 && server != NULL) cc__tls_keep(server);
    return error;
}

int cc_tls_listen(CCTls *tls, CCListener *listener) {
    if (tls == NULL || !tls->server || listener == NULL) return EINVAL;
    cc__tls_keep(tls);
    int error = cc_listener_layer(listener, &(CCConnLayer){.accepted = accepted, .dropped = dropped, .arg = tls});
    if (error != 0) cc__tls_drop(tls);
    return error;
}

int cc_tls_handshake(CCConn *conn, CCDeadline deadline) {
    size_t none;
    if (conn == NULL) return EINVAL;
    return cc_conn_state(conn, &tls_ops) == NULL ? EOPNOTSUPP : cc_read_until(conn, NULL, 0, &none, deadline);
}

static void describe_peer_locked(struct tls_conn *t, CCTlsInfo *info) {
    X509 *cert = SSL_get1_peer_certificate(t->ssl);
    if (cert == NULL) return;
    unsigned length = sizeof info->fingerprint;
    BIO *memory = BIO_new(BIO_s_mem());
    if (memory != NULL && X509_NAME_print_ex(memory, X509_get_subject_name(cert), 0, XN_FLAG_ONELINE) >= 0) {
        int n = BIO_read(memory, info->peer, sizeof info->peer - 1);
        info->peer[n > 0 ? n : 0] = 0;
    }
    (void)BIO_free(memory);
    (void)X509_digest(cert, EVP_sha256(), info->fingerprint, &length);
    info->verified = SSL_get_verify_mode(t->ssl) != SSL_VERIFY_NONE && SSL_get_verify_result(t->ssl) == X509_V_OK;
    X509_free(cert);
}

static void copy_text(char *to, size_t size, const char *from, size_t length) {
    if (from == NULL) return;
    if (length >= size) length = size - 1;
    memcpy(to, from, length);
    to[length] = 0;
}

int cc_tls_info(CCConn *conn, CCTlsInfo *info) {
    if (conn == NULL || info == NULL) return EINVAL;
    memset(info, 0, sizeof *info);
    struct tls_conn *t = cc_conn_state(conn, &tls_ops);
    if (t == NULL) return EOPNOTSUPP;
    begin_step(t);
    if (t->ready) {
        const unsigned char *alpn;
        unsigned alpn_length;
        const char *cipher = SSL_get_cipher_name(t->ssl), *host = SSL_get_servername(t->ssl, TLSEXT_NAMETYPE_host_name);
        SSL_get0_alpn_selected(t->ssl, &alpn, &alpn_length);
        info->version = SSL_version(t->ssl) == TLS1_3_VERSION ? 13 : 12;
        info->resumed = SSL_session_reused(t->ssl) == 1;
        info->ktls = t->in_kernel;
        copy_text(info->alpn, sizeof info->alpn, (const char *)alpn, alpn_length);
        copy_text(info->cipher, sizeof info->cipher, cipher, cipher != NULL ? strlen(cipher) : 0);
        copy_text(info->host, sizeof info->host, host, host != NULL ? strlen(host) : 0);
        describe_peer_locked(t, info);
        ERR_clear_error();
    }
    end_step(t);
    return 0;
}
