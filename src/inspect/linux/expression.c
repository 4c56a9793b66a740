/* expression.c - evaluates DWARF expressions: DW_OP_*.
 *
 * Only the operations that call-frame information uses: constants, registers, loads, sums and the few others of PLT
 * entries. An expression that is damaged, or has any other operation, gives no result.
 */
#include "inspect/linux/step.h"

#include "inspect/linux/dwarf.h"
#include "os/safe_copy.h"

enum { DEPTH_MAX = 16 };

struct machine {
    const struct picture *p;
    const struct registers *regs;
    struct dwarf_reader r;
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

static void push_register(struct machine *m, uint64_t number, int64_t offset) {
    uintptr_t value = 0;
    if (number >= CC_REGISTERS || !cc__registers_get(m->regs, (unsigned)number, &value)) m->bad = true;
    push(m, value + (uintptr_t)offset);
}

static void load(struct machine *m) {
    uintptr_t value = 0, at = pop(m);
    if (!cc__picture_word(m->p, at, &value) && !cc__safe_copy(&value, (const void *)at, sizeof value)) m->bad = true;
    push(m, value);
}

/* A binary operation; b is the top of the stack. */
static void combine(struct machine *m, unsigned op) {
    uintptr_t b = pop(m), a = pop(m);
    switch (op) {
    case 0x1a:
        push(m, a & b);
        break;
    case 0x1c:
        push(m, a - b);
        break;
    case 0x1e:
        push(m, a * b);
        break;
    case 0x22:
        push(m, a + b);
        break;
    case 0x24:
        push(m, b < 64 ? a << b : 0);
        break;
    case 0x2a:
        push(m, (intptr_t)a >= (intptr_t)b);
        break;
    default:
        m->bad = true;
    }
}

static void run_one(struct machine *m, unsigned op) {
    struct dwarf_reader *r = &m->r;
    if (op >= 0x30 && op <= 0x4f) {
        push(m, op - 0x30);
    } else if (op >= 0x08 && op <= 0x0f) { /* constants of 1, 2, 4 and 8 bytes, each unsigned and signed */
        unsigned size = 1u << (op - 0x08) / 2, unused = 64 - 8 * size;
        uint64_t value = cc__dwarf_fixed(r, size);
        push(m, op % 2 ? (uintptr_t)((int64_t)(value << unused) >> unused) : value);
    } else if (op >= 0x70 && op <= 0x8f) {
        push_register(m, op - 0x70, cc__dwarf_sleb(r));
    } else if (op == 0x06) {
        load(m);
    } else if (op == 0x23) {
        push(m, pop(m) + cc__dwarf_uleb(r));
    } else {
        combine(m, op);
    }
}

bool cc__expression_run(const struct picture *p, const struct registers *regs, uintptr_t at, const uintptr_t *first,
                        uintptr_t *result) {
    struct machine m = {.p = p, .regs = regs};
    struct dwarf_reader r = cc__dwarf_reader(at, at + 10);
    uint64_t length = cc__dwarf_uleb(&r);
    if (r.bad || length > 4096) return false;
    m.r = cc__dwarf_reader(r.at, r.at + length);
    if (first != NULL) push(&m, *first);
    while (m.r.at < m.r.end && !m.bad && !m.r.bad) run_one(&m, (unsigned)cc__dwarf_fixed(&m.r, 1));
    *result = pop(&m);
    return !m.bad && !m.r.bad;
}
