/* source.c - a fiber that reads ahead, and the one who takes from it. */
#include "source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 3 /* chunks: one in use, one filled, one being filled */

static void *make_chunk(void *context) {
    (void)context;
    return malloc(sizeof(struct chunk));
}

static void *read_chunks(void *arg) {
    struct source *s = arg;
    for (;;) {
        struct chunk *chunk = pool_take(&s->chunks);
        if (chunk == NULL) {
            cc_chan_close_err(s->filled, cc_cancelled() ? ECANCELED : ENOMEM);
            return NULL;
        }
        chunk->size = job_read_some(s->job, chunk->data, SOURCE_CHUNK, &chunk->error);
        bool last = chunk->size == 0;
        if (cc_chan_send(s->filled, &chunk, sizeof chunk) != 0 || last) break;
    }
    cc_chan_close(s->filled);
    return NULL;
}

int source_open(struct source *s, struct job *job, CCNursery *nursery) {
    *s = (struct source){.job = job};
    int rc = pool_open(&s->chunks, AHEAD, make_chunk, free, NULL, "chunks");
    if (rc != 0) return rc;
    s->filled = cc_chan_create(sizeof(struct chunk *), AHEAD);
    return s->filled == NULL ? ENOMEM : cc_nursery_spawn(nursery, read_chunks, s);
}

void source_close(struct source *s) {
    cc_chan_free(s->filled);
    pool_close(&s->chunks);
}

bool source_next(struct source *s) {
    if (s->ended) return false;
    struct chunk *next;
    int rc = cc_chan_recv(s->filled, &next, sizeof next);
    if (rc != 0 || next->size == 0) {
        s->ended = true;
        s->error = rc != 0 && rc != EPIPE ? rc : rc == 0 ? next->error : 0;
        return false;
    }
    size_t rest = (size_t)(s->end - s->at);
    if (rest > 0) memcpy(next->data - rest, s->at, rest);
    if (s->chunk != NULL) pool_give(&s->chunks, s->chunk);
    s->chunk = next;
    s->at = next->data - rest;
    s->end = next->data + next->size;
    atomic_fetch_add(&s->job->bytes_in, next->size);
    return true;
}

bool source_is_dry(struct source *s) {
    return cc_chan_len(s->filled) == 0;
}

int source_peek(struct source *s, size_t i) {
    while ((size_t)(s->end - s->at) <= i) {
        if (!source_next(s)) return -1;
    }
    return s->at[i];
}

int source_byte(void *source) {
    struct source *s = source;
    if (s->at == s->end && !source_next(s)) return -1;
    return *s->at++;
}

bool source_copy(struct source *s, uint8_t *to, size_t n) {
    while (n > 0) {
        size_t some = (size_t)(s->end - s->at);
        if (some == 0) {
            if (!source_next(s)) return false;
            continue;
        }
        if (some > n) some = n;
        memcpy(to, s->at, some);
        s->at += some;
        to += some;
        n -= some;
    }
    return true;
}
