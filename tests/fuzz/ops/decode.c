/* decode.c - decodes an input to programs; and a mutator that keeps operations aligned.
 *
 * Four bytes for the channels, four of which one is used, then records of four: program, operation, two operands.
 */
#include "ops.h"

#include <stdio.h>
#include <string.h>

enum { HEAD = 8, RECORD = 4, RECORDS_MAX = PROGRAMS * PROGRAM_MAX };

static const char *const names[] = {
    "send",        "send_try",   "send_until",  "recv",        "recv_try",      "recv_until",   "select",
    "close",       "free",       "ask",         "yield",       "sleep",         "nursery",      "deadline",
    "shield",      "try",        "lock",        "loop",        "spawn",         "task",         "join",
    "join_try",    "join_until", "detach",      "cancel_task", "cancel",        "set_deadline", "wait_until",
    "panic",       "fail",       "acquire",     "acquire_try", "acquire_until", "release",      "event_set",
    "event_reset", "event_wait", "event_until", "cond_wait",   "cond_until",    "cond_signal",  "cond_all"};

_Static_assert(sizeof names / sizeof *names == OP_CODES, "each has a name");

const char *op_name(unsigned code) {
    return names[code % OP_CODES];
}

bool plan_decode(struct plan *plan, const uint8_t *data, size_t size) {
    static const size_t capacities[] = {0, 1, 2, 3, 5, 0, 1, 2}, sizes[] = {8, 8, 8, 4, 16, 64, 0, 8};
    if (size < HEAD + RECORD) return false;
    memset(plan, 0, sizeof *plan);
    for (unsigned i = 0; i < CHANNELS; i++) {
        plan->channels[i].capacity = capacities[data[i] & 7];
        plan->channels[i].size = sizes[data[i] >> 3 & 7];
        unsigned mode = data[i] >> 6;
        if (plan->channels[i].capacity > 0 && mode > 1)
            plan->channels[i].mode = mode == 2 ? CC_CHAN_MODE_DROP_NEW : CC_CHAN_MODE_DROP_OLD;
    }
    plan->starters = 1 + data[4] % PROGRAMS;
    for (size_t at = HEAD; at + RECORD <= size; at += RECORD) {
        struct program *p = &plan->programs[data[at] % PROGRAMS];
        if (p->count == PROGRAM_MAX) continue;
        p->ops[p->count++] = (struct op){data[at + 1] % OP_CODES, data[at + 2], data[at + 3]};
    }
    return true;
}

void plan_print(const struct plan *plan) {
    for (unsigned i = 0; i < CHANNELS; i++)
        fprintf(stderr, "channel %u: size %zu, capacity %zu, mode %d\n", i, plan->channels[i].size,
                plan->channels[i].capacity, (int)plan->channels[i].mode);
    fprintf(stderr, "%u programs are started\n", plan->starters);
    for (unsigned i = 0; i < PROGRAMS; i++) {
        if (plan->programs[i].count == 0) continue;
        fprintf(stderr, "program %u:", i);
        for (unsigned k = 0; k < plan->programs[i].count; k++)
            fprintf(stderr, " %s(%u,%u)", op_name(plan->programs[i].ops[k].code), plan->programs[i].ops[k].a,
                    plan->programs[i].ops[k].b);
        fprintf(stderr, "\n");
    }
}

/* ---- the mutator ---- */

static uint32_t next(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void invent(uint8_t *record, uint32_t *rng) {
    record[0] = (uint8_t)(next(rng) % PROGRAMS);
    record[1] = (uint8_t)(next(rng) % OP_CODES);
    record[2] = (uint8_t)next(rng);
    record[3] = (uint8_t)next(rng);
}

enum { IDIOM_MAX = 4 };

/* Operations that make sense together, and that random mutation takes long to find. */
static const uint8_t idioms[][IDIOM_MAX] = {
    {OP_LOCK, OP_COND_WAIT, OP_YIELD, OP_YIELD},         {OP_LOCK, OP_COND_UNTIL, OP_SLEEP, OP_YIELD},
    {OP_CANCEL, OP_COND_SIGNAL, OP_RELEASE, OP_SEND},    {OP_CANCEL_TASK, OP_SEND_TRY, OP_COND_SIGNAL, OP_RELEASE},
    {OP_SLEEP, OP_SEND_TRY, OP_COND_SIGNAL, OP_RELEASE}, {OP_NURSERY, OP_SPAWN, OP_SPAWN, OP_RECV},
    {OP_TASK, OP_YIELD, OP_CANCEL_TASK, OP_JOIN},        {OP_LOOP, OP_SEND, OP_RECV_TRY, OP_YIELD},
    {OP_LOOP, OP_RECV, OP_SEND_TRY, OP_YIELD},           {OP_SELECT, OP_SEND, OP_RECV, OP_SEND},
    {OP_SHIELD, OP_DEADLINE, OP_RECV, OP_ACQUIRE},       {OP_TRY, OP_NURSERY, OP_SPAWN, OP_PANIC},
};

/* All four with the same first operand: the same channel, the same mutex. */
static void invent_idiom(uint8_t *records, uint32_t *rng) {
    uint8_t program = (uint8_t)(next(rng) % PROGRAMS), a = (uint8_t)next(rng);
    const uint8_t *idiom = idioms[next(rng) % (sizeof idioms / sizeof *idioms)];
    for (unsigned i = 0; i < IDIOM_MAX; i++) {
        records[RECORD * i] = program;
        records[RECORD * i + 1] = idiom[i];
        records[RECORD * i + 2] = a;
        records[RECORD * i + 3] = (uint8_t)next(rng);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
    uint32_t rng = seed * 2654435761u + 1;
    if (max < HEAD + 8 * RECORD) return size;
    if (size < HEAD + RECORD) {
        size = HEAD + 4 * RECORD;
        for (size_t i = 0; i < HEAD; i++) data[i] = (uint8_t)next(&rng);
        for (size_t i = HEAD; i < size; i += RECORD) invent(data + i, &rng);
    }
    size_t records = (size - HEAD) / RECORD, limit = (max - HEAD) / RECORD;
    if (limit > RECORDS_MAX) limit = RECORDS_MAX;
    if (records > limit) records = limit;
    for (unsigned rounds = 1 + next(&rng) % 4; rounds > 0; rounds--) {
        uint8_t *first = data + HEAD, *r = first + RECORD * (next(&rng) % records);
        uint8_t *other = first + RECORD * (next(&rng) % records);
        switch (next(&rng) % 13) {
        case 0:
        case 1:
        case 2: /* a new one, or a copy */
            if (records == limit) break;
            memmove(r + RECORD, r, (size_t)(first + RECORD * records - r));
            records++;
            if (next(&rng) % 3 > 0) invent(r, &rng);
            break;
        case 3:
            if (records < 2) break;
            memmove(r, r + RECORD, (size_t)(first + RECORD * (records - 1) - r));
            records--;
            break;
        case 4:
            r[1] = (uint8_t)(next(&rng) % OP_CODES);
            break;
        case 5:
            r[2 + next(&rng) % 2] = (uint8_t)next(&rng);
            break;
        case 6:
            r[2 + next(&rng) % 2] ^= (uint8_t)(1u << next(&rng) % 8);
            break;
        case 7: {
            uint8_t kept[RECORD];
            memcpy(kept, r, RECORD);
            memmove(r, other, RECORD);
            memcpy(other, kept, RECORD);
            break;
        }
        case 8:
            r[0] = (uint8_t)(next(&rng) % PROGRAMS);
            break;
        case 9: /* many: a long program is more than the sum of short ones */
            for (unsigned n = next(&rng) % 30; n > 0 && records < limit; n--) invent(first + RECORD * records++, &rng);
            break;
        case 10:
        case 11:
            if (records + IDIOM_MAX > limit) break;
            memmove(r + RECORD * IDIOM_MAX, r, (size_t)(first + RECORD * records - r));
            records += IDIOM_MAX;
            invent_idiom(r, &rng);
            break;
        default:
            data[next(&rng) % 5] = (uint8_t)next(&rng);
            break;
        }
    }
    return HEAD + RECORD * records;
}
