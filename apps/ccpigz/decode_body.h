/* decode_body.h - the inner loops of the decoder; included by decode.c once for bytes and once for 16-bit cells.
 *
 * FAST runs while there is so much input and so much room that no symbol needs a check; SLOW does what is left at
 * the edges, symbol by symbol.
 */
#define PER_WORD (sizeof(uint64_t) / sizeof(CELL))
/* Two literals and the longest match, with what its last words write too much. */
#define ROOM (2 + 258 + 3 * PER_WORD)
/* Two refills of 8 bytes, each of which moves on by 7 at most. */
#define SUPPLY 16

/* length > 0, and ROOM is there behind `out`: whole words are written. */
static inline void COPY_MATCH(CELL *out, size_t distance, size_t length) {
    const CELL *from = out - distance;
    CELL *end = out + length;
    uint64_t word;
    if (distance >= PER_WORD) {
        do {
            memcpy(&word, from, sizeof word);
            memcpy(out, &word, sizeof word);
            memcpy(&word, from + PER_WORD, sizeof word);
            memcpy(out + PER_WORD, &word, sizeof word);
            from += 2 * PER_WORD;
            out += 2 * PER_WORD;
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

/* DECODE_FULL: too little input or room to go on in this way; DECODE_MORE: the block has ended. */
static enum decode_status FAST(struct decoder *d, const CELL *history, CELL **out_at, CELL *end) {
    const uint8_t *in = d->in, *in_stop = d->in_end - SUPPLY;
    CELL *out = *out_at, *out_stop = end - ROOM;
    uint64_t bits = d->bits;
    unsigned count = d->count;
    const uint32_t *litlen = d->litlen, *distances = d->distance;
    enum decode_status status = DECODE_FULL;

/* Afterwards at least 56 bits are valid; those above `count` may hold what the next refill brings again. */
#define REFILL()                        \
    do {                                \
        bits |= load_word(in) << count; \
        in += (63 - count) >> 3;        \
        count |= 56;                    \
    } while (0)
#define DROP(entry)                 \
    do {                            \
        bits >>= ENTRY_DROP(entry); \
        count -= ENTRY_DROP(entry); \
    } while (0)
#define LOW(value, n) ((value) & ((UINT64_C(1) << (n)) - 1))

    /* At the top the buffer is full and the next entry has been loaded: the load overlaps with the copying. */
    REFILL();
    uint32_t entry = litlen[LOW(bits, LITLEN_BITS)];
    while (in <= in_stop && out <= out_stop) {
        if (entry & ENTRY_LITERAL) {
            DROP(entry);
            *out++ = (CELL)(uint8_t)(entry >> 16);
            entry = litlen[LOW(bits, LITLEN_BITS)];
            if (entry & ENTRY_LITERAL) {
                DROP(entry);
                *out++ = (CELL)(uint8_t)(entry >> 16);
                entry = litlen[LOW(bits, LITLEN_BITS)];
                if (entry & ENTRY_LITERAL) {
                    DROP(entry);
                    *out++ = (CELL)(uint8_t)(entry >> 16);
                    REFILL();
                    entry = litlen[LOW(bits, LITLEN_BITS)];
                    continue;
                }
            }
        }
        if (entry & ENTRY_ODD) {
            if (entry & ENTRY_POINTER) {
                DROP(entry);
                entry = litlen[ENTRY_BASE(entry) + LOW(bits, ENTRY_CODE(entry))];
                if (entry & ENTRY_LITERAL) {
                    DROP(entry);
                    *out++ = (CELL)(uint8_t)(entry >> 16);
                    REFILL();
                    entry = litlen[LOW(bits, LITLEN_BITS)];
                    continue;
                }
            }
            if (entry & ENTRY_ODD) {
                if (entry & ENTRY_END) {
                    DROP(entry);
                    status = DECODE_MORE;
                } else {
                    status = fail(d, "there is a code that stands for nothing");
                }
                break;
            }
        }
        /* A length: at most 2 * 11 + 15 + 5 bits are used up by now, so all of it is in the buffer. */
        uint64_t saved = bits;
        DROP(entry);
        size_t length = ENTRY_BASE(entry) + (LOW(saved, ENTRY_DROP(entry)) >> ENTRY_CODE(entry));
        REFILL();
        entry = distances[LOW(bits, DISTANCE_BITS)];
        if (entry & ENTRY_ODD) {
            if (entry & ENTRY_POINTER) {
                DROP(entry);
                entry = distances[ENTRY_BASE(entry) + LOW(bits, ENTRY_CODE(entry))];
            }
            if (entry & ENTRY_ODD) {
                status = fail(d, "there is a code that stands for nothing");
                break;
            }
        }
        saved = bits;
        DROP(entry);
        size_t distance = ENTRY_BASE(entry) + (LOW(saved, ENTRY_DROP(entry)) >> ENTRY_CODE(entry));
        if (distance > (size_t)(out - history)) {
            status = fail(d, "a match begins in front of the data");
            break;
        }
        REFILL();
        entry = litlen[LOW(bits, LITLEN_BITS)];
        COPY_MATCH(out, distance, length);
        out += length;
    }
#undef REFILL
#undef DROP
#undef LOW
    /* Bits above `count` go back to the input. */
    d->in = in - count / 8;
    d->count = count % 8;
    d->bits = bits & ((1u << d->count) - 1);
    *out_at = out;
    return status;
}

/* DECODE_MORE with `ended` set: the block has ended. */
static enum decode_status SLOW(struct decoder *d, const CELL *history, CELL **out_at, CELL *end, bool *ended) {
    CELL *out = *out_at;
    enum decode_status status = DECODE_FULL;
    for (;;) {
        for (; d->match_left > 0 && out < end; d->match_left--, out++) *out = *(out - d->match_distance);
        /* With enough of both the fast loop does better. */
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
    for (size_t i = 0; i < n; i++) (*out_at)[i] = d->in[i];
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
            if (d->stop && d->in >= d->stop_at) return DECODE_STOP;
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
                status = FAST(d, history, out, end);
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
#undef SLOW
