/* cfi.c - finds the FDE of a function in .eh_frame and runs its program up to an instruction.
 *
 * Each function has an FDE; FDEs share a CIE. Everything is bounded, and a damaged record gives no result.
 */
#include "inspect/linux/cfi.h"

#include "inspect/linux/dwarf.h"
#include "os/safe_copy.h"

#include <string.h>

enum {
    RECORD_MAX = 1 << 24, /* bytes of a record; longer ones count as damaged */
    STATES_MAX = 4,       /* depth of DW_CFA_remember_state; compilers use one */
    STEPS_MAX = 100000,   /* of a program */
};

/* A CIE and an FDE, combined. */
struct record {
    uintptr_t table;
    uintptr_t from, to;           /* the code */
    uintptr_t common, common_end; /* the CIE's program */
    uintptr_t own, own_end;       /* the FDE's */
    uint64_t code_factor;
    int64_t data_factor;
    unsigned return_column, encoding;
    bool sized, signal_frame;
};

/* ---- the search table ---- */

/* The address of the FDE for pc, from the table's pairs (code, FDE), both relative to the table; 0: there is none. */
static uintptr_t search_table(uintptr_t table, uintptr_t pc) {
    enum { SORTED_PAIRS = 0x3b };
    int32_t pair[2], best = 0;
    struct dwarf_reader r = cc__dwarf_reader(table, table + 32);
    unsigned version = (unsigned)cc__dwarf_fixed(&r, 1), frame_encoding = (unsigned)cc__dwarf_fixed(&r, 1);
    unsigned count_encoding = (unsigned)cc__dwarf_fixed(&r, 1), pair_encoding = (unsigned)cc__dwarf_fixed(&r, 1);
    (void)cc__dwarf_pointer(&r, frame_encoding, table);
    uint64_t count = cc__dwarf_pointer(&r, count_encoding, table);
    if (r.bad || version != 1 || pair_encoding != SORTED_PAIRS || count > RECORD_MAX) return 0;
    uint64_t low = 0, high = count; /* the last pair that begins at or before pc is in [low, high) */
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (!cc__safe_copy(pair, (const void *)(r.at + middle * sizeof pair), sizeof pair)) return 0;
        if (table + (uintptr_t)(intptr_t)pair[0] <= pc) {
            best = pair[1];
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return best != 0 ? table + (uintptr_t)(intptr_t)best : 0;
}

/* ---- records ---- */

/* A reader for the record at `at`, positioned after its length. */
static struct dwarf_reader open_record(uintptr_t at) {
    struct dwarf_reader r = cc__dwarf_reader(at, at + 4);
    uint64_t length = cc__dwarf_fixed(&r, 4);
    if (length == 0xffffffffu) {
        r = cc__dwarf_reader(at + 4, at + 12);
        length = cc__dwarf_fixed(&r, 8);
    }
    bool bad = r.bad || length < 4 || length > RECORD_MAX;
    r = cc__dwarf_reader(r.at, r.at + (bad ? 0 : length));
    r.bad = bad;
    return r;
}

/* The fields that the augmentation string announces. */
static void read_augmentation(struct dwarf_reader *r, const char *letters, struct record *rec) {
    if (letters[0] == '\0') return;
    if (letters[0] != 'z') { /* without a size unknown fields cannot be skipped */
        r->bad = true;
        return;
    }
    rec->sized = true;
    uint64_t size = cc__dwarf_uleb(r);
    uintptr_t end = r->at + size;
    if (size > r->end - r->at) r->bad = true;
    for (letters++; *letters != '\0' && !r->bad; letters++) {
        if (*letters == 'R') rec->encoding = (unsigned)cc__dwarf_fixed(r, 1);
        if (*letters == 'L') (void)cc__dwarf_fixed(r, 1);
        if (*letters == 'S') rec->signal_frame = true;
        if (*letters == 'P') (void)cc__dwarf_pointer(r, (unsigned)cc__dwarf_fixed(r, 1) & 0x7f, rec->table);
    } /* others, such as 'B', are not needed for unwinding */
    if (!r->bad) r->at = end;
}

static bool read_cie(uintptr_t at, struct record *rec) {
    char letters[8];
    unsigned n = 0;
    struct dwarf_reader r = open_record(at);
    if (cc__dwarf_fixed(&r, 4) != 0) return false; /* not a CIE */
    unsigned version = (unsigned)cc__dwarf_fixed(&r, 1);
    if (version != 1 && version != 3 && version != 4) return false;
    do letters[n] = (char)cc__dwarf_fixed(&r, 1);
    while (letters[n] != '\0' && ++n < sizeof letters);
    if (n == sizeof letters) return false;
    if (version == 4) cc__dwarf_skip(&r, 2); /* sizes of addresses and segments */
    rec->code_factor = cc__dwarf_uleb(&r);
    rec->data_factor = cc__dwarf_sleb(&r);
    rec->return_column = (unsigned)(version == 1 ? cc__dwarf_fixed(&r, 1) : cc__dwarf_uleb(&r));
    read_augmentation(&r, letters, rec);
    rec->common = r.at;
    rec->common_end = r.end;
    return !r.bad && rec->return_column < CC_REGISTERS;
}

static bool read_fde(uintptr_t at, struct record *rec) {
    struct dwarf_reader r = open_record(at);
    uintptr_t place = r.at;
    uint64_t back = cc__dwarf_fixed(&r, 4);
    if (r.bad || back == 0 || !read_cie(place - back, rec)) return false;
    rec->from = cc__dwarf_pointer(&r, rec->encoding, rec->table);
    rec->to = rec->from + cc__dwarf_pointer(&r, rec->encoding & 0x0f, rec->table);
    if (rec->sized) cc__dwarf_skip(&r, cc__dwarf_uleb(&r));
    rec->own = r.at;
    rec->own_end = r.end;
    return !r.bad;
}

/* ---- programs ---- */

struct machine {
    const struct record *rec;
    struct dwarf_reader r;
    uintptr_t at, pc; /* the instruction that the row is for so far; the wanted one */
    struct cfi_row *row;
    struct cfi_row initial; /* after the CIE's program */
    struct cfi_row kept[STATES_MAX];
    unsigned depth;
};

static void set_rule(struct machine *m, uint64_t number, enum cfi_rule rule, int64_t value) {
    if (number >= CC_REGISTERS) return; /* not tracked */
    m->row->rule[number] = (uint8_t)rule;
    m->row->value[number] = value;
}

static void restore_rule(struct machine *m, uint64_t number) {
    if (number < CC_REGISTERS) set_rule(m, number, m->initial.rule[number], m->initial.value[number]);
}

static int64_t factored(struct machine *m, uint64_t value) {
    return (int64_t)(value * (uint64_t)m->rec->data_factor);
}

/* An expression (a length, and so many bytes) is kept as its address. */
static int64_t take_expression(struct machine *m) {
    uintptr_t at = m->r.at;
    cc__dwarf_skip(&m->r, cc__dwarf_uleb(&m->r));
    return (int64_t)at;
}

static void set_cfa(struct machine *m, uint64_t number, int64_t offset) {
    if (number >= CC_REGISTERS) m->r.bad = true;
    m->row->cfa = CFI_REGISTER;
    m->row->cfa_register = (uint8_t)number;
    m->row->cfa_value = offset;
}

static void advance(struct machine *m, uint64_t by) {
    m->at += by * m->rec->code_factor;
}

/* The DW_CFA_* operations for the CFA; false: op is not one of them. */
static bool run_cfa(struct machine *m, unsigned op) {
    struct dwarf_reader *r = &m->r;
    if (op == 0x0c || op == 0x0d || op == 0x12) { /* register and offset, or the register alone */
        uint64_t number = cc__dwarf_uleb(r);
        set_cfa(m, number,
                op == 0x0d   ? m->row->cfa_value
                : op == 0x12 ? factored(m, (uint64_t)cc__dwarf_sleb(r))
                             : (int64_t)cc__dwarf_uleb(r));
    } else if (op == 0x0e) {
        m->row->cfa_value = (int64_t)cc__dwarf_uleb(r);
    } else if (op == 0x13) {
        m->row->cfa_value = factored(m, (uint64_t)cc__dwarf_sleb(r));
    } else if (op == 0x0f) {
        m->row->cfa = CFI_EXPRESSION;
        m->row->cfa_value = take_expression(m);
    } else {
        return false;
    }
    return true;
}

/* Those for a register; false: op is not one of them. */
static bool run_register(struct machine *m, unsigned op) {
    static const uint8_t rules[] = {
        [0x05] = CFI_OFFSET,     [0x07] = CFI_UNDEFINED,  [0x08] = CFI_SAME,
        [0x09] = CFI_REGISTER,   [0x10] = CFI_EXPRESSION, [0x11] = CFI_OFFSET,
        [0x14] = CFI_VAL_OFFSET, [0x15] = CFI_VAL_OFFSET, [0x16] = CFI_VAL_EXPRESSION,
    };
    if (op >= sizeof rules || (rules[op] == 0 && op != 0x06 && op != 0x08)) return false;
    uint64_t number = cc__dwarf_uleb(&m->r);
    int64_t value = 0;
    if (op == 0x06) {
        restore_rule(m, number);
        return true;
    }
    if (op == 0x09) value = (int64_t)cc__dwarf_uleb(&m->r);
    if (op == 0x05 || op == 0x14) value = factored(m, cc__dwarf_uleb(&m->r));
    if (op == 0x11 || op == 0x15) value = factored(m, (uint64_t)cc__dwarf_sleb(&m->r));
    if (op == 0x10 || op == 0x16) value = take_expression(m);
    set_rule(m, number, (enum cfi_rule)rules[op], value);
    return true;
}

static void run_other(struct machine *m, unsigned op) {
    struct dwarf_reader *r = &m->r;
    if (op == 0x01)
        m->at = cc__dwarf_pointer(r, m->rec->encoding, m->rec->table);
    else if (op >= 0x02 && op <= 0x04)
        advance(m, cc__dwarf_fixed(r, 1u << (op - 0x02)));
    else if (op == 0x0a && m->depth < STATES_MAX)
        m->kept[m->depth++] = *m->row;
    else if (op == 0x0b && m->depth > 0)
        *m->row = m->kept[--m->depth];
    else if (op == 0x2e) /* DW_CFA_GNU_args_size: only for exceptions */
        (void)cc__dwarf_uleb(r);
    else if (op != 0x00 && op != 0x2c && op != 0x2d) /* 0x2c, 0x2d: aarch64 toggles signed return addresses */
        r->bad = true;
}

/* Stops before the first operation of a row after pc. */
static bool run(struct machine *m, uintptr_t from, uintptr_t to) {
    m->r = cc__dwarf_reader(from, to);
    for (unsigned steps = 0; m->r.at < to && m->at <= m->pc && !m->r.bad; steps++) {
        unsigned op = (unsigned)cc__dwarf_fixed(&m->r, 1), low = op & 0x3f;
        if (steps == STEPS_MAX) return false;
        switch (op & 0xc0) {
        case 0x40:
            advance(m, low);
            break;
        case 0x80:
            set_rule(m, low, CFI_OFFSET, factored(m, cc__dwarf_uleb(&m->r)));
            break;
        case 0xc0:
            restore_rule(m, low);
            break;
        default:
            if (!run_cfa(m, op) && !run_register(m, op)) run_other(m, op);
        }
    }
    return !m->r.bad;
}

bool cc__cfi_find(uintptr_t table, uintptr_t pc, struct cfi_row *row) {
    uintptr_t fde = search_table(table, pc);
    return fde != 0 && cc__cfi_read(table, fde, pc, row);
}

CC_NOINLINE bool cc__cfi_read(uintptr_t table, uintptr_t fde, uintptr_t pc, struct cfi_row *row) {
    struct record rec = {.table = table};
    struct machine m = {.rec = &rec, .pc = pc, .row = row};
    if (!read_fde(fde, &rec) || pc < rec.from || pc >= rec.to) return false;
    memset(row, 0, sizeof *row);
    row->function = rec.from;
    row->end = rec.to;
    row->return_column = (uint8_t)rec.return_column;
    row->signal_frame = rec.signal_frame;
    m.at = rec.from;
    if (!run(&m, rec.common, rec.common_end)) return false;
    m.initial = *row;
    return run(&m, rec.own, rec.own_end) && row->cfa != CFI_SAME;
}
