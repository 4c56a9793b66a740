/* source.c - a fiber that reads ahead, if necessary, and its consumer. */
#include "source.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 3 /* chunks: one in use, one filled, one being filled; of a file there are two only */

struct read_chunk {
    struct chunk chunk;
    struct pool *pool;
    alignas(64) uint8_t rest[DECODE_REST]; /* so that the kernel copies whole lines to the data */
    uint8_t data[SOURCE_CHUNK];
};

static void release_chunk(void *owner) {
    struct read_chunk *chunk = owner;
    chunk->chunk.begin = chunk->data;
    pool_give(chunk->pool, chunk);
}

static void *make_chunk(void *context) {
    struct read_chunk *made = aligned_alloc(alignof(struct read_chunk), sizeof *made);
    if (made == NULL) return NULL;
    made->chunk = (struct chunk){.release = release_chunk, .owner = made, .data = made->data, .begin = made->data};
    made->pool = context;
    return made;
}

static void *read_chunks(void *arg) {
    struct source *s = arg;
    for (;;) {
        struct read_chunk *taken = pool_take(&s->chunks);
        if (taken == NULL) {
            cc_chan_close_err(s->filled, cc_cancelled() ? ECANCELED : ENOMEM);
            return NULL;
        }
        struct chunk *chunk = &taken->chunk;
        chunk->size = job_read_some(s->job, chunk->data, SOURCE_CHUNK, &chunk->error);
        bool last = chunk->size == 0;
        int rc = cc_chan_send(s->filled, &chunk, sizeof chunk);
        if (rc != 0) s->unsent = chunk;
        if (rc != 0 || last) break;
    }
    cc_chan_close(s->filled);
    return NULL;
}

int source_open(struct source *s, struct job *job) {
    *s = (struct source){.job = job};
    return pool_open(&s->chunks, AHEAD, make_chunk, free, &s->chunks, "chunks");
}

int source_read_ahead(struct source *s, CCNursery *nursery) {
    if (!s->job->in_may_block || s->drained) return 0;
    s->filled = cc_chan_create(sizeof(struct chunk *), AHEAD);
    return s->filled == NULL ? ENOMEM : cc_nursery_spawn(nursery, read_chunks, s);
}

void source_close(struct source *s) {
    cc_chan_free(s->filled);
    if (s->chunk != NULL) s->chunk->release(s->chunk->owner);
    while (s->unread_count > 0) {
        struct chunk *chunk = s->unread[--s->unread_count];
        chunk->release(chunk->owner);
    }
    free(s->unread);
    pool_close(&s->chunks);
}

static int read_chunk(struct source *s, struct chunk **next) {
    struct read_chunk *taken = pool_take(&s->chunks);
    if (taken == NULL) return cc_cancelled() ? ECANCELED : ENOMEM;
    *next = &taken->chunk;
    taken->chunk.size = job_read_some(s->job, taken->data, SOURCE_CHUNK, &taken->chunk.error);
    if (taken->chunk.size == 0) release_chunk(taken);
    return 0;
}

/* Reads the chunk after those so far: true, or false at the end. */
static bool take(struct source *s, const struct chunk *next) {
    if (next->size > 0) {
        atomic_fetch_add(&s->job->bytes_in, next->size);
        return true;
    }
    s->drained = true;
    s->error = next->error;
    return false;
}

/* The next chunk that was not read before; NULL: there is none. */
static struct chunk *receive(struct source *s) {
    struct chunk *next;
    if (s->drained) return NULL;
    int rc = s->filled != NULL ? cc_chan_recv(s->filled, &next, sizeof next) : read_chunk(s, &next);
    if (rc == 0) return take(s, next) ? next : NULL;
    s->drained = true;
    s->error = rc != EPIPE ? rc : 0;
    return NULL;
}

bool source_next(struct source *s) { /* SOURCE-1 */
    struct chunk *next = s->unread_count > 0 ? s->unread[--s->unread_count] : receive(s);
    if (next == NULL) {
        s->ended = true;
        return false;
    }
    size_t rest = (size_t)(s->end - s->at);
    uint8_t *begin = next->data + (next->begin - next->data) - rest;
    if (rest > 0) memcpy(begin, s->at, rest);
    if (s->chunk != NULL) s->chunk->release(s->chunk->owner);
    s->chunk = next;
    s->at = begin;
    s->end = next->data + next->size;
    return true;
}

static int make_room(struct source *s, size_t count) {
    size_t needed = s->unread_count + count;
    if (needed <= s->unread_capacity) return 0;
    struct chunk **larger = realloc(s->unread, needed * sizeof *larger);
    if (larger == NULL) return ENOMEM;
    s->unread = larger;
    s->unread_capacity = needed;
    return 0;
}

int source_unread(struct source *s, struct chunk **chunks, size_t count) {
    if (make_room(s, count + 1) != 0) return ENOMEM;
    /* The rest of the current one follows them. */
    if (s->chunk != NULL) {
        s->chunk->begin = s->at;
        s->unread[s->unread_count++] = s->chunk;
        s->chunk = NULL;
        s->at = s->end = NULL;
    }
    while (count > 0) s->unread[s->unread_count++] = chunks[--count];
    s->ended = false;
    return 0;
}

int source_return(struct source *s, const struct iovec *parts, size_t count) {
    struct returned {
        struct chunk chunk;
        uint8_t rest[DECODE_REST], data[];
    } * r;
    size_t size = 0;
    for (size_t i = 0; i < count; i++) size += parts[i].iov_len;
    r = malloc(sizeof *r + size);
    if (r == NULL) return ENOMEM;
    r->chunk = (struct chunk){.release = free, .owner = r, .data = r->data, .begin = r->data};
    for (size_t i = 0; i < count; i++) {
        if (parts[i].iov_len > 0) memcpy(r->data + r->chunk.size, parts[i].iov_base, parts[i].iov_len);
        r->chunk.size += parts[i].iov_len;
    }
    int rc = source_unread(s, &(struct chunk *){&r->chunk}, 1);
    if (rc != 0) free(r);
    return rc;
}

int source_resume(struct source *s) {
    struct chunk *next, *late[AHEAD + 1];
    size_t count = 0;
    if (make_room(s, AHEAD + 1) != 0) return ENOMEM;
    if (s->drained && s->error == ECANCELED) {
        s->drained = false;
        s->error = 0;
    }
    while (s->filled != NULL && cc_chan_recv_try(s->filled, &next, sizeof next) == 0) late[count++] = next;
    if (s->unsent != NULL) late[count++] = s->unsent;
    cc_chan_free(s->filled);
    s->filled = NULL;
    s->unsent = NULL;
    if (count > 0 && late[count - 1]->size == 0) { /* an end, unless the read was cancelled */
        next = late[--count];
        if (next->error != ECANCELED) take(s, next);
        next->release(next->owner);
    }
    memmove(s->unread + count, s->unread, s->unread_count * sizeof(struct chunk *));
    s->unread_count += count;
    for (size_t i = 0; i < count; i++) {
        take(s, late[i]);
        s->unread[count - 1 - i] = late[i];
    }
    return 0;
}

bool source_is_dry(struct source *s) {
    return s->unread_count == 0 && (s->filled != NULL ? cc_chan_len(s->filled) == 0 : s->job->in_may_block);
}

int source_peek(struct source *s, size_t i) {
    while ((size_t)(s->end - s->at) <= i) {
        if (!source_next(s)) return -1;
    }
    return s->at[i];
}

int source_byte(void *source) {
    struct source *s = source;
    while (s->at == s->end) { /* A chunk that was given back may be empty. */
        if (!source_next(s)) return -1;
    }
    return *s->at++;
}

size_t source_fill(struct source *s, uint8_t *to, size_t n) {
    struct chunk *chunk = s->chunk;
    bool ours = chunk != NULL && chunk->release == release_chunk;
    if (!ours || s->job->in_may_block || s->drained || s->unread_count > 0 || s->at != s->end) return 0;
    ssize_t got;
    do {
        got = readv(s->job->in, (struct iovec[]){{to, n}, {chunk->data, DECODE_REST}}, 2);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return 0;
    size_t put = (size_t)got < n ? (size_t)got : n;
    atomic_fetch_add(&s->job->bytes_in, (uint64_t)got);
    chunk->size = (size_t)got - put;
    s->at = chunk->data;
    s->end = chunk->data + chunk->size;
    return put;
}

/* For a file: reads directly to the destination; true: there was something. */
static bool read_past_chunks(struct source *s, uint8_t *to, size_t n, size_t *got) {
    if (s->filled != NULL || s->drained || s->unread_count > 0 || n - *got < SOURCE_CHUNK) return false;
    int error;
    size_t some = job_read_some(s->job, to + *got, n - *got, &error);
    atomic_fetch_add(&s->job->bytes_in, some);
    *got += some;
    return some > 0; /* The next chunk will see the end or the error again. */
}

size_t source_read(struct source *s, uint8_t *to, size_t n) {
    size_t got = 0;
    while (got < n) {
        if (s->at == s->end && read_past_chunks(s, to, n, &got)) continue;
        if (s->at == s->end && !source_next(s)) break;
        size_t some = (size_t)(s->end - s->at);
        if (some > n - got) some = n - got;
        memcpy(to + got, s->at, some);
        s->at += some;
        got += some;
    }
    return got;
}
