/* stack.c - fiber stacks: sizes, colours and guards, and that unused ones are trimmed. */
#include "harness.h"

#include "../crew.h"
#include "fiber/stack.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct stack_cache cache;

static void open_stacks(size_t size) {
    cc__vm_init();
    cc__stack_init(size);
}

static void close_stacks(void) {
    cc__stack_flush(&cache);
    cc__stack_destroy();
}

/* The lowest byte that a fiber may use, and the first that it may not. */
static char *bottom(struct stack *s) {
    return s->base + cc__stack_guard_size(s);
}

/* True if the kernel can read the byte: it answers instead of faulting. */
static bool readable(const char *byte) {
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    bool ok = write(fds[1], byte, 1) == 1;
    CHECK(ok || errno == EFAULT);
    close(fds[0]);
    close(fds[1]);
    return ok;
}

/* ---- sizes ---- */

TEST(sizes_are_rounded_up) {
    open_stacks(100 * 1000);
    CHECK_EQ(cc__stack_default(), 128 * 1024);
    static const struct {
        size_t asked, got;
    } cases[] = {
        {0, 128 * 1024},
        {1, 16 * 1024},
        {CC_STACK_SIZE_MIN, 16 * 1024},
        {CC_STACK_SIZE_MIN + 1, 32 * 1024},
        {128 * 1024, 128 * 1024},
        {128 * 1024 + 1, 256 * 1024},
        {5 * 1024 * 1024, 8 * 1024 * 1024},
        {CC_STACK_SIZE_MAX, CC_STACK_SIZE_MAX},
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        struct stack *s = cc__stack_take(&cache, cases[i].asked);
        CHECK(s != NULL);
        CHECK_EQ(cc__stack_size(s), cases[i].got);
        bottom(s)[0] = 1; /* both ends are usable */
        ((char *)cc__stack_top(s))[-1] = 1;
        cc__stack_give(&cache, s);
    }
    close_stacks();
}

/* Each size has its own class: a stack returns to its class. */
TEST(sizes_keep_apart) {
    open_stacks(64 * 1024);
    for (int i = 0; i < 1000; i++) {
        struct stack *small = cc__stack_take(&cache, 16 * 1024), *usual = cc__stack_take(&cache, 0);
        struct stack *large = cc__stack_take(&cache, 1024 * 1024);
        CHECK_EQ(cc__stack_size(small), 16 * 1024);
        CHECK_EQ(cc__stack_size(usual), 64 * 1024);
        CHECK_EQ(cc__stack_size(large), 1024 * 1024);
        cc__stack_give(&cache, large);
        cc__stack_give(&cache, small);
        cc__stack_give(&cache, usual);
    }
    for (struct stack *s; (s = cc__stack_take_cached(&cache)) != NULL;) CHECK_EQ(cc__stack_size(s), 64 * 1024);
    close_stacks();
}

/* ---- place ---- */

enum { MANY = 300 };
static struct stack *stacks[MANY];

TEST(stacks_do_not_overlap) {
    open_stacks(64 * 1024);
    for (int i = 0; i < MANY; i++) {
        stacks[i] = cc__stack_take(&cache, 0);
        memset(cc__stack_own_cold(stacks[i]), i, sizeof(struct fiber_cold));
        memset(bottom(stacks[i]), i, 64);
        for (int before = 0; before < i; before++) {
            CHECK(stacks[before] != stacks[i]);
            char *a = stacks[before]->base, *b = stacks[i]->base;
            CHECK(a + 64 * 1024 <= b || b + 64 * 1024 <= a);
        }
    }
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(((unsigned char *)cc__stack_own_cold(stacks[i]))[0], i % 256);
        CHECK_EQ((unsigned char)bottom(stacks[i])[63], i % 256);
        cc__stack_give(&cache, stacks[i]);
    }
    close_stacks();
}

TEST(tops_are_coloured) {
    open_stacks(64 * 1024);
    unsigned seen[STACK_COLOURS] = {0};
    for (int i = 0; i < 4 * STACK_COLOURS; i++) {
        struct stack *s = stacks[i] = cc__stack_take(&cache, 0);
        char *top = cc__stack_top(s), *cold = (char *)cc__stack_own_cold(s);
        CHECK_EQ((uintptr_t)top % 16, 0);
        CHECK(cold + sizeof(struct fiber_cold) == s->base + cc__stack_size(s));
        CHECK_EQ((cold - top) % STACK_COLOUR_STEP, 0);
        CHECK(cold - top < STACK_COLOURS * STACK_COLOUR_STEP);
        seen[(cold - top) / STACK_COLOUR_STEP]++;
    }
    for (int i = 0; i < STACK_COLOURS; i++)
        CHECK_EQ(seen[i], 4); /* evenly, or some cache sets are fuller than others */
    for (int i = 0; i < 4 * STACK_COLOURS; i++) cc__stack_give(&cache, stacks[i]);
    close_stacks();
}

/* ---- guards ---- */

TEST(every_stack_has_a_guard) {
    open_stacks(256 * 1024);
    static const size_t sizes[] = {CC_STACK_SIZE_MIN, 32 * 1024, 64 * 1024, 256 * 1024, 1024 * 1024};
    for (size_t i = 0; i < array_len(sizes); i++) {
        struct stack *s = cc__stack_take(&cache, sizes[i]);
        size_t guard = cc__stack_guard_size(s);
        CHECK(s->guarded);
        CHECK(guard >= cc__vm_page());
        CHECK(guard <= cc__stack_size(s) / 2);
        if (sizes[i] >= 256 * 1024) CHECK_EQ(guard, 4 * cc__vm_page());
        CHECK(!readable(s->base));
        CHECK(cc__stack_guard(s).size >= 44 * 1024);
        for (size_t below = 1; below <= cc__stack_gap(); below += cc__vm_page()) CHECK(!readable(s->base - below));
        CHECK(!readable(s->base + guard - 1));
        CHECK(readable(s->base + guard));
        CHECK(readable((char *)cc__stack_top(s) - 1));
        cc__stack_give(&cache, s);
    }
    close_stacks();
}

/* Memory that the program has locked takes no guards by advice. */
TEST(stacks_of_a_program_that_locks_its_memory) {
    enum { STACKS = 100 };
    struct stack *all[STACKS];
    open_stacks(256 * 1024);
    all[0] = cc__stack_take(&cache, 0);
    if (mlockall(MCL_CURRENT) != 0) SKIP("memory cannot be locked");
    for (int i = 1; i < STACKS; i++) {
        all[i] = cc__stack_take(&cache, 0);
        CHECK(all[i]->guarded);
        CHECK(!readable(all[i]->base));
        CHECK(readable(bottom(all[i])));
    }
    CHECK_EQ(munlockall(), 0);
    for (int i = 0; i < STACKS; i++) cc__stack_give(&cache, all[i]);
    close_stacks();
}

/* More stacks than can be guarded leave mappings for the program, its allocator and its sanitizer. */
TEST(guards_leave_mappings) {
    enum { STACKS = 33000, MAPPINGS = 2000 };
    open_stacks(CC_STACK_SIZE_MIN);
    static struct stack *all[STACKS];
    static void *mapped[MAPPINGS];
    size_t guarded = 0;
    for (int i = 0; i < STACKS; i++) {
        all[i] = cc__stack_take(&cache, 0);
        CHECK(all[i] != NULL);
        guarded += all[i]->guarded;
    }
    CHECK(cc__vm_guard_is_free() ? guarded == STACKS : guarded <= cc__vm_guards_max());
    for (int i = 0; i < MAPPINGS; i++) { /* with different protections, or adjacent mappings would be merged */
        mapped[i] = mmap(NULL, cc__vm_page(), i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(mapped[i] != MAP_FAILED);
    }
    for (int i = 0; i < MAPPINGS; i++) CHECK_EQ(munmap(mapped[i], cc__vm_page()), 0);
    for (int i = 0; i < STACKS; i++) cc__stack_give(&cache, all[i]);
    close_stacks();
}

TEST(guard_addresses_are_known) {
    open_stacks(256 * 1024);
    struct stack *s = cc__stack_take(&cache, 0);
    CHECK(!cc__stack_in_guard(s, s->base - cc__stack_gap() - 1));
    CHECK(cc__stack_in_guard(s, s->base - cc__stack_gap()));
    CHECK(cc__stack_in_guard(s, s->base));
    CHECK(cc__stack_in_guard(s, bottom(s) - 1));
    CHECK(!cc__stack_in_guard(s, bottom(s)));
    CHECK(!cc__stack_in_guard(s, NULL));
    cc__stack_give(&cache, s);
    close_stacks();
}

/* The guard is still there when the stack comes out of the pool again, trimmed or not. */
TEST(guards_survive_reuse) {
    open_stacks(64 * 1024);
    for (int i = 0; i < MANY; i++) stacks[i] = cc__stack_take(&cache, 0);
    for (int i = 0; i < MANY; i++) cc__stack_give(&cache, stacks[i]);
    cc__stack_flush(&cache);
    (void)cc__stack_trim();
    CHECK(cc__stack_trim() > 0);
    for (int i = 0; i < MANY; i++) {
        struct stack *s = cc__stack_take(&cache, 0);
        if (i % 16 == 0) CHECK(!readable(bottom(s) - 1));
        CHECK(s->guarded);
        stacks[i] = s;
    }
    for (int i = 0; i < MANY; i++) cc__stack_give(&cache, stacks[i]);
    close_stacks();
}

/* ---- an overflow is named ---- */

#ifdef CC_ASAN
enum { FRAME = 64 }; /* its frames have red zones, and may be elsewhere */
#else
enum { FRAME = 512 };
#endif

static CC_NOINLINE unsigned dig(unsigned depth) {
    volatile unsigned char frame[FRAME];
    frame[0] = (unsigned char)depth;
    unsigned below = depth == 0 ? 0 : dig(depth - 1);
    return below + frame[0];
}

static void *overflow(void *depth) {
    (void)cc_fiber_set_name("digger");
    dig((unsigned)(uintptr_t)depth);
    return NULL;
}

TEST_DIES(overflow_is_named, "stack overflow in fiber", .signal = SIGSEGV) {
    (void)cc_run(overflow, (void *)(uintptr_t)100000000, NULL);
}

TEST_DIES(overflow_reports_the_name, "'digger': its stack of 32 KiB", .signal = SIGSEGV) {
    CCRuntimeConfig config = {.stack_size = 32 * 1024};
    CHECK_EQ(cc_runtime_init(&config), 0);
    (void)cc_run(overflow, (void *)(uintptr_t)100000000, NULL);
}

/* ---- caches ---- */

static uint32_t length(void) {
    uint32_t n = 0;
    for (struct stack *s = cc__get(&cache.first); s != NULL; s = cc__get(&s->next)) n++;
    return n;
}

TEST(cache_is_bounded) {
    open_stacks(64 * 1024);
    for (int i = 0; i < MANY; i++) stacks[i] = cc__stack_take(&cache, 0);
    for (int i = 0; i < MANY; i++) {
        cc__stack_give(&cache, stacks[i]);
        CHECK_EQ(cc__get(&cache.count), length());
        CHECK(cc__get(&cache.count) <= STACK_CACHE_MAX);
    }
    close_stacks();
}

/* Returned stacks are reused: the pool does not grow while it has free ones. */
TEST(stacks_are_used_again) {
    open_stacks(64 * 1024);
    uint32_t made = 0;
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < MANY; i++) stacks[i] = cc__stack_take(&cache, 0);
        struct stack_survey survey;
        cc__stack_look(&survey, 1);
        CHECK(survey.stacks == made || round < 2); /* the build for the race detector holds some back */
        made = survey.stacks;
        for (int i = 0; i < MANY; i++) cc__stack_give(&cache, stacks[i]);
        if (round % 2) cc__stack_flush(&cache);
        if (round % 3 == 0) (void)cc__stack_trim();
    }
    close_stacks();
}

/* New stacks come in batches that double. All of a batch are complete: each has its guard, and its first page reads as
 * zero. */
TEST(batches_grow) {
    open_stacks(64 * 1024);
    uint32_t most = 0;
    for (int i = 0; i < MANY; i++) {
        bool had_some = cc__get(&cache.count) > 0;
        stacks[i] = cc__stack_take(&cache, 0);
        CHECK(!readable(stacks[i]->base + cc__stack_guard_size(stacks[i]) - 1));
        CHECK_EQ(*(uint64_t *)cc__stack_top(stacks[i]), 0);
        *(uint64_t *)cc__stack_top(stacks[i]) = 1;
        CHECK_EQ(cc__get(&cache.count), length());
        if (had_some) continue;
        uint32_t batch = cc__get(&cache.count) + 1;
        CHECK(STACK_CACHE_MAX == 0 ? batch == 1 : i == 0 ? batch == 1 : batch == 2 * most || batch == most);
        most = batch;
    }
    CHECK(STACK_CACHE_MAX == 0 || most == STACK_CACHE_MAX / 2);
    for (int i = 0; i < MANY; i++) cc__stack_give(&cache, stacks[i]);
    cc__stack_flush(&cache);
    close_stacks();
}

/* ---- pages ---- */

static size_t resident(void) {
    FILE *f = fopen("/proc/self/statm", "re");
    CHECK(f != NULL);
    unsigned long total, pages;
    CHECK_EQ(fscanf(f, "%lu %lu", &total, &pages), 2);
    fclose(f);
    return pages * cc__vm_page();
}

TEST(trim_returns_pages) {
    enum { SIZE = 256 * 1024, TOUCHED = 128 * 1024, BURST = 600, RESERVED = 256 /* stack.c: RESERVE */ };
    static struct stack *burst[BURST];
    open_stacks(SIZE);
    for (int i = 0; i < BURST; i++) {
        burst[i] = cc__stack_take(&cache, 0);
        memset(burst[i]->base + SIZE - TOUCHED, 1, TOUCHED);
    }
    const unsigned made = BURST + cc__get(&cache.count); /* they come in batches */
    for (int i = 0; i < BURST; i++) cc__stack_give(&cache, burst[i]);
    cc__stack_flush(&cache);
    size_t before = resident();
    CHECK(cc__stack_spare());
    CHECK_EQ(cc__stack_trim(), 0); /* all of them were in use since the last call, which was never */
    CHECK_EQ(cc__stack_trim(), made - RESERVED);
    size_t after = resident();
    CHECK(before - after >= (size_t)(BURST - RESERVED) * TOUCHED * 9 / 10);
    CHECK(!cc__stack_spare());
    CHECK_EQ(cc__stack_trim(), 0); /* what is left is the reserve */
    int clean = 0;
    for (int i = 0; i < BURST; i++) {
        struct stack *s = cc__stack_take(&cache, 0);
        if (s->base[SIZE - TOUCHED] == 0) clean++;
        burst[i] = s;
    }
    CHECK(clean >= BURST - RESERVED);
    for (int i = 0; i < BURST; i++) cc__stack_give(&cache, burst[i]);
    close_stacks();
}

/* Repeated bursts keep their stacks: only those are trimmed that no burst has needed since the last call. */
TEST(trim_leaves_what_is_used) {
    enum { LARGE = 1000, SMALL = 700, RESERVED = 256 };
    static struct stack *wave[LARGE];
    open_stacks(64 * 1024);
    uint32_t made = 0;
    for (int round = 0; round < 6; round++) {
        int n = round < 3 ? LARGE : SMALL;
        for (int i = 0; i < n; i++) wave[i] = cc__stack_take(&cache, 0);
        if (round == 0) made = (uint32_t)n + cc__get(&cache.count);
        for (int i = 0; i < n; i++) cc__stack_give(&cache, wave[i]);
        cc__stack_flush(&cache);
        unsigned given = cc__stack_trim();
        if (STACK_CACHE_MAX == 0) continue; /* the build for the race detector holds some back */
        if (round < 3) CHECK_EQ(given, 0);
        if (round == 3) CHECK(given > 0 && given <= made - SMALL);
        if (round > 3) CHECK(given <= made - SMALL);
    }
    close_stacks();
}

/* ---- threads ---- */

static long rounds;

static void take_and_give(int index, void *arg) {
    (void)arg;
    enum { HELD = 100 };
    struct stack *held[HELD];
    struct stack_cache own = {.count = 0};
    uint64_t random = test_seed() + (uint64_t)index;
    int count = 0;
    for (long i = 0; i < rounds || count > 0; i++) {
        if (i < rounds && count < HELD &&
            (count == 0 || test_random(&random) % 100 < (uint64_t)(i / 500 % 2 ? 70 : 30))) {
            struct stack *s = cc__stack_take(&own, test_random(&random) % 4 ? 0 : 16 * 1024);
            struct fiber_cold *cold = cc__stack_own_cold(s);
            cold->block = (void *)&held;
            cold->fiber = (void *)s;
            held[count++] = s;
        } else {
            int at = (int)(test_random(&random) % (uint64_t)count);
            struct stack *s = held[at];
            held[at] = held[--count];
            struct fiber_cold *cold = cc__stack_own_cold(s);
            CHECK(cold->block == (void *)&held && cold->fiber == (void *)s); /* nobody else has been here */
            cc__stack_give(&own, s);
        }
        if (i % 256 == 0) (void)cc__stack_trim();
    }
    cc__stack_flush(&own);
}

TEST(threads_share_the_pool) {
    open_stacks(32 * 1024);
    rounds = test_rounds(50000, 1000000);
    crew_run(4, take_and_give, NULL);
    close_stacks();
}
