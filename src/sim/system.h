/* system.h - the simulated operating system: hosts, sockets, names and files, behind the calls of os/. See README.md.
 *
 * SYS-1  One lock, `cc__sys.lock`, guards all of it. Only one thread runs in a simulation, so it is always free; it is
 *        there for the race detector. Nothing waits while it is held.
 * SYS-2  Every later effect is a packet in one heap, ordered by its time, then by creation. Every call first delivers
 *        the packets that are due. Every choice is drawn from one sequence of random numbers.
 * SYS-3  A packet names sockets by index and serial number: a socket that was freed, or replaced, is not found.
 * SYS-4  Packets from one end of a stream to the other keep their order: none is due before the one that was sent
 *        before it, and those that a partition holds up are delivered in their order when it ends.
 * SYS-5  What was written and not read never exceeds the reader's window.
 */
#ifndef CC_SIM_SYSTEM_H
#define CC_SIM_SYSTEM_H

#include "os/simulated.h"
#include "sync/lock.h"

#include <ccc/cc_sim.h>
#include <netinet/in.h>
#include <sys/un.h>

enum { HOSTS_MAX = 64, HOST_NAME_MAX_ = 64, BACKLOG_MAX = 4096 };

/* ---- addresses ---- */

union sys_name {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

/* What an address means on a host: which host, and what there. */
struct endpoint {
    int family;    /* AF_INET, AF_INET6, AF_UNIX */
    uint32_t host; /* HOSTS_MAX: no host has that address */
    bool every;    /* 0.0.0.0 or [::] */
    bool loopback;
    uint16_t port;
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1]; /* AF_UNIX; the first byte is the length */
};

/* 0 or -EINVAL, -EAFNOSUPPORT. */
int cc__sys_endpoint(const struct sockaddr *address, socklen_t length, uint32_t from_host, struct endpoint *place);
/* The address of a host in that family. */
union sys_name cc__sys_name(int family, const struct endpoint *place, uint32_t host, uint16_t port);
socklen_t cc__sys_name_length(const union sys_name *name);
void cc__sys_copy_name(const union sys_name *name, struct sockaddr *address, socklen_t *length);

/* ---- sockets and files: everything that has a descriptor ---- */

enum sock_kind {
    SOCK_NONE,
    SOCK_NEW,
    SOCK_LISTENER,
    SOCK_CONNECTING,
    SOCK_CONNECTED,
    SOCK_MESSAGES,
    SOCK_FILE,
    SOCK_SPARE
};

struct ref {
    uint32_t index, serial; /* serial 0: none */
};

struct packet;
struct open_file;

struct sock {
    enum sock_kind kind;
    struct ref self;
    bool is_open;  /* the program has its descriptor; otherwise it waits to be accepted */
    bool crashed;  /* its host has crashed since */
    bool is_local; /* a Unix socket or pipe */
    bool is_pipe;
    uint32_t host, incarnation;
    int family, type;
    bool reuseport, v6only, reset_on_close;
    unsigned user_timeout_ms, keepalive_s;

    /* readiness reports */
    bool watched, queued;
    unsigned once; /* one report of these sides; 0: every edge */
    unsigned pending;
    uint64_t data;
    uint32_t next_ready;

    /* addresses */
    bool bound, has_peer;
    struct endpoint local_place;
    union sys_name local, peer;
    uint32_t peer_host;

    /* streams */
    struct ref other;
    char *bytes; /* a ring of `window` bytes that have arrived */
    size_t begin, count, window;
    size_t credit;         /* how many bytes may be sent */
    size_t unacknowledged; /* how many of the bytes sent have not arrived */
    uint64_t since;        /* when they last made progress */
    uint64_t last_due;     /* SYS-4 */
    int error;             /* reported once */
    bool broken, fin_sent, fin_received, no_reads;
    bool severed; /* packets are lost in both directions, for good */

    /* listeners */
    struct ref *waiting;
    unsigned waiting_count, backlog;

    /* datagrams */
    struct packet *first, *last;
    size_t queued_bytes;

    /* files */
    struct open_file *file;
};

/* A packet in flight, to a socket or to an address, or a timer. */
enum packet_kind {
    PACKET_SYN,
    PACKET_SYN_ACK,
    PACKET_DATA,
    PACKET_FIN,
    PACKET_RST,
    PACKET_CREDIT,
    PACKET_MESSAGE,
    PACKET_UNREACHABLE,
    TIMER_CONNECT,
    TIMER_UNACKNOWLEDGED,
    TIMER_KEEPALIVE,
    TIMER_WINDOW
};

struct packet {
    uint64_t due, order;
    struct packet *next; /* among those held up by a partition; in a socket's queue */
    enum packet_kind kind;
    struct ref from, to;
    uint32_t from_host, to_host;
    union sys_name source;
    struct endpoint target; /* PACKET_SYN, PACKET_MESSAGE */
    union sys_name target_name;
    int error; /* of a timer or PACKET_RST */
    bool held; /* held up by a partition that ends when the packet is due */
    size_t size;
    char bytes[];
};

/* ---- hosts ---- */

struct files;

struct host {
    char name[HOST_NAME_MAX_];
    bool is_up;
    uint32_t incarnation; /* incremented by every start */
    uint16_t next_port;
    unsigned open; /* descriptors */
    struct files *files;
};

extern struct sys {
    struct lock lock; /* SYS-1 */
    uint64_t random;
    CCSimNet net;
    CCSimStats stats;

    struct sock **socks;
    uint32_t socks_count, serials;
    uint32_t ready_first, ready_last; /* indexes plus 1 */

    struct packet **heap;
    size_t heap_count, heap_room;
    uint64_t orders;
    struct packet *held, *held_last; /* held up by partitions without an end */

    struct host hosts[HOSTS_MAX];
    uint32_t hosts_count;
    uint64_t cut_until[HOSTS_MAX][HOSTS_MAX]; /* UINT64_MAX: until it is healed */

    struct sys_placement {
        uint32_t generation, host, incarnation;
    } * placements; /* of fibers, by the record's number */
    uint32_t placements_count;
    struct sys_placement turn; /* of the fiber or program that has the turn, or had the last one */
} cc__sys;

/* A number below n; true with a probability of that many in a million. */
uint32_t cc__sys_draw(uint32_t n);
bool cc__sys_chance(uint32_t ppm);

/* ---- packets.c ---- */

/* NULL: no memory; the packet is lost. */
struct packet *cc__sys_packet(enum packet_kind kind, const struct sock *from, size_t size);
/* From a socket to its other end, in order, or to another host. */
void cc__sys_send(struct sock *from, struct packet *p);
void cc__sys_send_after(struct packet *p, uint64_t delay);
/* p answers a packet that has just been delivered, and counts from when that was due: nobody may have looked since. */
void cc__sys_answer(const struct packet *to, struct packet *p);
uint64_t cc__sys_latency(uint32_t from_host, uint32_t to_host, bool is_local);
/* Delivers the packets that are due. */
void cc__sys_deliver_due(void);
/* When the next one is due; UINT64_MAX: there is none. */
uint64_t cc__sys_next_packet(void);
void cc__sys_free_packets(void);
bool cc__sys_is_cut(uint32_t a, uint32_t b);
/* A partition was healed, or its end has changed: packets that partitions hold up are sent again. */
void cc__sys_release_held(void);

/* ---- system.c ---- */

/* Frees everything: the simulation has ended, or has not begun. */
void cc__sys_reset(void);

/* At the beginning of a call: takes the lock and delivers what is due. Returns the socket with that number; NULL:
 * *error is -EBADF or -ECANCELED, and the lock is released. */
struct sock *cc__sys_enter(int fd, int *error);
/* The same without a socket. */
bool cc__sys_enter_alone(void);
void cc__sys_leave(void);

/* Before the declaration of the socket that was entered: leaves at the end of the block, unless it is NULL. */
#define CC_SYS_LEAVE __attribute__((cleanup(cc__sys_leave_sock)))
CC_INLINE void cc__sys_leave_sock(struct sock *const *s) {
    if (*s != NULL) cc__sys_leave();
}

/* A declaration: enters alone, and leaves at the end of the block. */
#define CC_SYS_ALONE __attribute__((cleanup(cc__sys_leave_alone), unused)) bool entered = cc__sys_enter_alone()
CC_INLINE void cc__sys_leave_alone(const bool *entered) {
    (void)entered;
    cc__sys_leave();
}

struct sock *cc__sys_find(struct ref ref);
/* Creates one without a descriptor; NULL: no memory. */
struct sock *cc__sys_make(enum sock_kind kind, uint32_t host);
/* Creates one with a descriptor on the caller's host: 0, -ECANCELED, -EMFILE, -ENOMEM. */
int cc__sys_open(enum sock_kind kind, struct sock **made);
/* 0 or -EMFILE. */
int cc__sys_may_open(void);
void cc__sys_free(struct sock *s);
int cc__sys_number(const struct sock *s);
/* The socket with that number, open or not; NULL: none. */
struct sock *cc__sys_numbered(int fd);
/* Reports that it has become ready. */
void cc__sys_report(struct sock *s, unsigned sides);
/* Drops its report, until it becomes ready again. */
void cc__sys_unqueue(struct sock *s);
unsigned cc__sys_sides(const struct sock *s);
/* Binds the address: 0, or -EADDRINUSE if another socket uses it, or another error. */
int cc__sys_bind(struct sock *s, const struct endpoint *place);
/* Gives an address to a socket that has none. */
int cc__sys_bind_any(struct sock *s, uint32_t to_host, bool loopback);
/* The socket of that kind that receives packets for this place; NULL: none. */
struct sock *cc__sys_at(enum sock_kind kind, uint32_t host, const struct endpoint *place);

/* ---- by kind ---- */

int cc__stream_pair(struct sock *a, struct sock *b);
int cc__stream_connect(struct sock *s, const struct endpoint *to, const union sys_name *name);
int cc__stream_accept(struct sock *listener, struct sock **accepted);
ssize_t cc__stream_read(struct sock *s, const struct iovec *parts, size_t n, bool peeks);
/* As recv(2) of a byte with MSG_PEEK; at the writing end of a pipe 0: nobody reads. */
ssize_t cc__stream_peek(struct sock *s);
ssize_t cc__stream_write(struct sock *s, const struct iovec *parts, size_t n);
int cc__stream_shutdown(struct sock *s, bool read, bool write);
void cc__stream_close(struct sock *s);
void cc__stream_deliver(struct packet *p);
unsigned cc__stream_sides(const struct sock *s);
/* POLLHUP and POLLERR, which poll(2) always reports; corrects *sides to what it says beside them. */
int cc__stream_gone(const struct sock *s, unsigned *sides);
/* That host is silent from now on, or has restarted and knows no connection: starts the probes by which its peers, and
 * its own connections, learn of it. */
void cc__stream_expect_silence(uint32_t host, bool restarted);

ssize_t cc__message_send(struct sock *s, const struct msghdr *m);
/* whole: returns the length of the message, also if there is room for less (MSG_TRUNC). */
ssize_t cc__message_receive(struct sock *s, struct msghdr *m, bool whole);
void cc__message_deliver(struct packet *p);
void cc__message_drop_all(struct sock *s);

extern const struct os_simulated cc__sys_table; /* calls.c */

/* ---- file_calls.c: entries of that table ---- */

bool cc__sys_has_files(void);
ssize_t cc__sys_file_read(int fd, const struct iovec *parts, int n, off_t offset);
ssize_t cc__sys_file_write(int fd, const struct iovec *parts, int n, off_t offset);
int cc__sys_file_open(const char *path, int flags, mode_t mode);
int cc__sys_file_temp(const char *directory);
int cc__sys_file_sync(int fd);
int cc__sys_file_truncate(int fd, off_t size);
int cc__sys_file_fstat(int fd, struct stat *status);
int cc__sys_file_lock(int fd, enum os_file_lock kind);
int cc__sys_path_stat(const char *path, struct stat *status);
int cc__sys_path_rename(const char *from, const char *to);
int cc__sys_path_unlink(const char *path, bool directory);
int cc__sys_path_mkdir(const char *path, mode_t mode);
ssize_t cc__sys_dir_read(int fd, void *buffer, size_t size);

/* ---- hosts.c ---- */

/* The caller's; under the lock. */
struct sys_placement cc__sys_placement(void);
bool cc__sys_placement_gone(struct sys_placement placement);

/* ---- disk.c ---- */

void cc__disk_close(struct open_file *file);
/* Draws which of the changes that were not synced are lost. */
void cc__disk_crash(struct files *files);
void cc__disk_free(struct files *files);
ssize_t cc__disk_read(struct sock *s, const struct iovec *parts, size_t n, off_t offset);
ssize_t cc__disk_write(struct sock *s, const struct iovec *parts, size_t n, off_t offset);
int cc__disk_open(uint32_t host, const char *path, int flags, mode_t mode);
int cc__disk_temp(uint32_t host, const char *directory);
int cc__disk_sync(struct sock *s);
int cc__disk_truncate(struct sock *s, off_t size);
int cc__disk_fstat(struct sock *s, struct stat *status);
int cc__disk_lock(struct sock *s, enum os_file_lock kind);
int cc__disk_stat(uint32_t host, const char *path, struct stat *status);
int cc__disk_rename(uint32_t host, const char *from, const char *to);
int cc__disk_unlink(uint32_t host, const char *path, bool directory);
int cc__disk_mkdir(uint32_t host, const char *path, mode_t mode);
ssize_t cc__disk_dir_read(struct sock *s, void *buffer, size_t size);

#endif
