/* port.c - ports between islands: copies, moves, ownership after each outcome, uses of a moved block, and the
 * simulator. */
#include "../contexts.h"

#include "../../programs/where.h"

#include <ccc/cc_sim.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static CCPort *new_port(size_t capacity) {
    CCPort *port = NULL;
    CHECK_EQ(cc_port_create(&port, &(CCPortConfig){.name = "test", .capacity = capacity, .max_size = 4096}), 0);
    CHECK(port != NULL);
    return port;
}

static atomic_uint released; /* blocks of new_block */

static void release_block(void *data, size_t size, void *context) {
    CHECK(context == &released);
    CHECK(size > 0);
    atomic_fetch_add(&released, 1);
    free(data);
}

/* A block of n bytes, each of which is `fill`. */
static CCMessage new_block(size_t n, int fill) {
    CCMessage m = {.data = malloc(n), .size = n, .release = release_block, .context = &released};
    CHECK(m.data != NULL);
    memset(m.data, fill, n);
    return m;
}

static void check_filled(const CCMessage *m, size_t n, int fill) {
    CHECK_EQ(m->size, n);
    for (size_t i = 0; i < n; i++) CHECK_EQ(((unsigned char *)m->data)[i], fill);
}

static bool is_empty(const CCMessage *m) {
    return m->data == NULL && m->size == 0 && m->release == NULL && m->context == NULL;
}

/* ---- ownership ---- */

static void copies(void) {
    CCPort *port = new_port(3);
    char text[] = "one";
    CCMessage m;
    CHECK_EQ(cc_port_send(port, text, sizeof text), 0);
    text[0] = 'x'; /* the caller's again */
    CHECK_EQ(cc_port_send_try(port, text, sizeof text), 0);
    CHECK_EQ(cc_port_send_until(port, NULL, 0, cc_after_s(600)), 0);
    CHECK_EQ(cc_port_recv(port, &m), 0);
    CHECK(m.size == 4 && strcmp(m.data, "one") == 0);
    cc_message_free(&m);
    CHECK(is_empty(&m));
    cc_message_free(&m); /* {0} */
    CHECK_EQ(cc_port_recv_try(port, &m), 0);
    CHECK(strcmp(m.data, "xne") == 0);
    cc_message_free(&m);
    CHECK_EQ(cc_port_recv_until(port, &m, cc_after_s(600)), 0);
    CHECK(is_empty(&m));
    CHECK_EQ(cc_port_move(port, &m), 0); /* {0} is an empty message too */
    CHECK_EQ(cc_port_recv_try(port, &m), 0);
    CHECK(is_empty(&m));
    cc_port_free(port);
}

static void moves(void) {
    CCPort *port = new_port(2), *next = new_port(1);
    CCMessage m = new_block(100, 7), got, opaque = {.data = &port};
    void *at = m.data;
    atomic_store(&released, 0);
    CHECK_EQ(cc_port_move(port, &m), 0);
    CHECK(is_empty(&m));
    CHECK_EQ(cc_port_move(port, &opaque), 0); /* nothing that could be copied or overwritten */
    CHECK_EQ(cc_port_recv(port, &got), 0);
    CHECK(got.data == at);
    check_filled(&got, 100, 7);
    CHECK_EQ(cc_port_move_until(next, &got, cc_after_s(600)), 0); /* on to the next */
    CHECK_EQ(cc_port_recv(next, &got), 0);
    CHECK(got.data == at);
    check_filled(&got, 100, 7);
    CHECK_EQ(atomic_load(&released), 0);
    cc_message_free(&got);
    CHECK_EQ(atomic_load(&released), 1);
    CHECK_EQ(cc_port_recv(port, &got), 0);
    CHECK(got.data == &port && got.size == 0);
    cc_port_free(port);
    cc_port_free(next);
}

/* After an error the sender still owns its block, unchanged. */
static void failures(void) {
    CCPort *port = NULL;
    CCMessage m = new_block(64, 5), got = {.size = 77};
    CCPortConfig bad = {.reserved = {1}};
    CHECK_EQ(cc_port_create(NULL, NULL), EINVAL);
    CHECK_EQ(cc_port_create(&port, &bad), EINVAL);
    CHECK(port == NULL);
    port = new_port(1);
    CHECK_EQ(cc_port_send(NULL, "x", 1), EINVAL);
    CHECK_EQ(cc_port_send(port, NULL, 1), EINVAL);
    CHECK_EQ(cc_port_move(NULL, &m), EINVAL);
    CHECK_EQ(cc_port_move(port, NULL), EINVAL);
    CHECK_EQ(cc_port_move(port, &got), EINVAL); /* 77 bytes at NULL */
    CHECK_EQ(cc_port_recv(NULL, &got), EINVAL);
    CHECK_EQ(cc_port_recv(port, NULL), EINVAL);
    CHECK_EQ(cc_port_close(NULL), EINVAL);
    CHECK_EQ(cc_port_send(port, "x", 4097), EMSGSIZE);
    CHECK_EQ(cc_port_recv_try(port, &got), EAGAIN);
    CHECK_EQ(cc_port_recv_until(port, &got, cc_after_ns(1)), ETIMEDOUT);
    CHECK_EQ(got.size, 77);
    CHECK_EQ(cc_port_send(port, "x", 1), 0);
    CHECK_EQ(cc_port_send_try(port, "y", 1), EAGAIN);
    CHECK_EQ(cc_port_send_until(port, "y", 1, cc_after_ns(1)), ETIMEDOUT);
    CHECK_EQ(cc_port_move_try(port, &m), EAGAIN);
    CHECK_EQ(cc_port_move_until(port, &m, cc_after_ns(1)), ETIMEDOUT);
    check_filled(&m, 64, 5);
    CHECK_EQ(cc_port_close(port), 0);
    CHECK_EQ(cc_port_send(port, "y", 1), EPIPE);
    CHECK_EQ(cc_port_move(port, &m), EPIPE);
    check_filled(&m, 64, 5);
    CHECK_EQ(cc_port_recv(port, &got), 0);
    cc_message_free(&got);
    CHECK_EQ(cc_port_recv(port, &got), EPIPE);
    m.size = 5000;
    CHECK_EQ(cc_port_move(port, &m), EMSGSIZE);
    m.size = 64;
    cc_message_free(&m);
    cc_message_free(NULL);
    cc_port_free(port);
    cc_port_free(NULL);
}

/* Messages that nobody has received are released with the port. */
static void left_over(void) {
    CCPort *port = new_port(4);
    atomic_store(&released, 0);
    for (int i = 0; i < 3; i++) {
        CCMessage m = new_block(10, i);
        CHECK_EQ(cc_port_move(port, &m), 0);
    }
    CHECK_EQ(cc_port_send(port, "copy", 5), 0);
    cc_port_free(port);
    CHECK_EQ(atomic_load(&released), 3);
}

TEST_WORKERS(ownership) {
    in_both_contexts(copies);
    in_both_contexts(moves);
    in_both_contexts(failures);
    in_both_contexts(left_over);
}

CC_TASK(moves_and_is_cancelled, { CCPort *port; }) {
    CCMessage m = new_block(32, 9);
    CHECK_EQ(cc_port_move(self->port, &m), ECANCELED);
    check_filled(&m, 32, 9);
    cc_message_free(&m);
    return NULL;
}

TEST_WORKERS(cancelled) {
    CCPort *port = new_port(0);
    CCTask task = CC_GO(moves_and_is_cancelled, .port = port);
    CHECK_EQ(cc_task_cancel(&task), 0); /* before it waits, or while it does */
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    cc_port_free(port);
}

/* ---- between islands ---- */

enum { MESSAGES = 200 };

CC_TASK(sends, { CCPort *out; }) {
    for (unsigned i = 0; i < MESSAGES; i++) {
        unsigned n = 1 + i % 100;
        CCMessage m = new_block(n, (int)(i % 251));
        if (i % 3 != 0) {
            CHECK_EQ(cc_port_move(self->out, &m), 0);
        } else {
            CHECK_EQ(cc_port_send(self->out, m.data, n), 0);
            cc_message_free(&m);
        }
    }
    CHECK_EQ(cc_port_close(self->out), 0);
    return NULL;
}

CC_TASK(passes_on, { CCPort *in, *out; }) {
    CCMessage m;
    for (unsigned i = 0; cc_port_recv(self->in, &m) == 0; i++) {
        memset(m.data, (int)(i % 251) + 1, m.size);
        CHECK_EQ(cc_port_move(self->out, &m), 0);
    }
    CHECK_EQ(cc_port_close(self->out), 0);
    return NULL;
}

CC_TASK(receives, { CCPort *in; }) {
    unsigned i = 0;
    for (CCMessage m; cc_port_recv(self->in, &m) == 0; i++) {
        check_filled(&m, 1 + i % 100, (int)(i % 251) + 1);
        cc_message_free(&m);
    }
    CHECK_EQ(i, MESSAGES);
    return NULL;
}

static void *pipeline(void *capacity) {
    CCIsland *islands[3];
    CCPort *first = new_port((size_t)(uintptr_t)capacity), *second = new_port(1);
    atomic_store(&released, 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_island_create(&islands[i], NULL), 0);
    CCTask tasks[3] = {CC_GO_ON(islands[0], sends, .out = first),
                       CC_GO_ON(islands[1], passes_on, .in = first, .out = second),
                       CC_GO_ON(islands[2], receives, .in = second)};
    CHECK_EQ(cc_join_all(tasks, 3, NULL, CC_FOREVER), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_island_free(islands[i]), 0);
    cc_port_free(first);
    cc_port_free(second);
    CHECK_EQ(atomic_load(&released), MESSAGES); /* each once */
    return NULL;
}

TEST_WORKERS(three_islands) {
    for (uintptr_t capacity = 0; capacity < 3; capacity++) (void)pipeline((void *)capacity);
}

TEST(simulation) {
    for (uint64_t seed = 1; seed <= 10; seed++)
        CHECK_EQ(cc_sim_run(seed, pipeline, (void *)(uintptr_t)(seed % 3), NULL), 0);
}

/* ---- too late ---- */

#if defined(CC_DEBUG) || UNDER_ASAN
static CCMessage too_late;
static CCPort *move_one(void) {
    static CCPort *port;
    port = new_port(1);
    too_late = new_block(40, 1);
    CCMessage m = too_late;
    CHECK_EQ(cc_port_move(port, &m), 0);
    return port;
}

#if UNDER_ASAN
#define SAYS "use-after-poison"
#else
#define SAYS "PORT-2: byte 7 of a block of 40 bytes"
TEST(a_read_after_the_move) {
    CCPort *port = move_one();
    CHECK_EQ(((unsigned char *)too_late.data)[7], 0xdb);
    cc_port_free(port);
}
#endif

TEST_DIES(a_write_after_the_move, SAYS) {
    CCPort *port = move_one();
    CCMessage m;
    ((volatile unsigned char *)too_late.data)[7] = 1;
    (void)cc_port_recv(port, &m);
}

TEST_DIES(a_write_into_what_is_dropped, SAYS) {
    CCPort *port = move_one();
    ((volatile unsigned char *)too_late.data)[7] = 1;
    cc_port_free(port);
}
#endif
