/* pack.c - the compressing pipeline.
 *
 *   read_blocks (a fiber)       compress_block (a task for each block)         write_blocks (a fiber)
 *   takes a buffer, fills it,   takes an engine, of which there are -p,        receives the blocks in the order of
 *   starts its task, sends the  and lets it compress the block                 reading, writes them, gives the
 *   task down the line -------> ordered channel of tasks --------------------> buffers back
 *
 * PACK-1  The pool of buffers bounds the blocks in progress, and the pool of engines the engines: a reader that is
 *         faster than the compressors, or compressors that are faster than the disk, wait for a buffer.
 * PACK-2  Every block's buffer holds the end of the one before it: tasks share nothing.
 * PACK-3  A task that fails stores its error in the block or in `read_error`; the writer reports it. A writer that
 *         fails cancels the nursery, which ends all waits.
 * PACK-4  A single block needs no pipeline, nor does one worker: then the caller reads, compresses and writes by
 *         itself, and the runtime is not started. It has one engine, so a block continues where the previous one ended.
 */
#include "check.h"
#include "crew.h"
#include "engine.h"
#include "job.h"
#include "output.h"
#include "pool.h"
#include "say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DICTIONARY 32768u
#define ZLIB_BLOCK ((size_t)128 * 1024)       /* pigz's; larger ones save 0.1 % */
#define LIBDEFLATE_BLOCK ((size_t)384 * 1024) /* measured: 1 MiB is 0.3 % smaller and takes twice the memory */

struct pack {
    struct job *job;
    const struct options *options;
    size_t block_size;
    struct pool blocks, engines;
    struct compressor *stream; /* PACK-4, or NULL */
    CCChan *line;              /* ordered: a task for each block */
    CCNursery *nursery;
    struct block *waiting; /* read, and not yet started */
    uint64_t count;        /* of blocks that were read */
    bool more;             /* the input does not end with them */
    int read_error;
    int status;     /* of the pipeline: 0; -1: failed, with a message; or an error that is not reported yet */
    uint8_t *carry; /* -R: what follows the cut, still in the previous block */
    size_t carry_size;
};

static void *make_block(void *context) {
    struct pack *p = context;
    struct block *b = calloc(1, sizeof *b);
    if (b == NULL) return NULL;
    b->options = p->options;
    b->wrapper = &p->job->wrapper;
    b->room = malloc(DICTIONARY + p->block_size);
    if (b->room == NULL) {
        free(b);
        return NULL;
    }
    b->data = b->room + DICTIONARY;
    return b;
}

static void free_block(void *item) {
    struct block *b = item;
    free(b->room);
    free(b->out);
    free(b);
}

static void *make_engine(void *context) {
    return engine_make(context);
}

static void free_engine(void *item) {
    engine_free(item);
}

/* ---- a block's task ---- */

CC_TASK(compress_block, {
    struct pack *pack;
    struct block *block;
}) {
    struct compressor *engine = pool_take(&self->pack->engines);
    if (engine == NULL) {
        self->block->error = "not enough memory";
    } else {
        engine_run(engine, self->block);
        pool_give(&self->pack->engines, engine);
    }
    return self->block;
}

/* ---- what is written ---- */

static int write_error(struct job *job, int error) {
    say_error(output_name(job->out), "cannot write: %s", strerror(error));
    return -1;
}

/* zlib's pieces need a header and a trailer; a member has its own. */
static int write_ends(struct job *job, bool begin) {
    uint8_t ends[WRAPPER_HEADER_MAX];
    if (job->options->engine != ENGINE_ZLIB) return 0;
    size_t n = begin ? wrapper_write_header(ends, &job->wrapper, false)
                     : wrapper_write_trailer(ends, job->options->format, job->check, atomic_load(&job->bytes_in));
    int error = output_write(job->out, ends, n);
    atomic_fetch_add(&job->bytes_out, n);
    return error != 0 ? write_error(job, error) : 0;
}

static int write_block(struct job *job, struct block *b) {
    if (b->error != NULL) {
        say_error(job->name, "%s", b->error);
        return -1;
    }
    int error = output_write(job->out, b->out, b->out_size);
    if (error != 0) return write_error(job, error);
    job->check = b->first ? b->check : check_join(job->options->format, job->check, b->check, b->size);
    atomic_fetch_add(&job->bytes_in, b->size);
    atomic_fetch_add(&job->bytes_out, b->out_size);
    return 0;
}

/* ---- the reader ---- */

/* Where a block ends, by content: after bytes whose hash has all its upper bits set. The same bytes elsewhere in
 * another file give the same cut, so a change affects no more than its own block. The hash covers 32 bytes. */
static size_t find_cut(const uint8_t *data, size_t size, size_t block_size) {
    unsigned shift = 33;
    for (size_t n = block_size; n > 1; n /= 2) shift--;
    uint32_t hash = 0;
    for (size_t i = 0; i < size; i++) {
        hash = (hash << 1) + (data[i] + 1u) * 0x9e3779b1u;
        if (hash >> shift == UINT32_MAX >> shift && i >= 1024) return i + 1;
    }
    return size;
}

/* Fills the block; p->more says whether there is more input after it. */
static void fill_block(struct pack *p, struct block *b) { /* PACK-2 */
    size_t have = p->carry_size;
    if (have > 0) memcpy(b->data, p->carry, have);
    p->carry_size = 0;
    b->size = have + job_read(p->job, b->data + have, p->block_size - have, &p->read_error);
    p->more = b->size == p->block_size && p->read_error == 0;
    if (p->options->rsyncable) {
        size_t cut = find_cut(b->data, b->size, p->block_size);
        p->carry = b->data + cut;
        p->carry_size = b->size - cut;
        b->size = cut;
        p->more = p->more || p->carry_size > 0;
    }
}

/* The next block, which may be empty; NULL: p->read_error says why there is none. */
static struct block *read_block(struct pack *p) { /* PACK-1 */
    struct block *b = pool_take(&p->blocks);
    if (b == NULL) {
        p->read_error = cc_cancelled() ? ECANCELED : ENOMEM;
        return NULL;
    }
    fill_block(p, b);
    b->number = p->count++;
    b->first = b->number == 0;
    b->last = b->goes_on = false;
    b->history = 0;
    return p->read_error == 0 ? b : NULL;
}

/* PACK-4: does everything here. */
static int finish_block(struct pack *p, struct block *b) {
    engine_run(p->stream, b);
    int rc = write_block(p->job, b);
    pool_give(&p->blocks, b);
    return rc;
}

static int start_block(struct pack *p, struct block *b) {
    CCTask task;
    if (p->stream != NULL) return finish_block(p, b);
    int rc = cc_nursery_spawn_ex(p->nursery, &task, compress_block_entry,
                                 &(struct compress_block_args){.pack = p, .block = b},
                                 &(CCSpawnOptions){.arg_size = sizeof(struct compress_block_args)});
    return rc != 0 ? rc : cc_chan_send_task(p->line, &task);
}

/* Reads all blocks but the first, which waits. A block is started when the next one has been read: only then it is
 * known whether it is the last. 0, or the error of start_block; an error of the input is stored in p->read_error. */
static int start_all(struct pack *p) {
    while (p->more) {
        struct block *b = read_block(p), *before = p->waiting;
        if (b == NULL) return 0;
        if (b->size == 0 && !p->more) {
            pool_give(&p->blocks, b);
            break;
        }
        if (!p->options->independent && p->options->engine == ENGINE_ZLIB) {
            b->history = before->size < DICTIONARY ? before->size : DICTIONARY;
            b->goes_on = p->stream != NULL;
            if (!b->goes_on) memcpy(b->data - b->history, before->data + before->size - b->history, b->history);
        }
        p->waiting = b;
        int rc = start_block(p, before);
        if (rc != 0) return rc;
    }
    p->waiting->last = true;
    return start_block(p, p->waiting);
}

static void *read_blocks(void *arg) {
    struct pack *p = arg;
    int rc = start_all(p);
    if (p->read_error == 0) p->read_error = rc;
    cc_chan_close(p->line);
    return NULL;
}

/* ---- the writer ---- */

static int end_output(struct pack *p) {
    if (p->read_error != 0) {
        say_error(p->job->name, "cannot read: %s", strerror(p->read_error));
        return -1;
    }
    return write_ends(p->job, false);
}

/* 0; -1: failed, with a message; or an error that is not reported yet. */
static int write_blocks(struct pack *p) { /* PACK-3 */
    struct job *job = p->job;
    if (write_ends(job, true) != 0) return -1;
    for (;;) {
        void *result;
        int rc = cc_chan_recv_task(p->line, &result);
        if (rc == EPIPE) break;
        if (rc != 0) return rc;
        struct block *b = result;
        if (write_block(job, b) != 0) return -1;
        pool_give(&p->blocks, b);
    }
    return end_output(p);
}

/* ---- both ---- */

/* PACK-4. */
static int pack_alone(struct pack *p) {
    if (p->read_error == 0 && write_ends(p->job, true) != 0) return -1;
    int rc = p->read_error == 0 ? start_all(p) : 0;
    return rc != 0 ? rc : end_output(p);
}

static void *pack_together(void *arg) {
    struct pack *p = arg;
    int rc;
    CC_NURSERY(nursery, .name = "pack", .result = &rc) {
        p->nursery = nursery;
        p->status = cc_nursery_spawn(nursery, read_blocks, p);
        if (p->status == 0) p->status = write_blocks(p);
        if (p->status != 0) cc_nursery_cancel(nursery);
    }
    /* A child's own failure is more specific than the caller's, which follows from it. */
    if (p->status >= 0 && rc != 0) p->status = rc;
    return NULL;
}

/* Reads the first block, and creates what the rest needs. 0, or an errno value. */
static int prepare(struct pack *p) {
    const struct options *o = p->options;
    bool members = o->engine == ENGINE_LIBDEFLATE;
    p->block_size = o->block != 0 ? o->block : members ? LIBDEFLATE_BLOCK : ZLIB_BLOCK;
    /* One is read, one is written, the others are with the engines; small ones may wait for their turn besides. */
    size_t under_way = !members ? 2 * (size_t)o->workers + 2 : o->workers == 1 ? 2 : o->workers + 2;
    int rc = pool_open(&p->blocks, under_way, make_block, free_block, p, "blocks");
    if (rc != 0) return rc;
    p->waiting = read_block(p);
    if (!p->more || o->workers == 1) {
        p->stream = engine_make(o);
        return p->stream == NULL ? ENOMEM : 0;
    }
    p->line = cc_chan_create_ex(&(CCChanConfig){.ordered = true, .capacity = under_way, .name = "line"});
    if (p->line == NULL) return ENOMEM;
    return pool_open(&p->engines, o->workers, make_engine, free_engine, (void *)o, "engines");
}

int pack_run(struct job *job) {
    struct pack p = {.job = job, .options = job->options};
    p.status = prepare(&p);
    if (p.status == 0) {
        if (p.stream != NULL)
            p.status = pack_alone(&p);
        else if (crew_run(job->options, pack_together, &p) != 0)
            p.status = -1;
    }
    if (p.status > 0) say_error(job->name, "%s", strerror(p.status));
    cc_chan_free(p.line);
    if (p.stream != NULL) engine_free(p.stream);
    pool_close(&p.engines);
    pool_close(&p.blocks);
    return p.status == 0 ? 0 : -1;
}
