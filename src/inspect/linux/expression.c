/* expression.c - runs DWARF expressions: DW_OP_*. Bounded: a damaged one is no answer. */
#include "inspect/linux/step.h"

#include "inspect/linux/dwarf.h"
#include "os/safe_copy.h"

#include <string.h>

enum { DEPTH_MAX = 16, STEPS_MAX = 1000 };

struct machine {
    const struct picture *p;
    const struct registers *regs;
    struct dwarf_reader r;
    uintptr_t begin;
    uintptr_t stack[DEPTH_MAX];
    unsigned depth;
    bool bad;
};

static void push(struct machine *m, uintptr_t value) {
    if (m->depth == DEPTH_MAX)
        m->bad = true;
    else
        m->stack[m->depth++] = value;
}

static uintptr_t pop(struct machine *m) {
    if (m->depth == 0) {
        m->bad = true;
        return 0;
    }
    return m->stack[--m->depth];
}

static void pick(struct machine *m, unsigned from_top) {
    if (from_top >= m->depth)
        m->bad = true;
    else
        push(m, m->stack[m->depth - 1 - from_top]);
}

static void push_register(struct machine *m, uint64_t number, int64_t offset) {
    uintptr_t value = 0;
    if (number >= CC_REGISTERS || !cc__registers_get(m->regs, (unsigned)number, &value)) m->bad = true;
    push(m, value + (uintptr_t)offset);
}

static void load(struct machine *m, unsigned size) {
    unsigned char bytes[sizeof(uintptr_t)] = {0};
    uintptr_t value, at = pop(m);
    if (size == sizeof value && cc__picture_word(m->p, at, &value)) {
        push(m, value);
        return;
    }
    if (size == 0 || size > sizeof value || !cc__safe_copy(bytes, (const void *)at, size)) m->bad = true;
    memcpy(&value, bytes, sizeof value); /* little endian, as are all of our CPUs */
    push(m, value);
}

static void jump(struct machine *m, int16_t by) {
    uintptr_t to = m->r.at + (uintptr_t)(intptr_t)by;
    if (to < m->begin || to > m->r.end)
        m->bad = true;
    else
        m->r.at = to;
}

/* A constant; true: it was one. */
static bool run_constant(struct machine *m, unsigned op) {
    struct dwarf_reader *r = &m->r;
    if (op >= 0x30 && op <= 0x4f) {
        push(m, op - 0x30);
    } else if (op >= 0x08 && op <= 0x0f) { /* of 1, 2, 4 and 8 bytes, each without a sign and with one */
        unsigned size = 1u << (op - 0x08) / 2, unused = 64 - 8 * size;
        uint64_t value = cc__dwarf_fixed(r, size);
        push(m, op % 2 ? (uintptr_t)((int64_t)(value << unused) >> unused) : value);
    } else if (op == 0x03) {
        push(m, cc__dwarf_fixed(r, sizeof(void *)));
    } else if (op == 0x10) {
        push(m, cc__dwarf_uleb(r));
    } else if (op == 0x11) {
        push(m, (uintptr_t)cc__dwarf_sleb(r));
    } else {
        return false;
    }
    return true;
}

/* What takes two values, the upper one b; false: it is none of these. */
static bool combine(unsigned op, uintptr_t a, uintptr_t b, uintptr_t *result) {
    intptr_t sa = (intptr_t)a, sb = (intptr_t)b;
    switch (op) {
    case 0x1a:
        return *result = a & b, true;
    case 0x1b:
        return sb != 0 && sb != -1 && (*result = (uintptr_t)(sa / sb), true);
    case 0x1c:
        return *result = a - b, true;
    case 0x1d:
        return b != 0 && (*result = a % b, true);
    case 0x1e:
        return *result = a * b, true;
    case 0x21:
        return *result = a | b, true;
    case 0x22:
        return *result = a + b, true;
    case 0x24:
        return *result = b < 64 ? a << b : 0, true;
    case 0x25:
        return *result = b < 64 ? a >> b : 0, true;
    case 0x26:
        return *result = (uintptr_t)(sa >> (b < 64 ? b : 63)), true;
    case 0x27:
        return *result = a ^ b, true;
    case 0x29:
        return *result = sa == sb, true;
    case 0x2a:
        return *result = sa >= sb, true;
    case 0x2b:
        return *result = sa > sb, true;
    case 0x2c:
        return *result = sa <= sb, true;
    case 0x2d:
        return *result = sa < sb, true;
    case 0x2e:
        return *result = sa != sb, true;
    default:
        return false;
    }
}

/* What moves values about, or takes one; true: it was one. */
static bool run_single(struct machine *m, unsigned op) {
    uintptr_t a, b, c;
    if (op == 0x12 || op == 0x14) {
        pick(m, op == 0x14);
    } else if (op == 0x15) {
        pick(m, (unsigned)cc__dwarf_fixed(&m->r, 1));
    } else if (op == 0x13) {
        (void)pop(m);
    } else if (op == 0x16) {
        b = pop(m), a = pop(m), push(m, b), push(m, a);
    } else if (op == 0x17) {
        c = pop(m), b = pop(m), a = pop(m), push(m, c), push(m, a), push(m, b);
    } else if (op == 0x06 || op == 0x94) {
        load(m, op == 0x06 ? (unsigned)sizeof(void *) : (unsigned)cc__dwarf_fixed(&m->r, 1));
    } else if (op == 0x19 || op == 0x1f || op == 0x20) { /* the amount, its negative, its complement */
        a = pop(m), push(m, op == 0x20 ? ~a : op == 0x1f || (intptr_t)a < 0 ? -a : a);
    } else if (op == 0x23) {
        a = pop(m), push(m, a + cc__dwarf_uleb(&m->r));
    } else {
        return false;
    }
    return true;
}

static void run_one(struct machine *m, unsigned op) {
    struct dwarf_reader *r = &m->r;
    uintptr_t result;
    if (run_constant(m, op) || run_single(m, op)) return;
    if (m->depth >= 2 && combine(op, m->stack[m->depth - 2], m->stack[m->depth - 1], &result)) {
        m->stack[--m->depth - 1] = result;
    } else if (op >= 0x70 && op <= 0x8f) {
        push_register(m, op - 0x70, cc__dwarf_sleb(r));
    } else if (op == 0x92) {
        uint64_t number = cc__dwarf_uleb(r);
        push_register(m, number, cc__dwarf_sleb(r));
    } else if (op == 0x28 || op == 0x2f) { /* if what is on top is not 0; always */
        int16_t by = (int16_t)cc__dwarf_fixed(r, 2);
        if (op == 0x2f || pop(m) != 0) jump(m, by);
    } else if (op != 0x96) { /* nothing */
        m->bad = true;
    }
}

bool cc__expression_run(const struct picture *p, const struct registers *regs, uintptr_t at, const uintptr_t *first,
                        uintptr_t *result) {
    struct machine m = {.p = p, .regs = regs};
    struct dwarf_reader r = cc__dwarf_reader(at, at + 10);
    uint64_t length = cc__dwarf_uleb(&r);
    if (r.bad || length > 4096) return false;
    m.begin = r.at;
    m.r = cc__dwarf_reader(r.at, r.at + length);
    if (first != NULL) push(&m, *first);
    for (unsigned steps = 0; m.r.at < m.r.end; steps++) {
        if (m.bad || m.r.bad || steps == STEPS_MAX) return false;
        run_one(&m, (unsigned)cc__dwarf_fixed(&m.r, 1));
    }
    *result = pop(&m);
    return !m.bad && !m.r.bad;
}
