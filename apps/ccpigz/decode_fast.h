/* decode_fast.h - the fast loop; included by decode_body.h for each kind of cell and, on x86-64, once more for CPUs
 * with BMI2, whose shifts by a variable number of bits save one part in fifteen.
 */
/* DECODE_FULL: too little input or space to continue in this loop; DECODE_MORE: the block has ended. */
FAST_TARGET static enum decode_status FAST_NAME(struct decoder *d, const CELL *history, CELL **out_at, CELL *end) {
    const uint8_t *in = d->in, *in_stop = d->in_end - SUPPLY;
    CELL *out = *out_at, *out_stop = end - ROOM;
    uint64_t bits = d->bits;
    unsigned count = d->count;
    const uint32_t *litlen = d->litlen, *distances = d->distance;
    enum decode_status status = DECODE_FULL;

/* Afterwards at least 56 bits are valid; those above `count` may hold what the next refill brings again. Of `count`
 * only the lower 6 bits count, so that whole entries may be subtracted. */
#define REFILL()                               \
    do {                                       \
        bits |= load_word(in) << (count & 63); \
        in += 7 - ((count >> 3) & 7);          \
        count |= 56;                           \
    } while (0)
#define DROP(entry)                 \
    do {                            \
        bits >>= (entry)&63;        \
        count -= (uint32_t)(entry); \
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
    /* Bits above `count` are returned to the input. */
    count &= 63;
    d->in = in - count / 8;
    d->count = count % 8;
    d->bits = bits & ((1u << d->count) - 1);
    *out_at = out;
    return status;
}

#undef FAST_NAME
#undef FAST_TARGET
