/* unpack.h - the decompressing pipeline, as its parts see it.
 *
 *   source.c        expand (a fiber)                              tasks              write_pieces (a fiber)
 *   reads ahead --> walks from member to member --- pieces ---> check or decode ---> receives them in order, writes,
 *                   and decodes what only one can decode          ordered channel    compares the check values
 *
 * UNPACK-1  All output reaches the writer as pieces, errors and warnings too: what precedes an error is written before
 *           the error is reported.
 * UNPACK-2  Memory is bounded whatever the input says: pieces have a fixed size; a member whose size is known is taken
 *           as a whole only if it and its data are smaller than MEMBER_LIMIT.
 * UNPACK-3  The walk starts alone, without a pipeline and without a runtime: what it sends is checked and written at
 *           once. Small files end like this, and so do stored blocks, which are copied in less time than a wake takes.
 *           With UNPACK_MUCH of coded input ahead, if others can help, the walk ends with UNPACK_ON, and continues as a
 *           fiber where it was. For a stream that only one task can decode they help if reading or writing takes time:
 *           passing data to another processor only to be checked takes longer than checking them. */
#ifndef CCPIGZ_UNPACK_H
#define CCPIGZ_UNPACK_H

#include "decode.h"
#include "job.h"
#include "pool.h"
#include "source.h"

#include <errno.h>

#ifndef PIECE_SIZE
#define PIECE_SIZE ((size_t)384 * 1024)
#endif
/* Of a piece, when the walk is alone: few pages, which stay in the cache. Measured: smaller ones do not save time. */
#ifndef PIECE_ALONE
#define PIECE_ALONE ((size_t)192 * 1024)
#endif
#define UNPACK_ALIGN 4096 /* alignment of buffers; measured: pages are 1 % better than anything */
#define MEMBER_LIMIT ((uint32_t)16 * 1024 * 1024)
/* Measured: with less input than this, helpers take longer to start than they save. */
#ifndef UNPACK_MUCH
#define UNPACK_MUCH ((size_t)256 * 1024)
#endif
#define UNPACK_ON EINPROGRESS /* of the walk: the rest is for the pipeline */
#define UNPACK_AGAIN EAGAIN   /* a hint was wrong: repeat from there, without hints (EXPAND-1) */
#define HEADER_KEPT 1024      /* a member with a longer header is not taken as a whole */

/* Some bytes of the output. */
struct piece {
    struct pool *pool;
    uint8_t *room; /* for a piece of a stream: the window, then the data */
    uint8_t *data;
    size_t size, capacity;
    enum format format;
    bool begins;         /* the first of a member */
    bool ends;           /* the last of a member, whose trailer says what follows */
    uint32_t check;      /* of these bytes; by the task */
    uint32_t want_check; /* of the member */
    uint32_t want_length;
    const char *error; /* the output ends here */
    bool damaged;      /* with error: it is the data that are wrong */
    const char *warning;
    int system_error; /* with error: an errno value behind it, or 0 */
    uint8_t *packed;  /* a whole member: header, data, trailer */
    size_t header_size, packed_size, packed_capacity;
    size_t read;             /* how much of it was read */
    struct decoder *decoder; /* a whole member's own */
};

/* What the pieces of the member so far add up to. */
struct sum {
    uint32_t check;
    uint64_t length;
};

/* A stream that is being decoded. */
struct stream {
    struct piece *piece;    /* NULL: there is none */
    const uint8_t *history; /* how far matches may reach back */
    uint8_t *out;           /* the next byte, in the piece */
    size_t used;            /* bytes of the input */
    uint64_t began_ns;
    bool no_scouts; /* they have done what they could */
};

struct unpack {
    struct job *job;
    bool alone; /* UNPACK-3 */
    struct source source;
    struct pool pieces, members, scouts;
    CCChan *line; /* ordered: tasks that end with a struct piece * */
    CCNursery *nursery;
    struct decoder *decoder;
    bool opened; /* job->begin was called; the writer's, and so is the next */
    struct sum sum;
    uint64_t began_ns, writing_ns;  /* alone: when, and how long it wrote */
    uint64_t alone_ns, alone_bytes; /* how long the stream took for so much, before the scouts came */
    bool no_hints;                  /* EXPAND-1: one was wrong */
    int status;                     /* of the whole */
    /* EXPAND-2: members that were read, and how many of them the writer has found right. The walk waits for the others
     * by the wait group. */
    struct piece **taken;
    size_t taken_count, right_count;
    CCWaitGroup unverified;
    uint8_t header[HEADER_KEPT]; /* the one that was read last */
    size_t header_size;
    /* Where the walk continues. */
    struct stream stream;
    struct wrapper member; /* member_size is not 0: its header was read */
    bool in_member;        /* a header was read, and is not in `member` */
};

/* Walks through the input. 0; ENODATA: the last piece was sent; UNPACK_ON; or an error, -1 if it was reported. */
int unpack_walk(struct unpack *unpack);

/* ---- parts of it ---- */

/* Sends a piece to the writer, through a task; alone, runs the task and writes the piece. 0, or an error; -1: reported.
 */
int unpack_send(struct unpack *u, struct piece *piece, void *(*task)(void *piece));
/* Alone: writes the piece, of which nothing is kept but the window, and clears it. 0; -1: failed, with a message. */
int unpack_write(struct unpack *u, struct piece *piece);
/* Sends an end: an error, a message about invalid data, or a warning. */
int unpack_tell_error(struct unpack *u, const char *error);
int unpack_tell_damage(struct unpack *u, const char *error);
int unpack_tell_warning(struct unpack *u, const char *warning);
/* A task that computes the check value; one that decodes a whole member. */
void *unpack_check(void *piece);
void *unpack_decode_member(void *piece);
/* Takes a piece for stream data, with everything but its buffer cleared; NULL: unpack_why_none says why. */
struct piece *unpack_take(struct pool *pool, enum format format);
int unpack_why_none(void);
/* The error when the input ends where it should not: it is cut off, or could not be read. */
const char *unpack_why_short(const struct unpack *u);

#endif
