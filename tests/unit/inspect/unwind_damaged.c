/* unwind_damaged.c - code without unwind information, damaged tables and stacks: guessed frames are marked, and no
 * unmapped memory is accessed. */
#include "harness.h"

#include "base/attr.h"
#include "inspect/linux/step.h"
#include "inspect/symbol.h"
#include "inspect/unwind.h"
#include "os/safe_copy.h"
#include "os/thread.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FRAMES = 64 };

#define STAY() __asm__ volatile("" ::: "memory")

static const void *frames[FRAMES];
static unsigned count;
static struct doubt doubt;

static bool is_named(const void *frame, const char *name) {
    struct symbol s[8];
    unsigned n = cc__symbol_find_inlined(frame, s, array_len(s));
    return strcmp(s[n - 1].function, name) == 0;
}

static void print_frames(void) {
    for (unsigned i = 0; i < count; i++) {
        char text[256];
        cc__symbol_text(frames[i], text, sizeof text);
        printf("  %u %s%s\n", i, doubt.guessed >> i & 1 ? "? " : "", text);
    }
    if (doubt.cut) printf("  cut\n");
}

static CC_NOINLINE void look(void) {
    const void *bottom, *top;
    cc__thread_stack(&bottom, &top);
    count = cc__unwind_here(bottom, top, __builtin_return_address(0), frames, FRAMES, &doubt);
    STAY();
}

/* ---- without information ---- */

/* Functions that no call-frame information describes: one keeps a frame pointer, one does not. */
void with_pointer(void (*fn)(void));
void without_pointer(void (*fn)(void));
#if defined(__x86_64__)
__asm__(".text\n"
        ".type with_pointer, @function\n"
        "with_pointer: pushq %rbp\n movq %rsp, %rbp\n callq *%rdi\n popq %rbp\n ret\n"
        ".size with_pointer, .-with_pointer\n"
        ".type without_pointer, @function\n"
        "without_pointer: pushq %rbx\n xorl %ebx, %ebx\n pushq %rbp\n xorl %ebp, %ebp\n subq $24, %rsp\n"
        "callq *%rdi\n addq $24, %rsp\n popq %rbp\n popq %rbx\n ret\n"
        ".size without_pointer, .-without_pointer\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".type with_pointer, %function\n"
        "with_pointer: stp x29, x30, [sp, #-16]!\n mov x29, sp\n blr x0\n ldp x29, x30, [sp], #16\n ret\n"
        ".size with_pointer, .-with_pointer\n"
        ".type without_pointer, %function\n"
        "without_pointer: stp x29, x30, [sp, #-16]!\n mov x29, xzr\n blr x0\n ldp x29, x30, [sp], #16\n ret\n"
        ".size without_pointer, .-without_pointer\n");
#elif defined(__riscv)
__asm__(".text\n"
        ".type with_pointer, @function\n"
        "with_pointer: addi sp, sp, -16\n sd s0, 0(sp)\n sd ra, 8(sp)\n addi s0, sp, 16\n jalr a0\n"
        "ld s0, 0(sp)\n ld ra, 8(sp)\n addi sp, sp, 16\n ret\n"
        ".size with_pointer, .-with_pointer\n"
        ".type without_pointer, @function\n"
        "without_pointer: addi sp, sp, -16\n sd s0, 0(sp)\n sd ra, 8(sp)\n li s0, 0\n jalr a0\n"
        "ld s0, 0(sp)\n ld ra, 8(sp)\n addi sp, sp, 16\n ret\n"
        ".size without_pointer, .-without_pointer\n");
#endif

static CC_NOINLINE void go_with_pointer(void) {
    with_pointer(look);
    STAY();
}

static CC_NOINLINE void go_without_pointer(void) {
    without_pointer(look);
    STAY();
}

/* The function itself is certain, for it was called from code with information. Nothing above it is, or it is
 * missing. */
static void check_marks(void (*bare)(void (*fn)(void))) {
    print_frames();
    CHECK(count >= 1);
    CHECK((uintptr_t)frames[0] - (uintptr_t)bare < 64);
    CHECK(!(doubt.guessed & 1));
    for (unsigned i = 1; i < count; i++) CHECK(doubt.guessed >> i & 1);
    CHECK(count > 1 || doubt.cut);
}

static void need_names(void) {
#ifndef CC_BACKTRACE
    SKIP("built without libbacktrace");
#endif
}

TEST(code_without_information) {
    need_names();
    go_with_pointer();
    check_marks(with_pointer);
    CHECK(count > 2);
    CHECK(is_named(frames[1], "go_with_pointer"));
    CHECK(is_named(frames[2], "case_code_without_information"));
}

TEST(code_without_information_or_pointer) {
    go_without_pointer();
    check_marks(without_pointer);
}

/* Code that belongs to no object, as a compiler makes at run time. */
TEST(code_of_no_object) {
    size_t size = 4096;
    unsigned char *code = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    memcpy(code, (const void *)without_pointer, 64);
    CHECK_EQ(mprotect(code, size, PROT_READ | PROT_EXEC), 0);
    __builtin___clear_cache((char *)code, (char *)code + 64);
    void (*made)(void (*fn)(void));
    memcpy(&made, &code, sizeof made);
    made(look);
    print_frames();
    CHECK((const unsigned char *)frames[0] > code && (const unsigned char *)frames[0] < code + 64);
    CHECK(!(doubt.guessed & 1));
    for (unsigned i = 1; i < count; i++) CHECK(doubt.guessed >> i & 1);
    CHECK(count > 1 || doubt.cut);
}

/* ---- damaged ---- */

/* A copy of an object's memory, with its tables: their contents are relative, so the copy is valid. */
struct copy {
    unsigned char *memory;
    size_t size;
    uintptr_t delta, table;
};

static int measure(struct dl_phdr_info *info, size_t size, void *data) {
    uintptr_t *range = data; /* from, to, table */
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type == PT_GNU_EH_FRAME) range[2] = from;
        if (h->p_type != PT_LOAD) continue;
        if (range[1] == 0) range[0] = from & ~(uintptr_t)4095;
        range[1] = from + h->p_memsz;
    }
    return 1; /* the program is the first */
}

static struct copy copy_program(void) {
    uintptr_t range[3] = {0};
    struct copy c = {0};
    (void)dl_iterate_phdr(measure, range);
    CHECK(range[2] != 0);
    c.size = (range[1] - range[0] + 4095) & ~(size_t)4095;
    c.memory = mmap(NULL, c.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(c.memory != MAP_FAILED);
    for (size_t at = 0; at < c.size; at += 4096)
        (void)cc__safe_copy(c.memory + at, (const void *)(range[0] + at), 4096);
    c.delta = (uintptr_t)c.memory - range[0];
    c.table = range[2] + c.delta;
    return c;
}

/* Addresses of code in the program: of all functions that its table lists, and within them. */
static uintptr_t some_pc(uint64_t *random, const struct copy *c) {
    uint32_t functions;
    int32_t from;
    const unsigned char *original = (const unsigned char *)(c->table - c->delta);
    memcpy(&functions, original + 8, sizeof functions);
    memcpy(&from, original + 12 + test_random(random) % functions * 8, sizeof from);
    return c->table + (uintptr_t)(intptr_t)from + test_random(random) % 64;
}

TEST(a_complete_copy_is_equivalent) {
    struct copy c = copy_program();
    uint64_t random = test_seed();
    unsigned found = 0;
    for (long i = test_scale(2000); i > 0; i--) {
        struct cfi_row one, other;
        uintptr_t pc = some_pc(&random, &c);
        bool there = cc__cfi_find(c.table, pc, &other);
        CHECK_EQ(cc__cfi_find(c.table - c.delta, pc - c.delta, &one), there);
        if (!there) continue; /* behind the end of a short function */
        found++;
        CHECK_EQ(one.function + c.delta, other.function);
        CHECK_EQ(one.cfa, other.cfa);
        if (one.cfa == CFI_REGISTER) CHECK_EQ(one.cfa_value, other.cfa_value);
        CHECK_EQ(memcmp(one.rule, other.rule, sizeof one.rule), 0);
    }
    CHECK(found > 0);
}

/* A stack of words that may be anything, above all what could lead somewhere. */
static void fill_stack(uint64_t *random, uintptr_t *words, size_t n, const struct copy *c) {
    for (size_t i = 0; i < n; i++) {
        uint64_t r = test_random(random);
        words[i] = r % 4 == 0   ? (uintptr_t)&words[test_random(random) % n]
                   : r % 4 == 1 ? some_pc(random, c) - c->delta
                   : r % 4 == 2 ? test_random(random)
                                : 0;
    }
}

static struct picture some_picture(uint64_t *random, uintptr_t *words, size_t n, uintptr_t pc) {
    struct picture p = {.low = (uintptr_t)words, .top = (uintptr_t)(words + n)};
    p.regs.pc = pc;
    for (unsigned i = 0; i < CC_REGISTERS; i++)
        if (test_random(random) % 4 != 0)
            cc__registers_set(&p.regs, i,
                              test_random(random) % 2 ? (uintptr_t)test_random(random)
                                                      : (uintptr_t)&words[test_random(random) % n]);
    cc__registers_set(&p.regs, CC_REGISTER_SP, (uintptr_t)&words[test_random(random) % n]);
    p.mapped = test_random(random) % 2;
    return p;
}

TEST(damaged_stacks) {
    enum { WORDS = 512 };
    static uintptr_t words[WORDS];
    struct copy c = copy_program();
    uint64_t random = test_seed();
    unsigned long found = 0;
    for (long i = test_scale(500); i > 0; i--) {
        fill_stack(&random, words, WORDS, &c);
        struct picture p = some_picture(&random, words, WORDS, some_pc(&random, &c) - c.delta);
        unsigned n = cc__unwind(&p, frames, FRAMES, &doubt);
        CHECK(n >= 1 && n <= FRAMES);
        found += n;
    }
    printf("%lu frames\n", found);
}

TEST(damaged_tables) {
    enum { WORDS = 512 };
    static uintptr_t words[WORDS];
    struct copy c = copy_program();
    size_t room = (uintptr_t)c.memory + c.size - c.table;
    unsigned char *fresh = malloc(room);
    uint64_t random = test_seed();
    unsigned long rows = 0;
    CHECK(fresh != NULL);
    memcpy(fresh, (const void *)c.table, room);
    for (long i = test_scale(4000); i > 0; i--) {
        struct cfi_row row;
        int32_t pair[2]; /* of a function: its code, its record */
        uint32_t functions;
        if (i % 16 == 0) memcpy((void *)c.table, fresh, room);
        memcpy(&functions, fresh + 8, sizeof functions);
        memcpy(pair, fresh + 12 + test_random(&random) % functions * sizeof pair, sizeof pair);
        uintptr_t pc = c.table + (uintptr_t)(intptr_t)pair[0] + test_random(&random) % 64;
        /* The record is damaged, and sometimes the header of the table, or any record. */
        for (unsigned k = 1 + (unsigned)(test_random(&random) % 8); k > 0; k--) {
            size_t at = (size_t)pair[1] + test_random(&random) % 64;
            if (test_random(&random) % 16 == 0) at = test_random(&random) % (test_random(&random) % 2 ? 16 : room);
            if (at < room) *(unsigned char *)(c.table + at) = (unsigned char)test_random(&random);
        }
        if (cc__cfi_find(c.table, pc, &row)) {
            rows++;
            fill_stack(&random, words, 64, &c);
            struct picture p = some_picture(&random, words, WORDS, pc);
            bool exact = true;
            (void)cc__unwind_apply(&p, &row, (uintptr_t)&words[test_random(&random) % WORDS], &p.regs, &exact);
        }
    }
    printf("%lu rows\n", rows);
    CHECK(rows > 0);
    free(fresh);
}

/* ---- expressions ---- */

static bool run(const unsigned char *expression, const struct registers *regs, const uintptr_t *first,
                uintptr_t *result) {
    static const struct picture none; /* memory is read by safe copies */
    return cc__expression_run(&none, regs, (uintptr_t)expression, first, result);
}

TEST(expressions_of_call_frame_information) {
    static const uintptr_t saved = 1234;
    struct registers regs = {.pc = 0};
    uintptr_t result = 0, first = (uintptr_t)&saved - 8;
    cc__registers_set(&regs, 3, 0x1000);
    cc__registers_set(&regs, 4, 0x10b);
    /* An entry of the procedure linkage table: r3 + 8 + ((r4 & 15) >= 11) << 3. */
    static const unsigned char plt[] = {11, 0x73, 8, 0x74, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
    CHECK(run(plt, &regs, NULL, &result));
    CHECK_EQ(result, 0x1000 + 8 + 8);
    cc__registers_set(&regs, 4, 0x10a);
    CHECK(run(plt, &regs, NULL, &result));
    CHECK_EQ(result, 0x1000 + 8);
    /* What is saved 8 bytes above what is there; a register below its value; constants with a sign and without. */
    static const unsigned char load[] = {3, 0x23, 8, 0x06}, below[] = {2, 0x73, 0x70};
    CHECK(run(load, &regs, &first, &result));
    CHECK_EQ(result, saved);
    CHECK(run(below, &regs, NULL, &result));
    CHECK_EQ(result, 0x1000 - 16);
    static const unsigned char constants[] = {9, 0x0b, 0xfe, 0xff, 0x0a, 0x05, 0x00, 0x1e, 0x31, 0x1c};
    CHECK(run(constants, &regs, NULL, &result));
    CHECK_EQ((intptr_t)result, -2 * 5 - 1);
}

TEST(expressions_that_are_no_answer) {
    struct registers regs = {.pc = 0};
    uintptr_t result, first = 16;
    static const unsigned char unknown_register[] = {2, 0x73, 0}, no_memory[] = {1, 0x06}, other[] = {1, 0x17},
                               too_few[] = {2, 0x31, 0x22}, empty[] = {0}, cut[] = {1, 0x0e};
    CHECK(!run(unknown_register, &regs, NULL, &result));
    CHECK(!run(no_memory, &regs, &first, &result));
    CHECK(!run(other, &regs, &first, &result));
    CHECK(!run(too_few, &regs, NULL, &result));
    CHECK(!run(empty, &regs, NULL, &result));
    CHECK(!run(cut, &regs, NULL, &result));
    unsigned char deep[18] = {17};
    memset(deep + 1, 0x31, 17);
    CHECK(!run(deep, &regs, NULL, &result));
}
