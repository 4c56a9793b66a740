/* record.h - what the rings of the recorder hold, put together.
 *
 * The rings are copied, their records sorted by time, and a machine that knows what a fiber can do turns them into
 * steps: README.md has its states. The formats need not check anything: their input is a history that can have been.
 */
#ifndef CC_RECORD_RECORD_H
#define CC_RECORD_RECORD_H

#include "inspect/symbol.h"
#include "trace/recorder.h"

/* ---- bytes.c: what grows ---- */

/* An array of anything. When memory runs out it is marked, and takes no more. */
struct vec {
    void *at;
    size_t count, room;
    bool failed;
};
/* One more, zeroed; NULL: no memory. */
void *cc__vec_add(struct vec *v, size_t size);
void cc__vec_free(struct vec *v);
#define cc__vec_at(type, v, i) (&((type *)(v)->at)[i])

/* Numbers by address, both not 0. */
struct map {
    struct map_entry {
        uint64_t key;
        uint32_t number;
    } * at;
    size_t count, room; /* a power of two */
};
/* 0: there is none. */
uint32_t cc__map_find(const struct map *map, uint64_t key);
/* In place of the one that is there. False: no memory. */
bool cc__map_set(struct map *map, uint64_t key, uint32_t number);
void cc__map_free(struct map *map);

void cc__bytes_add(struct vec *bytes, const void *data, size_t n);
void cc__bytes_byte(struct vec *bytes, unsigned value);
void cc__bytes_varint(struct vec *bytes, uint64_t value);
void cc__bytes_text(struct vec *bytes, const char *fmt, ...) CC_PRINTF(2, 3);
/* protobuf: a field of varint, of bytes. */
void cc__bytes_field(struct vec *bytes, unsigned number, uint64_t value);
void cc__bytes_field_bytes(struct vec *bytes, unsigned number, const void *data, size_t n);
/* 0 or an error. patience_ms: how long a descriptor in non-blocking mode may take nothing before it is ETIMEDOUT; 0:
 * EAGAIN at once. */
int cc__bytes_write(const struct vec *bytes, int fd, unsigned patience_ms);

/* ---- names.c: strings and code addresses, each once, in the order of their first use ---- */

struct code_place {
    const void *address;
    uint32_t function, file; /* strings */
    uint32_t line;
    bool ours; /* the library's */
};
struct names {
    struct vec strings;   /* of char *; number 0 is "" */
    struct vec places;    /* of struct code_place */
    struct vec buckets;   /* of uint32_t */
    uint32_t recent[256]; /* places, by a hash of their address; plus one */
};

bool cc__names_init(struct names *names);
void cc__names_free(struct names *names);
uint32_t cc__names_string(struct names *names, const char *text);
const char *cc__names_text(const struct names *names, uint32_t string);
/* Of a call's return address; its number. */
uint32_t cc__names_place(struct names *names, const void *address);
struct code_place *cc__names_place_at(const struct names *names, uint32_t number);

/* ---- history.c ---- */

enum step_kind {
    STEP_CREATE,
    STEP_START,
    STEP_BLOCK,
    STEP_STOP, /* yields */
    STEP_UNBLOCK,
    STEP_END,
    STEP_NOTE,
    STEP_EVENT,
    STEP_REGION,
    STEP_REGION_END,
    STEP_SCOPE,
    STEP_SCOPE_END,
    STEP_LOST, /* what is older was overwritten */
};

enum { NOBODY = UINT32_MAX };

/* One thing that happened, on one worker. */
struct step {
    uint64_t time; /* ns */
    uint32_t kind, lane;
    uint32_t fiber;    /* whom it happens to; NOBODY: to no fiber */
    uint32_t by;       /* who was running there; NOBODY: none */
    uint32_t sequence; /* START, UNBLOCK: the fiber's own count of these */
    uint32_t reason;   /* BLOCK: enum park_reason. UNBLOCK: enum wake_reason. EVENT: its number */
    uint32_t object;   /* BLOCK: a number for what it waits for, 0: none. SCOPE: which. REGION: of which */
    uint32_t text;     /* NOTE, EVENT, REGION, LOST: a string. START: its label, if nothing else tells who it is */
    uint32_t stack;    /* BLOCK: a number of trace/recorder.h */
    bool inferred;     /* no record says so: it was overwritten, or came late */
};

enum strand_state { STRAND_WAITING, STRAND_RUNNABLE, STRAND_RUNNING, STRAND_ENDED };

/* A fiber in a history; number 0 stands for all threads that are not workers. */
struct strand {
    uint32_t slot, generation;
    bool known;        /* its generation */
    bool existed;      /* before the first record */
    uint8_t initial;   /* then: enum strand_state */
    uint8_t state;     /* of the machine */
    bool woken;        /* while it was about to park */
    bool named;        /* its label says more than its function, or its function is told nowhere else */
    uint32_t lane;     /* RUNNING: where */
    uint32_t sequence; /* see struct step */
    uint32_t label;    /* its function and name: a string */
    uint32_t fn, site; /* places; NOBODY: not known */
    uint32_t scope;    /* the nursery it was started in: a number, 0: none */
    uint32_t depth;    /* regions that it is in */
    uint32_t regions[16];
};

struct scope_named {
    uint32_t parent, name; /* a number, a string */
};

struct lane {
    int worker;                      /* -1: the threads that are not workers */
    char island[RECORD_ISLAND_NAME]; /* whose worker it is; "": of the pool */
    uint64_t lost, records;
    bool told; /* what was lost */
};

struct history {
    struct names names;
    struct vec steps, strands, scopes; /* number 0 of the scopes is none */
    struct vec lanes;
    struct map objects, open; /* numbers of objects, of the scopes that have not ended; by address, hidden */
    uint64_t begin;           /* of the first step, ns */
    uint64_t end;             /* when it was taken */
    uint64_t lost;
    uint64_t inferred;
    bool failed; /* no memory */
};

/* inside: the caller sees to it that the runtime stays as it is. 0, ENOMEM, ENODATA, ESRCH: as cc_record_write. */
int cc__history_take(struct history *h, bool inside);
void cc__history_free(struct history *h);

#define cc__step(h, i) cc__vec_at(struct step, &(h)->steps, i)
#define cc__strand(h, i) cc__vec_at(struct strand, &(h)->strands, i)
#define cc__scope_named(h, i) cc__vec_at(struct scope_named, &(h)->scopes, i)
#define cc__lane(h, i) cc__vec_at(struct lane, &(h)->lanes, i)

/* numbers.c: the frames of a wait, without the library's own at the inner end: places; how many. */
unsigned cc__history_frames(struct history *h, const struct step *step, uint32_t *places);

/* ---- formats ---- */

int cc__record_go(struct history *h, struct vec *out);
int cc__record_perfetto(struct history *h, struct vec *out);
int cc__record_lines(struct history *h, struct vec *out);

/* ---- reports (last.c) ---- */

/* The newest events of a worker, or of the other threads (RECORDER_OTHERS): as lines, oldest first. Allocates nothing,
 * takes no lock. Any context, signal handlers included. False: none are recorded. */
bool cc__record_last(unsigned ring, unsigned max, void (*say)(void *arg, const char *line), void *arg);

/* ---- the environment (api.c) ---- */

/* In a forked child: whoever held the lock is gone. */
void cc__record_forget(void);

/* CC_RECORD and CC_RECORD_LEVEL; file: NULL or a name that lasts. Before the runtime starts. */
/* A runtime of so many workers starts. ENOMEM. */
int cc__record_attach(unsigned workers);

int cc__record_configure(const char *file, int level);
/* Something has happened that should be looked at: writes CC_RECORD's file. At most once in 10 s unless it is the end.
 * Any thread, not for signal handlers. */
void cc__record_save(bool end);
/* The same by the sysmon thread: soon, or, at the end, before this returns, unless that takes too long. Any context,
 * signal handlers included. */
void cc__record_ask(bool end);
/* On the sysmon thread: does what was asked for. */
void cc__record_asked(void);

#endif
