/* load.c - load for an echo server: load PORT CONNECTIONS SECONDS SIZE [RATE].
 *
 * Every connection has one request in flight: it sends SIZE bytes, waits for all of them, checks them, sends the next.
 * With RATE: that many requests are due per second, evenly spaced, on one connection after the other; the latency of
 * one counts from when it is due, also if its connection is not free then. One thread, epoll, no library. Prints
 * requests, requests per second and percentiles of the latency in us, as KEY=VALUE; with RATE also how late requests
 * were sent whose connections were free: that is the load's own fault. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 4096, SIZE_MAX_ = 65536 };

struct connection {
    int fd;
    size_t got;
    uint64_t number, sent_at; /* of the request in flight */
    uint64_t due;             /* how many were due, with a rate; the first `number` were sent */
    bool busy;
};

struct histogram {
    uint64_t buckets[BUCKETS], count;
};

static struct histogram latencies, sent_late;
static size_t size;
static struct connection *all;
static uint64_t count, begin;
static double rate; /* in a second; 0: as fast as they come back */

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

/* Buckets are exact to 1.6 %: 64 for each power of two. */
static unsigned bucket_of(uint64_t ns) {
    if (ns < 128) return (unsigned)ns;
    unsigned shift = 63u - (unsigned)__builtin_clzll(ns) - 6;
    unsigned bucket = 64 * (shift + 1) + (unsigned)(ns >> shift) - 64;
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static double bucket_us(unsigned bucket) {
    if (bucket < 128) return bucket / 1e3;
    unsigned shift = bucket / 64 - 1;
    return (double)((uint64_t)(bucket % 64 + 64) << shift) / 1e3;
}

static void note(struct histogram *h, uint64_t from) {
    uint64_t at = now();
    h->buckets[bucket_of(at > from ? at - from : 0)]++;
    h->count++;
}

static double percentile(const struct histogram *h, double part) {
    uint64_t wanted = (uint64_t)((double)h->count * part), sum = 0;
    for (unsigned i = 0; i < BUCKETS; i++)
        if ((sum += h->buckets[i]) > wanted) return bucket_us(i);
    return 0;
}

static void fill(char *bytes, const struct connection *c) {
    memset(bytes, (int)('a' + c->number % 26), size);
}

/* Of all requests in their order. */
static uint64_t due_at(uint64_t request) {
    return begin + (uint64_t)((double)request * 1e9 / rate);
}

static void send_next(struct connection *c) {
    char bytes[SIZE_MAX_];
    c->sent_at = rate > 0 ? due_at(c->number * count + (uint64_t)(c - all)) : now();
    c->busy = true;
    c->number++;
    c->got = 0;
    fill(bytes, c);
    if (send(c->fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size) die("send");
}

static void receive(struct connection *c) {
    char bytes[SIZE_MAX_], expected[SIZE_MAX_];
    ssize_t n = recv(c->fd, bytes, size - c->got, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) die("the server hung up");
    fill(expected, c);
    if (memcmp(bytes, expected, (size_t)n) != 0) {
        fprintf(stderr, "wrong bytes came back\n");
        exit(1);
    }
    c->got += (size_t)n;
    if (c->got < size) return;
    note(&latencies, c->sent_at);
    c->busy = false;
    if (rate == 0 || c->due > c->number) send_next(c);
}

/* Sends what is due; returns when the next one is. */
static uint64_t send_due(void) {
    static uint64_t next;
    while (due_at(next) <= now()) {
        struct connection *c = &all[next++ % count];
        c->due++;
        if (c->busy) continue;
        note(&sent_late, due_at(next - 1));
        send_next(c);
    }
    return due_at(next);
}

static int wait_for(int set, struct epoll_event *events, int n, uint64_t until) {
    uint64_t at = now(), left = until > at ? until - at : 0;
    struct timespec ts = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    return (int)syscall(SYS_epoll_pwait2, set, events, n, &ts, NULL, 0);
}

int main(int argc, char **argv) {
    if (argc != 5 && argc != 6) {
        fprintf(stderr, "usage: %s PORT CONNECTIONS SECONDS SIZE [RATE]\n", argv[0]);
        return 2;
    }
    int set = epoll_create1(EPOLL_CLOEXEC), one = 1;
    struct rlimit limit;
    size = (size_t)atoi(argv[4]);
    count = (uint64_t)atoi(argv[2]);
    rate = argc == 6 ? atof(argv[5]) : 0;
    prctl(PR_SET_TIMERSLACK, 1);
    if (count < 1 || count > 1000000 || size < 1 || size > SIZE_MAX_ || set < 0) return 2;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)atoi(argv[1]))};
    all = calloc(count, sizeof *all);
    for (uint64_t i = 0; i < count; i++) {
        all[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (all[i].fd < 0 || connect(all[i].fd, (struct sockaddr *)&address, sizeof address) != 0) die("connect");
        setsockopt(all[i].fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        if (epoll_ctl(set, EPOLL_CTL_ADD, all[i].fd, &event) != 0) die("epoll_ctl");
    }
    puts("ready"); /* the server's CPU time is read between this line and the next */
    fflush(stdout);
    begin = now();
    uint64_t end = begin + (uint64_t)(atof(argv[3]) * 1e9);
    for (uint64_t i = 0; rate == 0 && i < count; i++) send_next(&all[i]);
    while (now() < end) {
        struct epoll_event events[256];
        uint64_t next = rate > 0 ? send_due() : end;
        int n = wait_for(set, events, 256, next < end ? next : end);
        for (int i = 0; i < n; i++) receive(events[i].data.ptr);
    }
    double seconds = (double)(now() - begin) / 1e9;
    printf("requests=%llu per_s=%.0f p50_us=%.1f p99_us=%.1f p999_us=%.1f sent_late_p99_us=%.1f\n",
           (unsigned long long)latencies.count, (double)latencies.count / seconds, percentile(&latencies, 0.5),
           percentile(&latencies, 0.99), percentile(&latencies, 0.999), percentile(&sent_late, 0.99));
    return 0;
}
