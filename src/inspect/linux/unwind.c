/* unwind.c - unwinds a stack, frame by frame. */
#include "inspect/unwind.h"

#include "base/san.h"
#include "inspect/linux/step.h"
#include "os/safe_copy.h"

/* ---- memory ---- */

#if defined(CC_ASAN) || defined(CC_TSAN)
CC_NOINLINE __attribute__((no_sanitize("address", "undefined"))) CC_NO_TSAN uintptr_t cc__stack_load(uintptr_t at) {
    return *(const volatile uintptr_t *)at;
}
#endif

bool cc__picture_word(const struct picture *p, uintptr_t at, uintptr_t *word) {
    if (at < p->low || at > p->top - sizeof *word || at % sizeof *word != 0) return false;
    size_t i = (at - p->copied_at) / sizeof *word;
    if (at >= p->copied_at && i < p->count) {
        *word = p->words[i];
        return true;
    }
    if (!p->mapped) return cc__safe_copy(word, (const void *)at, sizeof *word);
    *word = cc__stack_load(at);
    cc__san_define(word, sizeof *word);
    return true;
}

/* ---- one step ---- */

static bool find_cfa(const struct picture *p, const struct cfi_row *row, const struct registers *regs, uintptr_t *cfa) {
    if (row->cfa == CFI_EXPRESSION) return cc__expression_run(p, regs, (uintptr_t)row->cfa_value, NULL, cfa);
    if (!cc__registers_get(regs, row->cfa_register, cfa)) return false;
    *cfa += (uintptr_t)row->cfa_value;
    return true;
}

/* The register's value in the caller; false: unknown. */
static bool find_register(const struct picture *p, const struct cfi_row *row, unsigned number, uintptr_t cfa,
                          const struct registers *regs, uintptr_t *value) {
    uintptr_t rule = (uintptr_t)row->value[number], at;
    switch ((enum cfi_rule)row->rule[number]) {
    case CFI_SAME:
        return cc__registers_get(regs, number, value);
    case CFI_OFFSET:
        return cc__picture_word(p, cfa + rule, value);
    case CFI_VAL_OFFSET:
        *value = cfa + rule;
        return true;
    case CFI_REGISTER:
        return rule < CC_REGISTERS && cc__registers_get(regs, (unsigned)rule, value);
    case CFI_EXPRESSION:
        if (!cc__expression_run(p, regs, rule, &cfa, &at)) return false;
        return cc__picture_word(p, at, value) || cc__safe_copy(value, (const void *)at, sizeof *value);
    case CFI_VAL_EXPRESSION:
        return cc__expression_run(p, regs, rule, &cfa, value);
    default:
        return false;
    }
}

/* The stack pointer must increase; only an interrupted function may have no frame of its own. */
static bool goes_up(const struct picture *p, const struct registers *from, uintptr_t sp, bool exact) {
    uintptr_t before = from->value[CC_REGISTER_SP];
    return sp >= p->low && sp <= p->top && (sp > before || (exact && sp == before));
}

enum step cc__unwind_apply(const struct picture *p, const struct cfi_row *row, uintptr_t cfa, struct registers *regs,
                           bool *exact) {
    struct registers up = {0};
    uintptr_t value, back;
    unsigned column = row->return_column;
    if (row->rule[column] == CFI_UNDEFINED) return STEP_END;
    for (unsigned i = 0; i < CC_REGISTERS; i++)
        if (find_register(p, row, i, cfa, regs, &value)) cc__registers_set(&up, i, value);
    if (row->rule[CC_REGISTER_SP] == CFI_SAME) cc__registers_set(&up, CC_REGISTER_SP, cfa);
    if (!cc__registers_get(&up, column, &back) || !(up.known >> CC_REGISTER_SP & 1)) return STEP_LOST;
    if (!goes_up(p, regs, up.value[CC_REGISTER_SP], *exact || row->signal_frame)) return STEP_LOST;
    up.pc = cc__registers_strip(back);
    if (up.pc == 0) return STEP_END;
    if (CC_RETURN_ON_STACK)
        cc__registers_set(&up, column, up.pc);
    else if (!row->signal_frame)
        up.known &= ~(UINT64_C(1) << column); /* the call has overwritten it */
    *exact = row->signal_frame;
    *regs = up;
    return STEP_UP;
}

/* A signal handler's caller is the kernel, which has put all registers on the stack. */
static bool leave_signal(const struct picture *p, struct registers *regs, bool *exact) {
#ifdef CC_SIGRETURN_CODE
    static const uint32_t known[] = CC_SIGRETURN_CODE;
    uint32_t code[array_len(known)];
    uintptr_t words[CC_MCONTEXT_WORDS], at = regs->value[CC_REGISTER_SP] + CC_SIGRETURN_CONTEXT;
    if (!cc__safe_copy(code, (const void *)regs->pc, sizeof code) || memcmp(code, known, sizeof code) != 0)
        return false;
    at += offsetof(ucontext_t, uc_mcontext);
    for (unsigned i = 0; i < CC_MCONTEXT_WORDS; i++)
        if (!cc__picture_word(p, at + i * sizeof words[0], &words[i])) return false;
    struct registers up = cc__registers_unpack(words);
    if (!goes_up(p, regs, up.value[CC_REGISTER_SP], false)) return false;
    *regs = up;
    *exact = true;
    return true;
#else
    (void)p, (void)regs, (void)exact;
    return false;
#endif
}

/* A return address at the first instruction of a function is not from a call: makecontext has put it there to end the
 * stack. */
static bool is_first_instruction(uintptr_t pc) {
    struct cfi_row row;
    return cc__cfi_row(pc, &row) && row.function == pc;
}

enum step cc__unwind_step(const struct picture *p, struct registers *regs, bool *exact) {
    struct cfi_row row;
    uintptr_t cfa;
    if (leave_signal(p, regs, exact)) return STEP_UP;
    if (!cc__cfi_row(regs->pc - !*exact, &row)) return !*exact && is_first_instruction(regs->pc) ? STEP_END : STEP_LOST;
    if (!find_cfa(p, &row, regs, &cfa)) return STEP_LOST;
    return cc__unwind_apply(p, &row, cfa, regs, exact);
}

const char *cc__inspect_missing(void) {
    return NULL;
}

/* ---- the whole stack ---- */

unsigned cc__unwind(const struct picture *p, const void **frames, unsigned max, struct doubt *doubt) {
    struct registers at = p->regs;
    bool exact = true, sure = true, begun = p->back == 0;
    unsigned n = 0;
    *doubt = (struct doubt){0};
    if (max > UNWIND_FRAMES) max = UNWIND_FRAMES;
    for (unsigned steps = 0; n < max && steps < UNWIND_STEPS; steps++) {
        begun = begun || at.pc == p->back;
        if (begun) {
            doubt->guessed |= (uint64_t)!sure << n;
            frames[n++] = (const void *)(at.pc + exact);
            if (n == max) break;
        }
        enum step step = cc__unwind_step(p, &at, &exact);
        if (step == STEP_LOST && cc__guess_step(p, &at, &exact, &sure)) step = STEP_UP;
        if (step == STEP_UP) continue;
        doubt->cut = step == STEP_LOST;
        break;
    }
    return n;
}

struct picture cc__picture_parked(const struct place *place, uintptr_t low, uintptr_t top) {
    struct picture p = {
        .regs = cc__registers_at((uintptr_t)place->pc, place->sp), .low = low, .top = top, .mapped = true};
    cc__registers_set(&p.regs, CC_REGISTER_FP, place->fp);
    return p;
}
