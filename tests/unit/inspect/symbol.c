/* symbol.c - addresses are resolved to the names and lines of the source, as far as the build allows. */
#include "harness.h"

#include "base/attr.h"
#include "base/san.h"
#include "inspect/symbol.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The place that this was called from, and its line. */
struct place {
    const void *address;
    unsigned line;
};

static CC_NOINLINE const void *return_address(void) {
    return __builtin_return_address(0);
}

static CC_NOINLINE struct place somewhere_static(void) {
    struct place here;
    here.address = return_address(), here.line = __LINE__;
    __asm__ volatile("" ::: "memory");
    return here;
}

static unsigned inner_line;
static __attribute__((always_inline)) inline const void *inlined_part(void) {
    const void *at;
    at = return_address(), inner_line = __LINE__;
    __asm__ volatile("" ::: "memory");
    return at;
}

static __attribute__((always_inline)) inline const void *inlined_thrice(int depth) {
    const void *at = depth == 0 ? inlined_part() : NULL;
    __asm__ volatile("" ::: "memory");
    return at;
}

static __attribute__((always_inline)) inline const void *inlined_twice(int depth) {
    const void *at = inlined_thrice(depth);
    __asm__ volatile("" ::: "memory");
    return at;
}

static CC_NOINLINE const void *host_of_many(void) {
    const void *at = inlined_twice(0);
    __asm__ volatile("" ::: "memory");
    return at;
}

static CC_NOINLINE struct place host_of_inlined(void) {
    struct place here;
    here.address = inlined_part(), here.line = __LINE__;
    __asm__ volatile("" ::: "memory");
    return here;
}

static void make_room(struct symbol *s) {
    memset(s, 0x55, sizeof *s);
}

TEST(names_a_static_function) {
    struct place p = somewhere_static();
    struct symbol s;
    make_room(&s);
    errno = 1234;
    cc__symbol_find(p.address, &s);
    CHECK_EQ(errno, 1234);
    CHECK_EQ(strcmp(s.module, "symbol"), 0); /* this program */
    CHECK(s.offset > 0);
#ifdef CC_BACKTRACE
    CHECK_EQ(strcmp(s.function, "somewhere_static"), 0);
    CHECK_EQ(strcmp(s.file, "symbol.c"), 0);
    CHECK_EQ(s.line, p.line);
#endif
}

TEST(writes_it_as_text) {
    struct place p = somewhere_static();
    char text[256], expected[256];
    cc__symbol_text(p.address, text, sizeof text);
#ifdef CC_BACKTRACE
    snprintf(expected, sizeof expected, "somewhere_static (symbol.c:%u)", p.line);
#else
    struct symbol s;
    cc__symbol_find(p.address, &s);
    snprintf(expected, sizeof expected, "symbol+%#zx", s.offset);
#endif
    puts(text);
    CHECK_EQ(strcmp(text, expected), 0);
    char small[10];
    memset(small, 0x55, sizeof small);
    cc__symbol_text(p.address, small, 8);
    CHECK_EQ(strncmp(small, expected, 7), 0);
    CHECK_EQ(small[7], 0);
    CHECK_EQ(small[8], 0x55);
    cc__symbol_text(p.address, small, 1);
    CHECK_EQ(small[0], 0);
}

TEST(shows_inlined_functions) {
#ifndef CC_BACKTRACE
    SKIP("built without libbacktrace");
#endif
    struct place p = host_of_inlined();
    struct symbol found[4];
    unsigned n = cc__symbol_find_inlined(p.address, found, 4);
    CHECK_EQ(n, 2);
    CHECK_EQ(strcmp(found[0].function, "inlined_part"), 0);
    CHECK_EQ(found[0].line, inner_line);
    CHECK_EQ(strcmp(found[1].function, "host_of_inlined"), 0);
    CHECK_EQ(found[1].line, p.line);
    CHECK_EQ(strcmp(found[1].module, "symbol"), 0);
    CHECK_EQ(cc__symbol_find_inlined(p.address, found, 1), 1);
    CHECK_EQ(strcmp(found[0].function, "inlined_part"), 0);
    /* The outermost one is always there. */
    const void *deep = host_of_many();
    CHECK_EQ(cc__symbol_find_inlined(deep, found, 4), 4);
    CHECK_EQ(strcmp(found[2].function, "inlined_twice"), 0);
    CHECK_EQ(strcmp(found[3].function, "host_of_many"), 0);
    CHECK_EQ(cc__symbol_find_inlined(deep, found, 2), 2);
    CHECK_EQ(strcmp(found[0].function, "inlined_part"), 0);
    CHECK_EQ(strcmp(found[1].function, "host_of_many"), 0);
    CHECK_EQ(strcmp(found[1].module, "symbol"), 0);
    char text[256], expected[256];
    cc__symbol_text(p.address, text, sizeof text);
    snprintf(expected, sizeof expected, "inlined_part (symbol.c:%u) in host_of_inlined (symbol.c:%u)", inner_line,
             p.line);
    puts(text);
    CHECK_EQ(strcmp(text, expected), 0);
}

TEST(names_a_function_of_a_library) {
    struct symbol s;
    char text[256];
    /* The address of the function itself, plus one: an instruction. */
    const char *join_at = (const char *)(uintptr_t)pthread_join;
    cc__symbol_find(join_at + 1, &s);
    cc__symbol_text(join_at + 1, text, sizeof text);
    puts(text);
    CHECK(strstr(s.function, "pthread_join") != NULL);
    CHECK(strstr(text, "pthread_join") != NULL);
    CHECK(s.module[0] != '\0');
}

TEST(resolves_no_data_addresses) {
    struct symbol s;
    char text[64], expected[64];
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const void *nowhere[] = {NULL, (void *)1, (void *)(uintptr_t)0x1234, (char *)page + 100, (void *)UINTPTR_MAX};
    for (unsigned i = 0; i < array_len(nowhere); i++) {
        make_room(&s);
        cc__symbol_find(nowhere[i], &s);
        CHECK_EQ(s.function[0], 0);
        CHECK_EQ(s.file[0], 0);
        CHECK_EQ(s.module[0], 0);
        CHECK_EQ(s.line, 0);
        CHECK_EQ(s.offset, 0);
        cc__symbol_text(nowhere[i], text, sizeof text);
        snprintf(expected, sizeof expected, "%p", nowhere[i]);
        CHECK_EQ(strcmp(text, expected), 0);
    }
}

/* Threads that resolve their first address at the same time. */
static pthread_barrier_t barrier;

static void *ask(void *arg) {
    struct place p = somewhere_static();
    pthread_barrier_wait(&barrier);
    for (long i = test_scale(100); i > 0; i--) {
        struct symbol s;
        cc__symbol_find(p.address, &s);
        CHECK_EQ(strcmp(s.module, "symbol"), 0);
#ifdef CC_BACKTRACE
        CHECK_EQ(s.line, p.line);
#endif
        cc__symbol_find((const char *)(uintptr_t)pthread_join + 1, &s);
        CHECK(strstr(s.function, "pthread_join") != NULL);
    }
    return arg;
}

TEST(threads_ask_at_once) {
    enum { N = 8 };
    pthread_t threads[N];
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, N), 0);
    for (int i = 0; i < N; i++) CHECK_EQ(pthread_create(&threads[i], NULL, ask, NULL), 0);
    for (int i = 0; i < N; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* A fiber's stack may be small: the most that the function takes, over an empty one. */
enum { STACK = 256 * 1024 };

static size_t stack_taken(void *(*fn)(void *)) {
    unsigned char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attr;
    pthread_t thread;
    CHECK(stack != MAP_FAILED);
    pthread_attr_init(&attr);
    CHECK_EQ(pthread_attr_setstack(&attr, stack, STACK), 0);
    CHECK_EQ(pthread_create(&thread, &attr, fn, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    size_t untouched = 0;
    while (untouched < STACK && stack[untouched] == 0) untouched++;
    return STACK - untouched;
}

static void *do_nothing(void *arg) {
    return arg;
}

static void *ask_for_text(void *arg) {
    static char text[256];
    cc__symbol_text(somewhere_static().address, text, sizeof text);
    cc__symbol_text((const char *)(uintptr_t)cc__symbol_text + 1, text, sizeof text); /* another unit */
    return arg;
}

TEST(takes_little_stack) {
#if defined(CC_ASAN) || defined(CC_TSAN)
    SKIP("a sanitizer's frames are larger");
#endif
    if (cc__san_on_valgrind()) SKIP("under valgrind an unused stack cannot be read");
    size_t nothing = stack_taken(do_nothing), taken = stack_taken(ask_for_text) - nothing;
    printf("%zu bytes of stack\n", taken);
    CHECK(taken > 100);
    CHECK(taken < 8 * 1024);
}

/* ---- a module at the addresses of another one, which was unloaded ---- */

static const char *name_in(void *module, const char *name, const void **at) {
    static struct symbol symbol;
    *at = dlsym(module, name);
    CHECK(*at != NULL);
    cc__symbol_find((const char *)*at + 1, &symbol);
    return symbol.function;
}

TEST(a_module_in_the_place_of_another) {
    const void *before, *after;
    void *module = dlopen(FIRST_PLUGIN, RTLD_NOW);
    CHECK(module != NULL);
    CHECK(strcmp(name_in(module, "first_plugin", &before), "first_plugin") == 0);
    CHECK_EQ(dlclose(module), 0);
    CHECK((module = dlopen(SECOND_PLUGIN, RTLD_NOW)) != NULL);
    const char *name = name_in(module, "second_plugin", &after);
    CHECK(strcmp(name, "second_plugin") == 0);
    if (before != after) SKIP("the second one was loaded elsewhere");
    CHECK_EQ(dlclose(module), 0);
}

/* As when a program loads a library that was built again: name and address are those of the first one. */
static void copy_file(const char *from, const char *to) {
    char bytes[4096];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    CHECK(in != NULL && out != NULL);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0;) CHECK_EQ(fwrite(bytes, 1, n, out), n);
    CHECK_EQ(fclose(in) + fclose(out), 0);
}

TEST(a_module_that_was_built_again) {
    char dir[] = "/tmp/ccc-symbol-XXXXXX", path[64], text[256];
    const void *before, *after;
    CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof path, "%s/plugin.so", dir);
    copy_file(FIRST_PLUGIN, path);
    void *module = dlopen(path, RTLD_NOW);
    CHECK(module != NULL);
    CHECK(strcmp(name_in(module, "first_plugin", &before), "first_plugin") == 0);
    CHECK_EQ(dlclose(module) + unlink(path), 0);
    copy_file(SECOND_PLUGIN, path);
    CHECK((module = dlopen(path, RTLD_NOW)) != NULL);
    CHECK(strcmp(name_in(module, "second_plugin", &after), "second_plugin") == 0);
    cc__symbol_text((const char *)after + 1, text, sizeof text);
    CHECK(strncmp(text, "second_plugin+0x1 (plugin.so+0x", 31) == 0);
    CHECK_EQ(dlclose(module) + unlink(path) + rmdir(dir), 0);
    if (before != after) SKIP("the second one was loaded elsewhere");
}

/* ---- while libraries are loaded and unloaded ---- */

static void *load_slowly(void *arg) {
    void *module = dlopen(SECOND_PLUGIN, RTLD_NOW);
    CHECK(module != NULL);
    CHECK_EQ(dlclose(module), 0);
    return arg;
}

/* Sysmon asks for names: it must not wait for a constructor, which may wait for a fiber. */
TEST(a_library_whose_constructor_waits) {
    pthread_t thread;
    int tells[2], waits_for[2];
    char numbers[32];
    CHECK_EQ(pipe(waits_for) + pipe(tells), 0);
    void *module = dlopen(FIRST_PLUGIN, RTLD_NOW);
    CHECK(module != NULL);
    const void *there = dlsym(module, "first_plugin");
    snprintf(numbers, sizeof numbers, "%d %d", tells[1], waits_for[0]);
    CHECK_EQ(setenv("PLUGIN_TELLS_AND_WAITS", numbers, 1), 0);
    CHECK_EQ(pthread_create(&thread, NULL, load_slowly, NULL), 0);
    char byte;
    CHECK_EQ(read(tells[0], &byte, 1), 1); /* it holds the lock of the dynamic linker */
    struct symbol symbol;
    cc__symbol_find((const char *)there + 1, &symbol);
    CHECK(strcmp(symbol.function, "first_plugin") == 0);
    CHECK_EQ(write(waits_for[1], "x", 1), 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(dlclose(module), 0);
}

static _Atomic bool over;

static void *load_and_unload(void *arg) {
    while (!over) {
        void *module = dlopen(arg, RTLD_NOW);
        CHECK(module != NULL);
        CHECK_EQ(dlclose(module), 0);
    }
    return NULL;
}

TEST(while_libraries_come_and_go) {
    pthread_t threads[2];
    void *module = dlopen(FIRST_PLUGIN, RTLD_NOW);
    CHECK(module != NULL);
    const void *there = dlsym(module, "first_plugin");
    CHECK_EQ(dlclose(module), 0);
    CHECK_EQ(pthread_create(&threads[0], NULL, load_and_unload, (void *)(uintptr_t)FIRST_PLUGIN), 0);
    CHECK_EQ(pthread_create(&threads[1], NULL, load_and_unload, (void *)(uintptr_t)SECOND_PLUGIN), 0);
    char text[256];
    for (long i = 0; i < test_rounds(200, 20000); i++) {
        cc__symbol_text((const char *)there + 1, text, sizeof text);
        bool first = strncmp(text, "first_plugin", 12) == 0, second = strncmp(text, "second_plugin", 13) == 0;
        CHECK(first || second || strncmp(text, "0x", 2) == 0 || strstr(text, ".so+0x") != NULL);
    }
    over = true;
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* ---- while the program forks ---- */

static void *look_up_names(void *there) {
    char text[256];
    while (!over) cc__symbol_text((const char *)there + 1, text, sizeof text);
    return NULL;
}

/* The child has a dynamic linker whose lock nobody holds. */
TEST(while_the_program_forks) {
#if defined(CC_ASAN) || defined(CC_TSAN)
    SKIP("a sanitizer's own locks may be held in the child");
#endif
    pthread_t threads[2];
    void *module = dlopen(FIRST_PLUGIN, RTLD_NOW);
    CHECK(module != NULL);
    void *there = dlsym(module, "first_plugin");
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&threads[i], NULL, look_up_names, there), 0);
    for (long i = 0; i < test_rounds(50, 2000); i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            _exit(dlopen(SECOND_PLUGIN, RTLD_NOW) == NULL);
        }
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
    over = true;
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(dlclose(module), 0);
}
