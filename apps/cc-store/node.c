/* node.c - a node: elections, replication, snapshots, clients. After "In Search of an Understandable Consensus
 * Algorithm" by Diego Ongaro and John Ousterhout; names of rules are those of its figure 2.
 *
 * One lock guards all of a node except for its fibers' local variables. A fiber for each other node asks it for its
 * vote or sends it entries, one request at a time; a fiber handles timeouts; and each connection has one, which answers
 * requests. Persistent state is synced before anything depends on it: the lock is held meanwhile.
 *
 * NODE-1  Term and vote are on the disk before a vote is given or asked for.
 * NODE-2  Entries are on the disk before they are acknowledged, to the leader or, by the leader, counted for itself.
 * NODE-3  A client is answered when its entry was applied, by the leader that has added it, in the same term.
 * NODE-4  A disk error ends the node: it does not know which of its acknowledgements are on the disk. */
#include "disk.h"
#include "state.h"
#include "store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEARTBEAT_MS = 100,
    ELECTION_MS = 1500, /* and up to twice that: a vote is synced, and disks can be slow */
    REQUEST_MS = 1000,
    PAUSE_MS = 20, /* before the next attempt to reach a node that did not answer */
    ENTRIES_AT_ONCE = 64,
    IDLE_MS = 30000, /* an unused connection */
    CLIENT_MS = 5000,
    SNAPSHOT_AFTER = 10000,
};

enum role { FOLLOWER, CANDIDATE, LEADER };

struct node {
    const struct store_config *config;
    CCMutex lock;
    CCCond changed; /* signalled when the state changes */
    struct disk disk;
    struct state state;
    enum role role;
    uint64_t leader; /* that it knows of, or NOBODY */
    CCDeadline election;
    uint64_t commit, applied;
    unsigned votes;
    struct {
        bool asked; /* for its vote, in this term */
        uint64_t next, match;
    } peers[NODES_MAX];
    uint64_t random;
    int error; /* NODE-4 */
    CCNursery *nursery;
};

static uint64_t draw(struct node *n, uint64_t below) {
    n->random ^= n->random << 13;
    n->random ^= n->random >> 7;
    n->random ^= n->random << 17;
    return n->random % below;
}

static void rest(struct node *n) {
    unsigned least = n->config->election_ms, spread = n->config->spread_ms;
    if (least == 0) least = spread = ELECTION_MS;
    n->election = cc_after_ms(least + draw(n, spread + 1));
}

static void give_notice(struct node *n, struct store_notice notice) {
    if (n->config->notice != NULL) n->config->notice(n->config->notice_arg, n->config->id, &notice);
}

static void give_notice_of(struct node *n, enum store_event event) {
    give_notice(n, (struct store_notice){.event = event, .term = n->disk.term});
}

/* The node stops. */
static void stop(struct node *n, int error) {
    if (n->error == 0) n->error = error;
    (void)cc_nursery_cancel(n->nursery);
    (void)cc_cond_broadcast(&n->changed);
}

/* Handles the result of a disk operation; false: the node stops. */
static bool sure(struct node *n, int error) {
    if (error != 0) stop(n, error);
    return error == 0;
}

static bool is_majority(const struct node *n, unsigned count) {
    return BUG(BUG_HALF_IS_ENOUGH) ? 2 * count + 1 >= n->config->count : 2 * count > n->config->count;
}

/* ---- roles ---- */

static bool follow(struct node *n, uint64_t term) {
    if (term > n->disk.term && !sure(n, disk_set_vote(&n->disk, term, NOBODY))) return false;
    if (n->role != FOLLOWER) rest(n);
    n->role = FOLLOWER;
    (void)cc_cond_broadcast(&n->changed);
    return true;
}

static void stand(struct node *n) {
    if (!sure(n, disk_set_vote(&n->disk, n->disk.term + 1, n->config->id))) return; /* NODE-1 */
    n->role = CANDIDATE;
    n->leader = NOBODY;
    n->votes = 1;
    for (unsigned i = 0; i < n->config->count; i++) n->peers[i].asked = false;
    rest(n);
    give_notice_of(n, EVENT_STANDS);
    (void)cc_cond_broadcast(&n->changed);
}

static bool add_entry(struct node *n, const struct bytes *command) {
    if (command->failed) return sure(n, ENOMEM);
    int error = disk_add(&n->disk, n->disk.term, command->data, command->size);
    if (error == 0) error = disk_sync(&n->disk); /* NODE-2 */
    if (sure(n, error)) (void)cc_cond_broadcast(&n->changed);
    return error == 0;
}

static void apply_committed(struct node *n);

/* Commits entries of this term that a majority has. */
static void advance_commit(struct node *n) {
    for (uint64_t index = disk_last(&n->disk); index > n->commit; index--) {
        if (disk_term_of(&n->disk, index) != n->disk.term && !BUG(BUG_OLD_TERM_COMMITS)) return;
        unsigned count = 1;
        for (unsigned i = 0; i < n->config->count; i++) count += i != n->config->id && n->peers[i].match >= index;
        if (!is_majority(n, count)) continue;
        n->commit = index;
        apply_committed(n);
        return;
    }
}

static void lead(struct node *n) {
    struct bytes nothing = {0};
    n->role = LEADER;
    n->leader = n->config->id;
    for (unsigned i = 0; i < n->config->count; i++) {
        n->peers[i].next = disk_last(&n->disk) + 1;
        n->peers[i].match = 0;
    }
    give_notice_of(n, EVENT_LEADS);
    if (BUG(BUG_OLD_TERM_COMMITS)) return;
    command_write(&nothing, 0, 0, OP_NOTHING, (struct view){0}, (struct view){0});
    if (add_entry(n, &nothing)) advance_commit(n); /* entries of earlier terms come with it */
    bytes_free(&nothing);
}

/* ---- applying ---- */

static void perhaps_snapshot(struct node *n) {
    uint64_t after = n->config->snapshot_after != 0 ? n->config->snapshot_after : SNAPSHOT_AFTER;
    if (n->applied - n->disk.base < after) return;
    struct bytes out = {0};
    state_write(&n->state, &out);
    int error = out.failed
                    ? ENOMEM
                    : disk_set_snapshot(&n->disk, out.data, out.size, n->applied, disk_term_of(&n->disk, n->applied));
    bytes_free(&out);
    (void)sure(n, error);
}

static void apply_committed(struct node *n) {
    struct bytes ignored = {0};
    while (n->applied < n->commit && n->error == 0) {
        const struct entry *e = disk_entry(&n->disk, n->applied + 1);
        if (e == NULL) break;
        bytes_clear(&ignored);
        if (!sure(n, state_apply(&n->state, view_of(&e->command), &ignored))) break;
        n->applied++;
        give_notice(n, (struct store_notice){EVENT_APPLIES, e->term, n->applied, e->command.data, e->command.size});
    }
    bytes_free(&ignored);
    perhaps_snapshot(n);
    (void)cc_cond_broadcast(&n->changed);
}

/* ---- what other nodes ask ---- */

static void answer_vote(struct node *n, struct view *in, struct bytes *out) {
    uint64_t term = view_number(in), candidate = view_number(in), index = view_number(in), last = view_number(in);
    if (term > n->disk.term && !follow(n, term)) return;
    uint64_t own = disk_term_of(&n->disk, disk_last(&n->disk));
    bool behind = last < own || (last == own && index < disk_last(&n->disk));
    if (BUG(BUG_VOTE_FOR_ANYBODY)) behind = false;
    bool free = n->disk.vote == NOBODY || n->disk.vote == candidate;
    bool granted = term == n->disk.term && n->role == FOLLOWER && free && !behind;
    if (granted && n->disk.vote == NOBODY && !sure(n, disk_set_vote(&n->disk, term, candidate))) return; /* NODE-1 */
    if (granted) {
        rest(n);
        give_notice_of(n, EVENT_VOTES);
    }
    bytes_add_number(out, n->disk.term);
    bytes_add_number(out, granted);
}

/* Adds entries that are missing, and replaces conflicting ones. */
static bool take_entries(struct node *n, struct view *in, uint64_t index, uint64_t count) {
    for (; count > 0; count--) {
        uint64_t term = view_number(in);
        struct view command = view_piece(in);
        if (in->failed) return true;
        index++;
        if (index <= n->disk.base || disk_term_of(&n->disk, index) == term) continue;
        if (index <= disk_last(&n->disk) && !sure(n, disk_cut(&n->disk, index))) return false;
        if (index != disk_last(&n->disk) + 1) return true; /* a gap: only with a planted bug */
        if (!sure(n, disk_add(&n->disk, term, command.data, command.size))) return false;
    }
    return sure(n, disk_sync(&n->disk)); /* NODE-2 */
}

/* Of the leader of this term, or a later one. */
static bool hear_leader(struct node *n, uint64_t term, uint64_t leader) {
    if (term < n->disk.term || !follow(n, term)) return false;
    n->leader = leader;
    rest(n);
    return true;
}

static void answer_append(struct node *n, struct view *in, struct bytes *out) {
    uint64_t term = view_number(in), leader = view_number(in), index = view_number(in), before = view_number(in),
             commit = view_number(in), count = view_number(in);
    bool heard = hear_leader(n, term, leader);
    if (n->error != 0) return;
    bool known = index <= n->disk.base || disk_term_of(&n->disk, index) == before;
    if (BUG(BUG_NO_TERM_CHECK) && index <= disk_last(&n->disk)) known = true;
    bool ok = heard && known;
    if (ok && !take_entries(n, in, index, count)) return;
    uint64_t last = index + count; /* up to here the logs are the same */
    if (ok && commit > n->commit) {
        n->commit = commit < last ? commit : last;
        apply_committed(n);
    }
    uint64_t hint = disk_last(&n->disk) < index ? disk_last(&n->disk) : index > 0 ? index - 1 : 0;
    bytes_add_number(out, n->disk.term);
    bytes_add_number(out, ok);
    bytes_add_number(out, ok ? last : hint);
}

static void answer_snapshot(struct node *n, struct view *in, struct bytes *out) {
    uint64_t term = view_number(in), leader = view_number(in), index = view_number(in), last = view_number(in);
    struct view data = view_piece(in);
    bool heard = hear_leader(n, term, leader) && !in->failed;
    if (n->error != 0) return;
    if (heard && index > n->commit) {
        if (!sure(n, state_load(&n->state, data))) return;
        n->commit = n->applied = index;
        if (!sure(n, disk_set_snapshot(&n->disk, data.data, data.size, index, last))) return;
        (void)cc_cond_broadcast(&n->changed);
    }
    bytes_add_number(out, n->disk.term);
    bytes_add_number(out, heard);
    bytes_add_number(out, index);
}

/* ---- what clients ask ---- */

static void answer_not_leader(struct node *n, struct bytes *out) {
    bytes_clear(out);
    bytes_add_number(out, ANSWER_NOT_LEADER);
    bytes_add_number(out, n->leader);
}

static void answer_client(struct node *n, struct view *in, struct bytes *out) {
    struct view command = *in;
    CCDeadline until = cc_after_ms(CLIENT_MS);
    (void)view_number(in); /* the client and the request's number: state_apply looks at them */
    (void)view_number(in);
    uint64_t op = view_number(in);
    struct view key = view_piece(in);
    (void)view_piece(in);
    struct bytes copy = {0};
    if (in->failed || n->role != LEADER) {
        answer_not_leader(n, out);
        return;
    }
    if (op == OP_GET && BUG(BUG_LOCAL_READS)) {
        state_read(&n->state, key, out);
        return;
    }
    bytes_add(&copy, command.data, command.size);
    uint64_t term = n->disk.term, index = disk_last(&n->disk) + 1;
    int error = add_entry(n, &copy) ? 0 : EIO;
    if (error == 0) advance_commit(n); /* a single node is a majority */
    bool any_term = BUG(BUG_ANSWER_BY_INDEX), waits = !BUG(BUG_EARLY_ANSWER);
    while (error == 0 && waits && n->applied < index && (n->disk.term == term || any_term) && n->error == 0)
        error = cc_cond_wait_until(&n->changed, &n->lock, until);
    bool done = error == 0 && n->error == 0 && ((n->disk.term == term && n->role == LEADER) || any_term); /* NODE-3 */
    if (done && (!waits || any_term || BUG(BUG_NO_SESSIONS))) {
        if (op == OP_PUT)
            bytes_add_number(out, ANSWER_DONE);
        else
            state_read(&n->state, key, out);
    } else if (done) {
        done = sure(n, state_apply(&n->state, view_of(&copy), out)); /* what it was answered */
    }
    if (!done) answer_not_leader(n, out);
    bytes_free(&copy);
}

/* ---- connections ---- */

static int answer_one(struct node *n, struct bytes *in, struct bytes *out) {
    static void (*const answers[])(struct node *, struct view *, struct bytes *) = {
        [MESSAGE_VOTE] = answer_vote,
        [MESSAGE_APPEND] = answer_append,
        [MESSAGE_SNAPSHOT] = answer_snapshot,
        [MESSAGE_CLIENT] = answer_client,
    };
    struct view v = view_of(in);
    uint64_t kind = view_number(&v);
    if (kind < MESSAGE_VOTE || kind > MESSAGE_CLIENT) return EBADMSG;
    int error = cc_mutex_lock(&n->lock);
    if (error != 0) return error;
    if (n->error == 0) answers[kind](n, &v, out);
    error = n->error != 0 ? ECANCELED : v.failed ? EBADMSG : out->failed ? ENOMEM : 0;
    (void)cc_mutex_unlock(&n->lock);
    return error;
}

static int handle(CCConn *conn, void *arg) {
    struct node *n = arg;
    struct bytes in = {0}, out = {0};
    int error;
    do {
        bytes_clear(&out);
        error = message_receive(conn, &in, cc_after_ms(IDLE_MS));
        if (error == 0) error = answer_one(n, &in, &out);
        if (error == 0) error = message_send(conn, &out, cc_after_ms(REQUEST_MS));
    } while (error == 0);
    bytes_free(&in);
    bytes_free(&out);
    return 0;
}

/* ---- asking other nodes ---- */

struct peer {
    struct node *node;
    unsigned id;
};

/* Whether there is a request to send: it is written to `out`. */
static bool write_request(struct node *n, unsigned to, struct bytes *out) {
    bytes_clear(out);
    if (n->role == CANDIDATE && !n->peers[to].asked) {
        bytes_add_number(out, MESSAGE_VOTE);
        bytes_add_number(out, n->disk.term);
        bytes_add_number(out, n->config->id);
        bytes_add_number(out, disk_last(&n->disk));
        bytes_add_number(out, disk_term_of(&n->disk, disk_last(&n->disk)));
        return true;
    }
    if (n->role != LEADER) return false;
    uint64_t next = n->peers[to].next;
    bytes_add_number(out, next <= n->disk.base ? MESSAGE_SNAPSHOT : MESSAGE_APPEND);
    bytes_add_number(out, n->disk.term);
    bytes_add_number(out, n->config->id);
    if (next <= n->disk.base) {
        bytes_add_number(out, n->disk.base);
        bytes_add_number(out, n->disk.base_term);
        bytes_add_piece(out, n->disk.snapshot.data, n->disk.snapshot.size);
        return true;
    }
    uint64_t count = disk_last(&n->disk) + 1 - next;
    if (count > ENTRIES_AT_ONCE) count = ENTRIES_AT_ONCE;
    bytes_add_number(out, next - 1);
    bytes_add_number(out, disk_term_of(&n->disk, next - 1));
    bytes_add_number(out, n->commit);
    bytes_add_number(out, count);
    for (uint64_t i = 0; i < count; i++) {
        const struct entry *e = disk_entry(&n->disk, next + i);
        bytes_add_number(out, e->term);
        bytes_add_piece(out, e->command.data, e->command.size);
    }
    return true;
}

/* Only if role and term are still those of the request. */
static void take_answer(struct node *n, unsigned from, uint64_t kind, uint64_t term, struct view *in) {
    uint64_t their_term = view_number(in);
    bool ok = view_number(in) != 0;
    if (in->failed) return;
    if (their_term > n->disk.term) {
        (void)follow(n, their_term);
        return;
    }
    if (n->disk.term != term) return;
    if (kind == MESSAGE_VOTE) {
        n->peers[from].asked = true;
        if (!ok || n->role != CANDIDATE) return;
        n->votes++;
        if (is_majority(n, n->votes)) lead(n);
        return;
    }
    uint64_t index = view_number(in);
    if (in->failed || n->role != LEADER) return;
    if (ok && index > n->peers[from].match) n->peers[from].match = index;
    n->peers[from].next = index + 1;
    if (ok) advance_commit(n);
}

/* Waits until there is something to send to that node, or the next heartbeat is due: 0 or ECANCELED. */
static int await_work(struct node *n, unsigned to) {
    CCDeadline until = cc_after_ms(HEARTBEAT_MS);
    int error = 0;
    while (error == 0 && n->error == 0) {
        if (n->role == CANDIDATE && !n->peers[to].asked) break;
        if (n->role == LEADER && n->peers[to].next <= disk_last(&n->disk)) break;
        error = cc_cond_wait_until(&n->changed, &n->lock, until);
    }
    return error == ETIMEDOUT ? 0 : error;
}

static int ask(CCConn **conn, const char *where, const struct bytes *out, struct bytes *in) {
    CCDeadline until = cc_after_ms(REQUEST_MS);
    int error = *conn != NULL ? 0 : cc_dial_until(conn, where, NULL, until);
    if (error == 0) error = message_send(*conn, out, until);
    if (error == 0) error = message_receive(*conn, in, until);
    if (error != 0) {
        cc_close(*conn);
        *conn = NULL;
    }
    return error;
}

static void *talk_to_peer(void *arg) {
    struct peer p = *(struct peer *)arg;
    struct node *n = p.node;
    struct bytes out = {0}, in = {0};
    CCConn *conn = NULL;
    int error = 0;
    if (cc_mutex_lock(&n->lock) != 0) return NULL;
    while (error == 0) {
        bool talks = n->error == 0 && write_request(n, p.id, &out);
        uint64_t term = n->disk.term;
        struct view v = view_of(&out);
        uint64_t kind = talks ? view_number(&v) : 0;
        if (talks) {
            (void)cc_mutex_unlock(&n->lock);
            error = out.failed ? ENOMEM : ask(&conn, n->config->where[p.id], &out, &in);
            if (error != 0 && error != ECANCELED) error = cc_sleep_ms(PAUSE_MS) == 0 ? EAGAIN : ECANCELED;
            if (error == ECANCELED || cc_mutex_lock(&n->lock) != 0) goto end;
            struct view answer = view_of(&in);
            if (error == 0 && n->error == 0) take_answer(n, p.id, kind, term, &answer);
        }
        error = n->error != 0 ? ECANCELED : await_work(n, p.id);
    }
    (void)cc_mutex_unlock(&n->lock);
end:
    cc_close(conn);
    bytes_free(&out);
    bytes_free(&in);
    return NULL;
}

static void *watch_time(void *arg) {
    struct node *n = arg;
    if (cc_mutex_lock(&n->lock) != 0) return NULL;
    int error = 0;
    while (error == 0 && n->error == 0) {
        if (n->role != LEADER && cc_now_ns() >= n->election.ns) {
            stand(n);
            if (is_majority(n, n->votes) && n->role == CANDIDATE && n->error == 0) lead(n); /* it is alone */
        }
        CCDeadline next = n->role == LEADER ? cc_after_ms(ELECTION_MS) : n->election;
        error = cc_cond_wait_until(&n->changed, &n->lock, next);
        if (error == ETIMEDOUT) error = 0;
    }
    (void)cc_mutex_unlock(&n->lock);
    return NULL;
}

/* ---- the life of a node ---- */

static int load(struct node *n) {
    int error = state_init(&n->state);
    if (error == 0) error = disk_open(&n->disk, n->config->directory);
    if (error == 0) error = state_load(&n->state, view_of(&n->disk.snapshot));
    n->commit = n->applied = n->disk.base;
    return error;
}

static int run_fibers(struct node *n, CCListener *listener) {
    int error = 0;
    n->nursery = cc_nursery_create_ex(&(CCNurseryConfig){.name = "node"});
    if (n->nursery == NULL) return ENOMEM;
    error = cc_nursery_spawn(n->nursery, watch_time, n);
    for (unsigned i = 0; i < n->config->count && error == 0; i++) {
        struct peer p = {n, i};
        if (i != n->config->id) error = cc_nursery_go(n->nursery, talk_to_peer, &p, sizeof p);
    }
    if (error == 0) error = cc_serve(n->nursery, listener, handle, n, NULL);
    if (error != 0) (void)cc_nursery_cancel(n->nursery);
    int ended = cc_nursery_wait(n->nursery);
    (void)cc_nursery_cancel(n->nursery); /* this fiber alone may have been cancelled */
    (void)cc_nursery_free(n->nursery);
    return n->error != 0 ? n->error : error != 0 ? error : ended != 0 ? ended : ECANCELED;
}

int store_run(const struct store_config *config) {
    struct node *n = calloc(1, sizeof *n);
    CCListener *listener = NULL;
    if (n == NULL) return ENOMEM;
    n->config = config;
    n->leader = NOBODY;
    n->random = (cc_sim_seed() != 0 ? cc_sim_seed() : cc_now_ns()) * 1000003 + config->id + 1;
    int error = load(n);
    rest(n);
    if (error == 0) error = cc_listen(&listener, config->listen, &(CCListenOptions){.unlink = true});
    if (error == 0) error = run_fibers(n, listener);
    cc_listener_close(listener);
    disk_close(&n->disk);
    state_free(&n->state);
    free(n);
    return error;
}
