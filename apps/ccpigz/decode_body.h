/* decode_body.h - the inner loops of the decoder; included by decode.c once for bytes and once for 16-bit cells.
 *
 * FAST, in decode_fast.h, runs while there is enough input and space that no symbol needs a check; SLOW decodes the
 * rest, symbol by symbol. */
#define PER_WORD (sizeof(uint64_t) / sizeof(CELL))
/* Two literals and the longest match, with what its last words write too much. */
#define ROOM (2 + 258 + 4 * PER_WORD)
/* Two refills of 8 bytes, each of which moves on by 7 at most. */
#define SUPPLY 16

/* length > 0, and ROOM is there behind `out`: whole words are written. */
static inline void COPY_MATCH(CELL *out, size_t distance, size_t length) {
    const CELL *from = out - distance;
    CELL *end = out + length;
    uint64_t word;
    if (distance >= 2 * PER_WORD) { /* Most matches are shorter than the first of these, nearly all than both. */
        memcpy(out, from, 2 * sizeof word);
        memcpy(out + 2 * PER_WORD, from + 2 * PER_WORD, 2 * sizeof word);
        while (out + 4 * PER_WORD < end) {
            out += 4 * PER_WORD;
            from += 4 * PER_WORD;
            memcpy(out, from, 2 * sizeof word);
            memcpy(out + 2 * PER_WORD, from + 2 * PER_WORD, 2 * sizeof word);
        }
    } else if (distance >= PER_WORD) {
        do {
            memcpy(&word, from, sizeof word);
            memcpy(out, &word, sizeof word);
            out += PER_WORD;
            from += PER_WORD;
        } while (out < end);
    } else if (distance == 1) {
        word = (UINT64_MAX / ((UINT64_C(1) << (8 * sizeof(CELL) - 1)) * 2 - 1)) * *from;
        do {
            memcpy(out, &word, sizeof word);
            out += PER_WORD;
        } while (out < end);
    } else {
        do { /* Of each word the first `distance` cells are right, and the next one begins behind them. */
            memcpy(&word, from, sizeof word);
            memcpy(out, &word, sizeof word);
            from += distance;
            out += distance;
        } while (out < end);
    }
}

#define FAST_NAME FAST
#define FAST_TARGET
#include "decode_fast.h"
#ifdef DECODE_BMI2
#define FAST_NAME FAST_BMI2
#define FAST_TARGET __attribute__((target("bmi2")))
#include "decode_fast.h"
#endif

/* DECODE_MORE with `ended` set: the block has ended. */
static enum decode_status SLOW(struct decoder *d, const CELL *history, CELL **out_at, CELL *end, bool *ended) {
    CELL *out = *out_at;
    enum decode_status status = DECODE_FULL;
    for (;;) {
        for (; d->match_left > 0 && out < end; d->match_left--, out++) *out = *(out - d->match_distance);
        /* With enough of both the fast loop is faster. */
        if (out == end || ((size_t)(end - out) > ROOM && (size_t)(d->in_end - d->in) + d->count / 8 > 2 * SUPPLY))
            break;
        uint8_t value;
        enum symbol_kind kind = read_symbol(d, &value);
        if (kind == SYMBOL_LITERAL) {
            *out++ = (CELL)value;
        } else if (kind == SYMBOL_MATCH) {
            if (d->match_distance <= (size_t)(out - history)) continue;
            d->match_left = 0;
            status = fail(d, "a match begins in front of the data");
            break;
        } else if (kind == SYMBOL_BAD) {
            status = fail(d, "there is a code that stands for nothing");
            break;
        } else {
            *ended = kind == SYMBOL_END;
            status = DECODE_MORE;
            break;
        }
    }
    give_back(d);
    *out_at = out;
    return status;
}

static enum decode_status COPY_STORED(struct decoder *d, CELL **out_at, CELL *end) {
    size_t n = d->stored_left, room = (size_t)(end - *out_at), supply = (size_t)(d->in_end - d->in);
    if (n > room) n = room;
    if (n > supply) n = supply;
    if (sizeof(CELL) == 1) {
        if (n > 0) memcpy(*out_at, d->in, n);
    } else {
        for (size_t i = 0; i < n; i++) (*out_at)[i] = d->in[i];
    }
    *out_at += n;
    d->in += n;
    d->stored_left -= (uint32_t)n;
    if (d->stored_left == 0) return DECODE_END;
    return n == supply ? DECODE_MORE : DECODE_FULL;
}

enum decode_status DECODE(struct decoder *d, const CELL *history, CELL **out, CELL *end) {
    for (;;) {
        enum decode_status status;
        bool ended = false;
        switch (d->where) {
        case AT_HEADER:
            if (d->stop && d->in - (d->count > 0) >= d->stop_at) return DECODE_STOP;
            status = decode_header(d);
            if (status != DECODE_FULL) return status;
            continue;
        case IN_STORED:
            status = COPY_STORED(d, out, end);
            if (status != DECODE_END) return status;
            ended = true;
            break;
        case IN_CODES:
            if (d->match_left == 0 && (size_t)(end - *out) > ROOM && (size_t)(d->in_end - d->in) > SUPPLY) {
#ifdef DECODE_BMI2
                status = has_bmi2() ? FAST_BMI2(d, history, out, end) : FAST(d, history, out, end);
#else
                status = FAST(d, history, out, end);
#endif
                ended = status == DECODE_MORE;
                if (ended || status == DECODE_BAD) break;
            }
            status = SLOW(d, history, out, end, &ended);
            if (status == DECODE_FULL && *out == end) return DECODE_FULL;
            if (status == DECODE_MORE && !ended) return DECODE_MORE;
            break;
        default:
            return DECODE_END;
        }
        if (d->where == IN_CODES && !ended && d->error != NULL) return DECODE_BAD;
        if (ended) d->where = d->final ? AT_END : AT_HEADER;
        if (d->where == AT_END) return DECODE_END;
    }
}

#undef PER_WORD
#undef ROOM
#undef SUPPLY
#undef CELL
#undef DECODE
#undef COPY_STORED
#undef COPY_MATCH
#undef FAST
#undef FAST_BMI2
#undef SLOW
