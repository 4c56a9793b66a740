/* state.c - keys and values, and the last request of each client. */
#include "state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    struct pair *next;
    struct bytes key, value;
};

/* A client makes one request at a time: a request with a lower number than its last was executed before. */
struct session {
    struct session *next;
    uint64_t client, number;
    struct bytes answer;
};

enum { ROOM = 256 };

int state_init(struct state *s) {
    *s = (struct state){.room = ROOM, .sessions_room = ROOM};
    s->pairs = calloc(ROOM, sizeof(struct pair *));
    s->sessions = calloc(ROOM, sizeof(struct session *));
    if (s->pairs != NULL && s->sessions != NULL) return 0;
    state_free(s);
    return ENOMEM;
}

void state_free(struct state *s) {
    for (size_t i = 0; s->pairs != NULL && i < s->room; i++) {
        for (struct pair *p = s->pairs[i], *next; p != NULL; p = next) {
            next = p->next;
            bytes_free(&p->key);
            bytes_free(&p->value);
            free(p);
        }
    }
    for (size_t i = 0; s->sessions != NULL && i < s->sessions_room; i++) {
        for (struct session *c = s->sessions[i], *next; c != NULL; c = next) {
            next = c->next;
            bytes_free(&c->answer);
            free(c);
        }
    }
    free(s->pairs);
    free(s->sessions);
    *s = (struct state){0};
}

/* ---- keys ---- */

static struct pair **find(const struct state *s, struct view key) {
    struct pair **at = &s->pairs[checksum(key.data, key.size) % s->room];
    while (*at != NULL && !((*at)->key.size == key.size && memcmp((*at)->key.data, key.data, key.size) == 0))
        at = &(*at)->next;
    return at;
}

static void grow(struct state *s) {
    struct state larger = {.room = s->room * 2};
    if (s->count < s->room || (larger.pairs = calloc(larger.room, sizeof(struct pair *))) == NULL) return;
    for (size_t i = 0; i < s->room; i++) {
        for (struct pair *p = s->pairs[i], *next; p != NULL; p = next) {
            next = p->next;
            p->next = NULL;
            *find(&larger, view_of(&p->key)) = p;
        }
    }
    free(s->pairs);
    s->pairs = larger.pairs;
    s->room = larger.room;
}

static int put(struct state *s, struct view key, struct view value) {
    grow(s);
    struct pair **at = find(s, key), *p = *at;
    if (p == NULL) {
        p = calloc(1, sizeof *p);
        if (p == NULL) return ENOMEM;
        bytes_add(&p->key, key.data, key.size);
        *at = p;
        s->count++;
    }
    bytes_clear(&p->value);
    bytes_add(&p->value, value.data, value.size);
    return p->key.failed || p->value.failed ? ENOMEM : 0;
}

void state_read(const struct state *s, struct view key, struct bytes *answer) {
    const struct pair *p = *find(s, key);
    bytes_add_number(answer, p != NULL ? ANSWER_DONE : ANSWER_NO_KEY);
    if (p != NULL) bytes_add_piece(answer, p->value.data, p->value.size);
}

/* ---- requests ---- */

static struct session *session_of(struct state *s, uint64_t client) {
    struct session **at = &s->sessions[client % s->sessions_room];
    while (*at != NULL && (*at)->client != client) at = &(*at)->next;
    if (*at == NULL && (*at = calloc(1, sizeof **at)) != NULL) {
        (*at)->client = client;
        s->sessions_count++;
    }
    return *at;
}

void command_write(struct bytes *out, uint64_t client, uint64_t number, enum store_op op, struct view key,
                   struct view value) {
    bytes_add_number(out, client);
    bytes_add_number(out, number);
    bytes_add_number(out, op);
    bytes_add_piece(out, key.data, key.size);
    bytes_add_piece(out, value.data, value.size);
}

int state_apply(struct state *s, struct view command, struct bytes *answer) {
    uint64_t client = view_number(&command), number = view_number(&command), op = view_number(&command);
    struct view key = view_piece(&command), value = view_piece(&command);
    if (command.failed || op == OP_NOTHING) return 0;
    struct session *session = session_of(s, client);
    if (session == NULL) return ENOMEM;
    if (number > session->number || BUG(BUG_NO_SESSIONS)) {
        bytes_clear(&session->answer);
        if (op == OP_PUT) {
            int error = put(s, key, value);
            if (error != 0) return error;
            bytes_add_number(&session->answer, ANSWER_DONE);
        } else {
            state_read(s, key, &session->answer);
        }
        session->number = number;
    }
    bytes_add(answer, session->answer.data, session->answer.size);
    return answer->failed || session->answer.failed ? ENOMEM : 0;
}

/* ---- snapshots ---- */

void state_write(const struct state *s, struct bytes *out) {
    bytes_add_number(out, s->count);
    for (size_t i = 0; i < s->room; i++) {
        for (const struct pair *p = s->pairs[i]; p != NULL; p = p->next) {
            bytes_add_piece(out, p->key.data, p->key.size);
            bytes_add_piece(out, p->value.data, p->value.size);
        }
    }
    bytes_add_number(out, BUG(BUG_SNAPSHOT_WITHOUT_IDS) ? 0 : s->sessions_count);
    for (size_t i = 0; i < s->sessions_room && !BUG(BUG_SNAPSHOT_WITHOUT_IDS); i++) {
        for (const struct session *c = s->sessions[i]; c != NULL; c = c->next) {
            bytes_add_number(out, c->client);
            bytes_add_number(out, c->number);
            bytes_add_piece(out, c->answer.data, c->answer.size);
        }
    }
}

int state_load(struct state *s, struct view in) {
    struct state loaded;
    int error = state_init(&loaded);
    uint64_t n = in.size > 0 ? view_number(&in) : 0;
    for (uint64_t i = 0; i < n && error == 0; i++) {
        struct view key = view_piece(&in), value = view_piece(&in);
        error = in.failed ? EBADMSG : put(&loaded, key, value);
    }
    n = in.size > 0 ? view_number(&in) : 0;
    for (uint64_t i = 0; i < n && error == 0; i++) {
        struct session *c = session_of(&loaded, view_number(&in));
        if (c == NULL) error = ENOMEM;
        if (error == 0) c->number = view_number(&in);
        struct view answer = view_piece(&in);
        if (in.failed) error = EBADMSG;
        if (error == 0) bytes_add(&c->answer, answer.data, answer.size);
    }
    if (error != 0) {
        state_free(&loaded);
        return error;
    }
    state_free(s);
    *s = loaded;
    return 0;
}
