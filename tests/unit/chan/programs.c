/* programs.c - known programs with known output: the sieve, power series, a long ring, skynet over channels. */
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
    cc_chan_close(s.in); /* stops the previous stage */
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

struct ring_node {
    CCChan *in, *out;
};

static void *pass_on(void *arg) {
    struct ring_node *s = arg;
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
    struct ring_node *nodes = calloc(n, sizeof *nodes);
    CCTask *tasks = calloc(n, sizeof *tasks);
    CHECK(chans != NULL && nodes != NULL && tasks != NULL);
    for (size_t i = 0; i <= n; i++) chans[i] = new_chan(8, i % 3); /* rendezvous and small buffers in turn */
    for (size_t i = 0; i < n; i++) {
        nodes[i] = (struct ring_node){chans[i], chans[i + 1]};
        tasks[i] = cc_fiber_spawn_task(pass_on, &nodes[i]);
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
    free(nodes);
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

/* ---- power series: a channel delivers a series' coefficients, one after another ---- */

struct rational {
    int64_t n, d;
};

static int64_t divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

static struct rational ratio(int64_t n, int64_t d) {
    int64_t g = divisor(n, d);
    return (struct rational){n / g, d / g};
}

static struct rational plus(struct rational a, struct rational b) {
    return ratio(a.n * b.d + b.n * a.d, a.d * b.d);
}

static struct rational times(struct rational a, struct rational b) {
    return ratio(a.n * b.n, a.d * b.d);
}

/* A fiber that makes `terms` coefficients. It owns a reference to each of its channels. */
struct series {
    CCChan *in[2], *out[2];
    int terms;
    struct rational constant;
};

static CCChan *new_series(size_t capacity) {
    return cc_chan_ref(new_chan(sizeof(struct rational), capacity)); /* one for each end */
}

static void start_series(CCTaskFn fn, struct series series) {
    CCSpawnOptions copied = {.arg_size = sizeof series};
    CHECK_EQ(cc_spawn(NULL, fn, &series, &copied), 0);
}

/* Closes both directions: sends and receives end. */
static void end_series(struct series *s) {
    for (int i = 0; i < 2; i++) {
        if (s->in[i] != NULL) cc_chan_close(s->in[i]);
        if (s->out[i] != NULL) cc_chan_close(s->out[i]);
        cc_chan_free(s->in[i]);
        cc_chan_free(s->out[i]);
    }
}

static bool next_term(CCChan *from, struct rational *term) {
    return cc_chan_recv(from, term, sizeof *term) == 0;
}

/* Sends it, if there is still a reader; false: that was the last value, or there is none. */
static bool deliver(struct series *s, struct rational term) {
    bool wanted = false;
    for (int i = 0; i < 2; i++)
        if (s->out[i] != NULL && cc_chan_send(s->out[i], &term, sizeof term) == 0) wanted = true;
    return wanted && --s->terms > 0;
}

/* Duplicates a series: buffered, so that neither reader has to wait for the other. */
static void *copy_series(void *arg) {
    struct series s = *(struct series *)arg;
    struct rational f;
    while (next_term(s.in[0], &f) && deliver(&s, f)) {
    }
    end_series(&s);
    return NULL;
}

static void split_series(CCChan *from, int terms, CCChan *copies[2]) {
    for (int i = 0; i < 2; i++) copies[i] = new_series((size_t)terms);
    start_series(copy_series, (struct series){{from}, {copies[0], copies[1]}, terms, {0, 1}});
}

/* c, and behind it f[k] / (k + 1). */
static void *integrate(void *arg) {
    struct series s = *(struct series *)arg;
    struct rational f = s.constant;
    int64_t k = 1;
    while (deliver(&s, k == 1 ? f : times(f, ratio(1, k - 1))) && next_term(s.in[0], &f)) k++;
    end_series(&s);
    return NULL;
}

/* The first coefficient is raised by c. */
static void *raise_first(void *arg) {
    struct series s = *(struct series *)arg;
    struct rational f;
    for (bool first = true; next_term(s.in[0], &f); first = false)
        if (!deliver(&s, first ? plus(f, s.constant) : f)) break;
    end_series(&s);
    return NULL;
}

/* FG = f g + x (f G' + g F') + x^2 F' G', where F = f + x F' and G = g + x G': the last product is another fiber's. */
static void *multiply(void *arg) {
    struct series s = *(struct series *)arg;
    struct rational f, g, a, b, ab;
    if (next_term(s.in[0], &f) && next_term(s.in[1], &g) && deliver(&s, times(f, g))) {
        CCChan *left[2], *right[2], *rest = s.terms > 1 ? new_series(0) : NULL;
        split_series(s.in[0], s.terms, left);
        split_series(s.in[1], s.terms, right);
        s.in[0] = left[0];
        s.in[1] = right[0];
        struct series lower = {{left[1], right[1]}, {rest}, s.terms - 1, {0, 1}};
        if (rest != NULL)
            start_series(multiply, lower);
        else
            end_series(&lower);
        for (bool first = true; next_term(s.in[0], &a) && next_term(s.in[1], &b); first = false) {
            struct rational sum = plus(times(f, b), times(g, a));
            if (!first && (rest == NULL || !next_term(rest, &ab))) break;
            if (!deliver(&s, first ? sum : plus(sum, ab))) break;
        }
        if (rest != NULL) cc_chan_close(rest);
        cc_chan_free(rest);
    }
    end_series(&s);
    return NULL;
}

/* exp = 1 + the integral of exp: the series is made from itself. */
static CCChan *exponential(int terms) {
    CCChan *made = new_series(0), *copies[2];
    split_series(made, terms, copies);
    start_series(integrate, (struct series){{copies[0]}, {made}, terms, {1, 1}});
    return copies[1];
}

/* tan = the integral of 1 + tan^2. */
static CCChan *tangent(int terms) {
    CCChan *made = new_series(0), *square = new_series(0), *inner = new_series(0), *copies[2], *factors[2];
    split_series(made, terms, copies);
    split_series(copies[0], terms, factors);
    start_series(multiply, (struct series){{factors[0], factors[1]}, {square}, terms, {0, 1}});
    start_series(raise_first, (struct series){{square}, {inner}, terms, {1, 1}});
    start_series(integrate, (struct series){{inner}, {made}, terms, {0, 1}});
    return copies[1];
}

static void check_series(CCChan *series, const struct rational *expected, int terms) {
    for (int i = 0; i < terms; i++) {
        struct rational term = {0, 0};
        CHECK_EQ(cc_chan_recv(series, &term, sizeof term), 0);
        CHECK_EQ(term.n, expected[i].n);
        CHECK_EQ(term.d, expected[i].d);
    }
    struct rational more;
    CHECK_EQ(cc_chan_recv(series, &more, sizeof more), EPIPE);
    cc_chan_free(series);
}

TEST_WORKERS(power_series, .timeout = 120) {
    static const struct rational tan[] = {{0, 1},  {1, 1}, {0, 1},    {1, 3}, {0, 1},
                                          {2, 15}, {0, 1}, {17, 315}, {0, 1}, {62, 2835}};
    struct rational exp[10], square[10];
    int64_t factorial = 1;
    for (int i = 0; i < 10; i++) {
        factorial *= i > 0 ? i : 1;
        exp[i] = ratio(1, factorial);
        square[i] = ratio((int64_t)1 << i, factorial); /* exp(x)^2 = exp(2x) */
    }
    for (long round = 0; round < test_scale(20); round++) {
        check_series(exponential(10), exp, 10);
        check_series(tangent(10), tan, 10);
        CCChan *product = new_series(0);
        start_series(multiply, (struct series){{exponential(10), exponential(10)}, {product}, 10, {0, 1}});
        check_series(product, square, 10);
    }
    CHECK_EQ(cc_runtime_shutdown(60 * 1000), 0); /* every fiber has ended */
}
