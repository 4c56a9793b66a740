/* record.h - histories, made from the rings of the recorder.
 *
 * The rings are copied, their records sorted by time, and a state machine for each fiber (README.md) turns them into
 * steps. So a history is consistent, and the formats need not check it.
 */
#ifndef CC_RECORD_RECORD_H
#define CC_RECORD_RECORD_H

#include "inspect/symbol.h"
#include "trace/recorder.h"

/* ---- bytes.c: containers and encodings ---- */

/* A growable array. After an allocation has failed, `failed` is set and it takes no more. */
struct vec {
    void *at;
    size_t count, room;
    bool failed;
};
/* Appends a zeroed element; NULL: no memory. */
void *cc__vec_add(struct vec *v, size_t size);
void cc__vec_free(struct vec *v);
#define cc__vec_at(type, v, i) (&((type *)(v)->at)[i])

/* A hash map; keys are not 0, and number 0 means absent. */
struct map {
    struct map_entry {
        uint64_t key;
        uint32_t number;
    } * at;
    size_t count, room; /* a power of two */
};
/* 0: absent. */
uint32_t cc__map_find(const struct map *map, uint64_t key);
/* Adds or replaces. False: no memory. */
bool cc__map_set(struct map *map, uint64_t key, uint32_t number);
void cc__map_free(struct map *map);

void cc__bytes_add(struct vec *bytes, const void *data, size_t n);
void cc__bytes_byte(struct vec *bytes, unsigned value);
void cc__bytes_varint(struct vec *bytes, uint64_t value);
void cc__bytes_text(struct vec *bytes, const char *fmt, ...) CC_PRINTF(2, 3);
/* Protobuf fields: a varint; bytes. */
void cc__bytes_field(struct vec *bytes, unsigned number, uint64_t value);
void cc__bytes_field_bytes(struct vec *bytes, unsigned number, const void *data, size_t n);
/* 0 or an error. patience_ms: how long a non-blocking descriptor may accept nothing before ETIMEDOUT; 0: EAGAIN at
 * once. */
int cc__bytes_write(const struct vec *bytes, int fd, unsigned patience_ms);

/* ---- names.c: strings and code addresses, each once, in the order of their first use ---- */

struct code_place {
    const void *address;
    uint32_t function, file; /* strings */
    uint32_t line;
    bool ours; /* in this library */
};
struct names {
    struct vec strings;   /* of char *; number 0 is "" */
    struct vec places;    /* of struct code_place */
    struct vec buckets;   /* of uint32_t */
    uint32_t recent[256]; /* cache: a place plus one, by a hash of its address */
};

/* False: no memory; there is nothing to free. */
bool cc__names_init(struct names *names);
void cc__names_free(struct names *names);
uint32_t cc__names_string(struct names *names, const char *text);
const char *cc__names_text(const struct names *names, uint32_t string);
/* The number of a return address. */
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
    STEP_LOST, /* older records were overwritten */
    STEP_RUNS, /* it still runs when the recording ends */
};

enum { NOBODY = UINT32_MAX };

/* One event, on one worker. */
struct step {
    uint64_t time; /* ns */
    uint32_t kind, lane;
    uint32_t fiber;    /* that it happens to; NOBODY: to none */
    uint32_t by;       /* the fiber that ran there; NOBODY: none */
    uint32_t sequence; /* START, UNBLOCK: the fiber's own count of these */
    uint32_t reason;   /* BLOCK: enum park_reason. UNBLOCK: enum wake_reason. EVENT: its number */
    uint32_t object;   /* BLOCK: the object it waits for, 0: none. SCOPE, REGION: the nursery */
    uint32_t text;     /* NOTE, EVENT, REGION, LOST: a string. START: the label, if no other step has it */
    uint32_t stack;    /* BLOCK: a number of trace/recorder.h */
    bool inferred;     /* without a record: that was overwritten, or is out of order */
};

enum strand_state { STRAND_WAITING, STRAND_RUNNABLE, STRAND_RUNNING, STRAND_ENDED };

/* A fiber in a history; number 0 stands for all threads that are not workers. */
struct strand {
    uint32_t slot, generation;
    bool known;        /* the generation is known */
    bool existed;      /* before the first record */
    uint8_t initial;   /* enum strand_state at that time */
    uint8_t state;     /* of the state machine */
    bool woken;        /* while it was about to park */
    bool named;        /* the next START has to show the label */
    uint32_t lane;     /* RUNNING: its lane */
    uint32_t sequence; /* see struct step */
    uint32_t label;    /* its function and name: a string */
    uint32_t fn, site; /* places; NOBODY: not known */
    uint32_t scope;    /* the nursery it was started in; 0: none */
    uint32_t depth;    /* of nested regions */
    uint32_t regions[16];
};

struct scope_named {
    uint32_t parent, name; /* a number, a string */
};

struct lane {
    int worker;                      /* -1: the threads that are not workers */
    char island[RECORD_ISLAND_NAME]; /* of the worker; "": it is in the pool */
    uint64_t lost, records;
    bool reported; /* there is a LOST step */
};

struct history {
    struct names names;
    struct vec steps, strands, scopes; /* number 0 of the scopes is none */
    struct vec lanes;
    struct map objects, open; /* numbers of objects, of scopes that have not ended; by cc__hidden address */
    uint64_t begin;           /* of the first step, ns */
    uint64_t end;             /* when it was taken, or the recording was stopped */
    uint64_t lost;
    uint64_t inferred;
    bool failed; /* no memory */
};

/* inside: the caller keeps the runtime from stopping. 0, ENOMEM, ENODATA, ESRCH: as cc_record_write. */
int cc__history_take(struct history *h, bool inside);
void cc__history_free(struct history *h);

#define cc__step(h, i) cc__vec_at(struct step, &(h)->steps, i)
#define cc__strand(h, i) cc__vec_at(struct strand, &(h)->strands, i)
#define cc__scope_named(h, i) cc__vec_at(struct scope_named, &(h)->scopes, i)
#define cc__lane(h, i) cc__vec_at(struct lane, &(h)->lanes, i)

/* numbers.c: the places of a wait's frames, without the library's innermost ones. Returns their number. */
unsigned cc__history_frames(struct history *h, const struct step *step, uint32_t *places);

/* ---- formats ---- */

int cc__record_go(struct history *h, struct vec *out);
int cc__record_perfetto(struct history *h, struct vec *out);
int cc__record_lines(struct history *h, struct vec *out);

/* ---- reports (last.c) ---- */

/* The newest events of a worker, or of the other threads (RECORDER_OTHERS), as lines, oldest first. Async-signal-safe:
 * allocates nothing, takes no lock. False: there are none. */
bool cc__record_last(unsigned ring, unsigned max, void (*say)(void *arg, const char *line), void *arg);

/* ---- the environment (api.c) ---- */

/* In a forked child: the thread that held the lock does not exist. */
void cc__record_forget(void);

/* At the start of a runtime with that many workers. 0, ENOMEM. */
int cc__record_attach(unsigned workers);

/* CC_RECORD and CC_RECORD_LEVEL; file: NULL or a string that stays valid. Before the runtime starts. */
int cc__record_configure(const char *file, int level);
/* Writes CC_RECORD's file, after an incident (at most once in 10 s) or at the end. Any thread, not in signal
 * handlers. */
void cc__record_save(bool end);
/* Asks the sysmon thread for the same; at the end, waits for it for a limited time. Async-signal-safe. */
void cc__record_ask(bool end);
/* On the sysmon thread: serves cc__record_ask. */
void cc__record_asked(void);

#endif
