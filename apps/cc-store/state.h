/* state.h - the state that the log leads to: keys and values, and the last request of each client. */
#ifndef CC_STORE_STATE_H
#define CC_STORE_STATE_H

#include "bytes.h"
#include "store.h"

struct pair;
struct session;

struct state {
    struct pair **pairs; /* a hash table of chains */
    struct session **sessions;
    size_t room, count, sessions_room, sessions_count;
};

/* 0 or ENOMEM. */
int state_init(struct state *s);
void state_free(struct state *s);

void command_write(struct bytes *out, uint64_t client, uint64_t number, enum store_op op, struct view key,
                   struct view value);
/* Executes it, unless it was executed before: then *answer is the earlier answer. 0 or ENOMEM. Appends to answer. */
int state_apply(struct state *s, struct view command, struct bytes *answer);
void state_read(const struct state *s, struct view key, struct bytes *answer);

void state_write(const struct state *s, struct bytes *out);
/* Replaces the state: 0, ENOMEM, EBADMSG. */
int state_load(struct state *s, struct view in);

#endif
