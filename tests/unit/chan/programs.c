/* programs.c - known programs with known output: the sieve, a long ring, skynet over channels. */
#include "harness.h"

#include "../../battery/battery.h"

/* ---- the 1500th prime is 12553 ---- */

struct sieve {
    CCChan *in, *out;
    int prime;
};

static void *generate(void *arg) {
    for (int n = 2; cc_chan_send(arg, &n, sizeof n) == 0; n++) {
    }
    return NULL;
}

static void *filter(void *arg) {
    struct sieve s = *(struct sieve *)arg;
    free(arg);
    int n;
    while (cc_chan_recv(s.in, &n, sizeof n) == 0)
        if (n % s.prime != 0 && cc_chan_send(s.out, &n, sizeof n) != 0) break;
    cc_chan_close(s.in); /* tells the one before */
    return NULL;
}

static void *sieve(void *arg) {
    int count = *(int *)arg, prime = 0;
    CCChan **chans = calloc((size_t)count + 1, sizeof *chans);
    CCTask *tasks = calloc((size_t)count + 1, sizeof *tasks);
    CHECK(chans != NULL && tasks != NULL);
    chans[0] = new_chan(sizeof(int), 0);
    tasks[0] = cc_fiber_spawn_task(generate, chans[0]);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(cc_chan_recv(chans[i], &prime, sizeof prime), 0);
        struct sieve *s = malloc(sizeof *s);
        CHECK(s != NULL);
        chans[i + 1] = new_chan(sizeof(int), 0);
        *s = (struct sieve){chans[i], chans[i + 1], prime};
        tasks[i + 1] = cc_fiber_spawn_task(filter, s);
    }
    CHECK_EQ(cc_chan_close(chans[count]), 0);
    for (int i = 0; i <= count; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    for (int i = 0; i <= count; i++) {
        check_clean(chans[i]);
        cc_chan_free(chans[i]);
    }
    free(chans);
    free(tasks);
    return (void *)(long)prime;
}

TEST_WORKERS(prime_sieve, .timeout = 300) {
    int count = (int)test_scale(1500);
    void *prime;
    CHECK_EQ(cc_run(sieve, &count, &prime), 0);
    if (count == 1500)
        CHECK_EQ((long)prime, 12553);
    else if (count == 150) /* under a sanitizer */
        CHECK_EQ((long)prime, 863);
    else
        CHECK((long)prime > count);
}

/* ---- a ring of 10,000 fibers ---- */

struct ring_seat {
    CCChan *in, *out;
};

static void *pass_on(void *arg) {
    struct ring_seat *s = arg;
    uint64_t token;
    while (cc_chan_recv(s->in, &token, sizeof token) == 0) {
        token++;
        if (cc_chan_send(s->out, &token, sizeof token) != 0) break;
    }
    return NULL;
}

static void *ring(void *arg) {
    size_t n = *(size_t *)arg;
    CCChan **chans = calloc(n + 1, sizeof *chans);
    struct ring_seat *seats = calloc(n, sizeof *seats);
    CCTask *tasks = calloc(n, sizeof *tasks);
    CHECK(chans != NULL && seats != NULL && tasks != NULL);
    for (size_t i = 0; i <= n; i++) chans[i] = new_chan(8, i % 3); /* rendezvous and small buffers in turn */
    for (size_t i = 0; i < n; i++) {
        seats[i] = (struct ring_seat){chans[i], chans[i + 1]};
        tasks[i] = cc_fiber_spawn_task(pass_on, &seats[i]);
        CHECK(tasks[i].id != 0);
    }
    uint64_t token = 0;
    for (int lap = 1; lap <= 5; lap++) {
        CHECK_EQ(cc_chan_send(chans[0], &token, sizeof token), 0);
        CHECK_EQ(cc_chan_recv(chans[n], &token, sizeof token), 0);
        CHECK_EQ(token, (uint64_t)lap * n);
    }
    for (size_t i = 0; i <= n; i++) CHECK_EQ(cc_chan_close(chans[i]), 0);
    for (size_t i = 0; i < n; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    for (size_t i = 0; i <= n; i++) cc_chan_free(chans[i]);
    free(chans);
    free(seats);
    free(tasks);
    return NULL;
}

TEST_WORKERS(ring_of_fibers, .timeout = 300) {
    size_t n = (size_t)test_scale(10000);
    CHECK_EQ(cc_run(ring, &n, NULL), 0);
}

/* ---- skynet: every child sends its sum to its parent's channel ---- */

struct node {
    CCChan *up;
    uint64_t first, leaves;
};

static void *grow(void *arg) {
    struct node *self = arg;
    uint64_t sum = self->first;
    if (self->leaves > 1) {
        CCChan *ch = new_chan(8, 0);
        struct node children[10];
        CCTask tasks[10];
        sum = 0;
        for (uint64_t i = 0; i < 10; i++) {
            children[i] = (struct node){ch, self->first + i * (self->leaves / 10), self->leaves / 10};
            tasks[i] = cc_fiber_spawn_task(grow, &children[i]);
            CHECK(tasks[i].id != 0);
        }
        for (int i = 0; i < 10; i++) {
            uint64_t part;
            CHECK_EQ(cc_chan_recv(ch, &part, sizeof part), 0);
            sum += part;
        }
        for (int i = 0; i < 10; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
        cc_chan_free(ch);
    }
    CHECK_EQ(cc_chan_send(self->up, &sum, sizeof sum), 0);
    return NULL;
}

TEST_WORKERS(skynet, .timeout = 300) {
    uint64_t leaves = test_scale(10) == 10 ? 100000 : 1000, sum = 0;
    CCChan *ch = new_chan(8, 1);
    struct node root = {ch, 0, leaves};
    CHECK_EQ(cc_run(grow, &root, NULL), 0);
    CHECK_EQ(cc_chan_recv(ch, &sum, sizeof sum), 0);
    CHECK_EQ(sum, leaves * (leaves - 1) / 2);
    cc_chan_free(ch);
}
