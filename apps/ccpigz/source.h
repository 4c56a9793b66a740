/* source.h - the compressed input for the decoder, in contiguous chunks. A pipe is read ahead by a fiber; a file is
 * read on demand, because waking a fiber for a chunk takes longer than copying it.
 *
 * SOURCE-1  Bytes that were not consumed are copied before the next chunk, so that [at, end) always begins where the
 *           decoder stopped; there are at most DECODE_REST of them (DECODE-2), and that much space precedes a chunk. */
#ifndef CCPIGZ_SOURCE_H
#define CCPIGZ_SOURCE_H

#include "decode.h"
#include "job.h"
#include "pool.h"

#include <sys/uio.h>

#ifndef SOURCE_CHUNK
#define SOURCE_CHUNK ((size_t)64 * 1024)
#endif

struct chunk {
    void (*release)(void *owner); /* when it is used up */
    void *owner;
    size_t size;
    int error; /* after these bytes, reading failed */
    uint8_t *data;
    const uint8_t *begin; /* of those not used; for source_unread */
};

struct source {
    struct job *job;
    struct pool chunks;
    CCChan *filled;        /* by the fiber; NULL: there is none */
    struct chunk *unsent;  /* the fiber was cancelled while it had this */
    struct chunk **unread; /* chunks that were given back: a stack */
    size_t unread_count, unread_capacity;
    struct chunk *chunk; /* NULL at first */
    const uint8_t *at, *end;
    bool drained; /* the reader has no more */
    bool ended;   /* nothing follows `end` */
    int error;    /* why it is drained; 0: the input is at its end */
};

/* Both: 0, or an errno value. With a nursery there is a fiber in it from now on that reads ahead, if the input may
 * block. */
int source_open(struct source *source, struct job *job);
int source_read_ahead(struct source *source, CCNursery *nursery);
void source_close(struct source *source);

/* Moves on to the next chunk; false: there is none. Waits. */
bool source_next(struct source *source);
/* Whether source_next would have to wait. */
bool source_is_dry(struct source *source);
/* The i-th byte from here (i < DECODE_REST), which stays there; the next byte, which does not; -1: the end. */
int source_peek(struct source *source, size_t i);
int source_byte(void *source);
/* Copies n bytes, or as many as there are. */
size_t source_read(struct source *source, uint8_t *to, size_t n);
/* For a file whose bytes so far are consumed: reads up to n bytes directly to their destination, and a little of what
 * follows them. Returns their number; 0: not possible in this way, and source_next knows why. */
size_t source_fill(struct source *source, uint8_t *to, size_t n);
/* Returns chunks that others have read: count of them, in order, to be read again before anything else. 0, or ENOMEM.
 */
int source_unread(struct source *source, struct chunk **chunks, size_t count);
/* Returns bytes, which are copied: `count` parts, in order. 0, or ENOMEM. */
int source_return(struct source *source, const struct iovec *parts, size_t count);
/* When the fiber that reads ahead was cancelled and has ended: what it has read is not lost. 0, or ENOMEM. */
int source_resume(struct source *source);

#endif
