/* store.h - a replicated key-value store: nodes that agree by Raft, and their clients.
 *
 * The same code runs on real sockets and files and in a simulation (docs/simulation.md).
 */
#ifndef CC_STORE_STORE_H
#define CC_STORE_STORE_H

#include <ccc/ccc.h>

enum { NODES_MAX = 7, KEY_MAX = 64, VALUE_MAX = 4096 };

/* ---- a node ---- */

/* What a node does, for an observer. */
struct store_notice {
    enum store_event { EVENT_STANDS = 1, EVENT_VOTES = 2, EVENT_LEADS = 4, EVENT_APPLIES = 8 } event;
    uint64_t term;       /* EVENT_APPLIES: the entry's */
    uint64_t index;      /* EVENT_APPLIES: of the entry */
    const void *command; /* the same; valid during the call */
    size_t size;
};

struct store_config {
    unsigned id, count;           /* this node, and the number of nodes */
    const char *where[NODES_MAX]; /* where the nodes can be dialled */
    const char *listen;           /* where this one listens */
    const char *directory;
    uint64_t snapshot_after; /* entries; 0: 10000 */
    unsigned election_ms;    /* election timeout; 0: 1500; randomised up to twice that */
    unsigned spread_ms;
    void (*notice)(void *arg, unsigned id, const struct store_notice *notice); /* or NULL; must not wait */
    void *notice_arg;
};

/* Runs a node until it is cancelled: ECANCELED; or until its disk fails: that error, and it must be restarted. */
int store_run(const struct store_config *config);

/* ---- clients ---- */

enum store_op { OP_NOTHING, OP_GET, OP_PUT };

struct store_client {
    uint64_t id, number; /* of the client, of its last request */
    unsigned count, leader;
    const char *const *where;
    CCConn *conn;
    uint64_t random;
};

/* id: of this client alone. */
void store_client_init(struct store_client *c, uint64_t id, unsigned count, const char *const *where);
void store_client_close(struct store_client *c);

/* Retries until it is answered: a request is executed once, however often it is sent. 0; ENOENT: no such key; EINVAL:
 * key or value too long; ETIMEDOUT, ECANCELED: it may have been executed, or may yet be. A client makes one request at
 * a time. value, *size: for OP_PUT the value; for OP_GET the buffer, then the value. */
int store_call(struct store_client *c, enum store_op op, const char *key, void *value, size_t *size,
               CCDeadline deadline);

/* ---- the protocol ---- */

enum message_kind { MESSAGE_VOTE = 1, MESSAGE_APPEND, MESSAGE_SNAPSHOT, MESSAGE_CLIENT };
enum store_answer { ANSWER_DONE, ANSWER_NO_KEY, ANSWER_NOT_LEADER };

/* ---- planted bugs, for the tests ---- */

enum store_bug {
    BUG_NONE,
    BUG_NO_SYNC,              /* an entry is acknowledged before it is on the disk */
    BUG_VOTE_IS_FORGOTTEN,    /* the vote is not written to the disk */
    BUG_VOTE_FOR_ANYBODY,     /* also for a candidate whose log is behind */
    BUG_OLD_TERM_COMMITS,     /* a leader counts copies of entries of earlier terms (figure 8 of the paper) */
    BUG_HALF_IS_ENOUGH,       /* a majority is half of the nodes */
    BUG_LOCAL_READS,          /* a leader answers reads from its own state */
    BUG_EARLY_ANSWER,         /* the client is answered before the entry is committed */
    BUG_NO_SESSIONS,          /* a repeated request is executed twice */
    BUG_NO_TERM_CHECK,        /* a follower takes entries without comparing the one before them */
    BUG_SNAPSHOT_WITHOUT_IDS, /* a snapshot lacks which requests were executed */
    BUG_ANSWER_BY_INDEX,      /* an entry counts as the request's although it was replaced by another */
    BUGS,
};
extern enum store_bug store_bug; /* written before the simulation starts */
extern const char *const store_bug_names[BUGS];
#define BUG(which) (store_bug == (which))

#endif
