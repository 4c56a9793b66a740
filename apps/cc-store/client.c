/* client.c - a client: finds the leader, and retries until it is answered. */
#include "bytes.h"
#include "state.h"
#include "store.h"

#include <errno.h>
#include <string.h>

enum { ANSWER_MS = 6000, PAUSE_MS = 40 };

void store_client_init(struct store_client *c, uint64_t id, unsigned count, const char *const *where) {
    *c = (struct store_client){.id = id, .count = count, .where = where, .random = id | 1};
}

void store_client_close(struct store_client *c) {
    cc_close(c->conn);
    c->conn = NULL;
}

static CCDeadline earlier(CCDeadline a, CCDeadline b) {
    return b.ns == 0 || (a.ns != 0 && a.ns < b.ns) ? a : b;
}

static int ask(struct store_client *c, const struct bytes *request, struct bytes *answer, CCDeadline deadline) {
    CCDeadline until = earlier(cc_after_ms(ANSWER_MS), deadline);
    int error = c->conn != NULL ? 0 : cc_dial_until(&c->conn, c->where[c->leader], NULL, until);
    if (error == 0) error = message_send(c->conn, request, until);
    return error != 0 ? error : message_receive(c->conn, answer, until);
}

/* Another node, which the last one has named, or the next. */
static int try_elsewhere(struct store_client *c, uint64_t hint, CCDeadline deadline) {
    store_client_close(c);
    c->leader = hint < c->count && hint != c->leader ? (unsigned)hint : (c->leader + 1) % c->count;
    c->random = c->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    CCDeadline then = cc_after_ms(PAUSE_MS / 2 + (c->random >> 40) % PAUSE_MS);
    if (deadline.ns != 0 && cc_now_ns() >= deadline.ns) return ETIMEDOUT;
    return cc_sleep_until(earlier(then, deadline));
}

static int take_value(struct view *in, enum store_op op, void *value, size_t *size) {
    struct view found = op == OP_GET ? view_piece(in) : (struct view){0};
    if (op != OP_GET) return 0;
    size_t room = *size;
    *size = found.size;
    if (in->failed || found.size > room) return in->failed ? EBADMSG : EMSGSIZE;
    memcpy(value, found.data, found.size);
    return 0;
}

int store_call(struct store_client *c, enum store_op op, const char *key, void *value, size_t *size,
               CCDeadline deadline) {
    struct bytes request = {0}, answer = {0};
    struct view name = {(const unsigned char *)key, strlen(key), false}, none = {0};
    if (name.size == 0 || name.size > KEY_MAX || (op == OP_PUT && *size > VALUE_MAX)) return EINVAL;
    struct view content = {value, *size, false};
    bytes_add_number(&request, MESSAGE_CLIENT);
    command_write(&request, c->id, ++c->number, op, name, op == OP_PUT ? content : none);
    int error = request.failed ? ENOMEM : EAGAIN;
    while (error == EAGAIN) {
        uint64_t hint = UINT64_MAX;
        error = ask(c, &request, &answer, deadline);
        struct view v = view_of(&answer);
        uint64_t what = error == 0 ? view_number(&v) : ANSWER_NOT_LEADER;
        if (error == 0 && what == ANSWER_NOT_LEADER) hint = view_number(&v);
        if (error == 0 && !v.failed && what != ANSWER_NOT_LEADER) {
            error = what == ANSWER_NO_KEY ? ENOENT : take_value(&v, op, value, size);
            break;
        }
        error = error == ECANCELED ? ECANCELED : try_elsewhere(c, hint, deadline);
        if (error == 0) error = EAGAIN;
    }
    bytes_free(&request);
    bytes_free(&answer);
    return error;
}
