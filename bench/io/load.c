/* load.c - load for an echo server: load PORT CONNECTIONS SECONDS SIZE.
 *
 * Every connection has one request under way: it sends SIZE bytes, waits for all of them, checks them, sends the
 * next. One thread,
 * epoll, no library. Prints requests, requests per second and percentiles of the latency in us, as KEY=VALUE.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 4096, SIZE_MAX_ = 65536 };

struct connection {
    int fd;
    size_t got;
    uint64_t number, sent_at;
};

static uint64_t histogram[BUCKETS], requests;
static size_t size;

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

static double percentile(double part) {
    uint64_t wanted = (uint64_t)((double)requests * part), sum = 0;
    for (unsigned i = 0; i < BUCKETS; i++)
        if ((sum += histogram[i]) > wanted) return bucket_us(i);
    return 0;
}

static void fill(char *bytes, const struct connection *c) {
    memset(bytes, (int)('a' + c->number % 26), size);
}

static void send_next(struct connection *c) {
    char bytes[SIZE_MAX_];
    c->number++;
    c->got = 0;
    fill(bytes, c);
    c->sent_at = now();
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
    histogram[bucket_of(now() - c->sent_at)]++;
    requests++;
    send_next(c);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: %s PORT CONNECTIONS SECONDS SIZE\n", argv[0]);
        return 2;
    }
    int count = atoi(argv[2]), set = epoll_create1(EPOLL_CLOEXEC), one = 1;
    struct rlimit limit;
    size = (size_t)atoi(argv[4]);
    if (count < 1 || size < 1 || size > SIZE_MAX_ || set < 0) return 2;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)atoi(argv[1]))};
    struct connection *all = calloc((size_t)count, sizeof *all);
    for (int i = 0; i < count; i++) {
        all[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (all[i].fd < 0 || connect(all[i].fd, (struct sockaddr *)&address, sizeof address) != 0) die("connect");
        setsockopt(all[i].fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        if (epoll_ctl(set, EPOLL_CTL_ADD, all[i].fd, &event) != 0) die("epoll_ctl");
    }
    puts("ready"); /* the server's CPU time is read between this line and the next */
    fflush(stdout);
    uint64_t begin = now(), end = begin + (uint64_t)(atof(argv[3]) * 1e9);
    for (int i = 0; i < count; i++) send_next(&all[i]);
    while (now() < end) {
        struct epoll_event events[256];
        int n = epoll_wait(set, events, 256, 100);
        for (int i = 0; i < n; i++) receive(events[i].data.ptr);
    }
    double seconds = (double)(now() - begin) / 1e9;
    printf("requests=%llu per_s=%.0f p50_us=%.1f p99_us=%.1f p999_us=%.1f\n", (unsigned long long)requests,
           (double)requests / seconds, percentile(0.5), percentile(0.99), percentile(0.999));
    return 0;
}
