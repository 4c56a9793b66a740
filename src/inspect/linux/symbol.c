/* symbol.c - symbol lookup by libbacktrace, then in the table of the dynamic linker.
 *
 * libbacktrace cannot free what it has read: there is one state, kept for ever, in memory that it maps itself. It knows
 * the modules that were loaded at its first use; for later ones, also where an earlier one was, that table is used.
 */
#include "inspect/symbol.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/san.h"
#include "fiber/cxx.h"
#include "fiber/stack.h"
#include "inspect/linux/module.h"
#include "os/thread.h"
#include "sched/sched.h"

#include <stdio.h>
#include <string.h>

static void copy_text(char *to, size_t size, const char *from) {
    size_t n = strnlen(from, size - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

static const char *last_component(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The C++ runtime's demangler needs almost 80 bytes of stack for each byte of a name, libbacktrace 8 kB and more. */
enum { SMALL_STACK = 16 * 1024 };

static bool stack_is_small(void) {
    struct fiber *self = cc__sched_current(cc__worker());
    const struct stack *s = self != NULL ? cc__get(&self->stack) : NULL;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (s == NULL || here < (uintptr_t)s->base || here >= (uintptr_t)cc__stack_top(s)) return false;
    return here - (uintptr_t)s->base - cc__stack_guard_size(s) < SMALL_STACK;
}

/* ---- libbacktrace ---- */

#ifdef CC_BACKTRACE
/* The build extracts these functions from the archive and renames them, so that a program may have its own
 * libbacktrace. */
#define backtrace_create_state cc__backtrace_create_state
#define backtrace_pcinfo cc__backtrace_pcinfo
#define backtrace_syminfo cc__backtrace_syminfo
#include <backtrace.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static struct backtrace_state *state;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic bool created; /* or it was tried */

struct found {
    struct symbol *out;
    unsigned count, max;
};

static void ignore_error(void *data, const char *message, int error) {
    (void)data, (void)message, (void)error; /* unknown fields stay empty */
}

/* libbacktrace opens files by this. Under valgrind the separate debug files of system libraries would take seconds to
 * read; their symbol tables remain. */
__attribute__((used)) int cc__symbol_open(const char *path, int flags);
int cc__symbol_open(const char *path, int flags) {
    static const char apart[] = "/usr/lib/debug/";
    if (cc__san_on_valgrind() && strncmp(path, apart, sizeof apart - 1) == 0) {
        errno = ENOENT;
        return -1;
    }
    return open(path, flags);
}

/* The source tree of this library as in debug information: this file's path up to its room. */
static char our_tree[256];

static int take_tree(void *data, uintptr_t pc, const char *file, int line, const char *function) {
    (void)data, (void)pc, (void)line, (void)function;
    const char *end = file != NULL ? strstr(file, "inspect/linux/symbol.c") : NULL;
    if (end != NULL && (size_t)(end - file) < sizeof our_tree) copy_text(our_tree, (size_t)(end - file) + 1, file);
    return 1;
}

/* ---- the modules that it knows ---- */

enum { MODULES = 512 }; /* with more of them all are taken for known */

static struct module modules[MODULES];
static size_t module_count;

static bool is_known(const struct module *module) {
    for (size_t i = 0; i < module_count && i < MODULES; i++)
        if (modules[i].begin == module->begin) return modules[i].id == module->id;
    return module_count > MODULES;
}

static void *read_modules(void *arg) {
    cc__san_ignore_writes(true);
    module_count = cc__modules(modules, MODULES);
    cc__modules_begin();
    struct backtrace_state *made = backtrace_create_state(NULL, 1, ignore_error, NULL);
    if (made != NULL) (void)backtrace_pcinfo(made, (uintptr_t)read_modules, take_tree, ignore_error, NULL);
    cc__modules_end();
    cc__san_ignore_writes(false);
    state = made;
    return arg;
}

/* On a thread of its own, with signals blocked; here, if there is none. */
static void create_state(void) {
    pthread_t thread;
    if (cc__thread_start_deaf(&thread, read_modules, NULL) == 0)
        cc__thread_join(thread);
    else
        (void)read_modules(NULL);
    cc__set(&created, true);
}

/* It opens its files once, up to three at a time: what it could not open would stay unknown for ever. */
static bool lacks_descriptors(void) {
    int ends[2][2], n = 0;
    while (n < 2 && pipe2(ends[n], O_CLOEXEC) == 0) n++;
    bool lacks = n < 2 && (cc__errno_get() == EMFILE || cc__errno_get() == ENFILE);
    for (int i = 0; i < 2 * n; i++) (void)close(ends[i / 2][i % 2]);
    return lacks;
}

static bool in_our_tree(const char *file) {
    return our_tree[0] != '\0' && strncmp(file, our_tree, strlen(our_tree)) == 0;
}

static int take_line(void *data, uintptr_t pc, const char *file, int line, const char *function) {
    struct found *found = data;
    (void)pc;
    if (function == NULL && file == NULL) return 0;
    if (found->count == found->max) { /* full: the outermost one replaces the last */
        if (found->max == 1) return 1;
        memset(&found->out[--found->count], 0, sizeof *found->out);
    }
    struct symbol *symbol = &found->out[found->count++];
    if (function != NULL) copy_text(symbol->function, sizeof symbol->function, function);
    if (file != NULL && line > 0) {
        copy_text(symbol->file, sizeof symbol->file, last_component(file));
        symbol->ours = in_our_tree(file);
        symbol->line = (unsigned)line;
    }
    return 0;
}

static void take_name(void *data, uintptr_t pc, const char *name, uintptr_t value, uintptr_t size) {
    struct symbol *symbol = data;
    (void)size;
    if (name == NULL) return;
    if (symbol->function[0] == '\0') copy_text(symbol->function, sizeof symbol->function, name);
    if (pc >= value) symbol->function_offset = pc + 1 - value;
}

/* The entries of `out` are empty; returns how many are filled. module: NULL if there is none. */
static unsigned look_up(uintptr_t pc, const struct module *module, struct symbol *out, unsigned max) {
    struct found found = {out, 0, max};
    pthread_once(&once, create_state);
    if (state == NULL || (module != NULL && !is_known(module))) return 0;
    /* libbacktrace orders threads by atomics that the race detector does not see. */
    cc__san_ignore_writes(true);
    (void)backtrace_pcinfo(state, pc, take_line, ignore_error, &found);
    if (found.count == 1 &&
        out[0].function[0] == '\0') { /* assembly without line information: these lines are a neighbour's */
        memset(&out[0], 0, sizeof out[0]);
        found.count = 0;
    }
    if (found.count == 0 || (out[0].line == 0 && found.count == 1))
        (void)backtrace_syminfo(state, pc, take_name, ignore_error, out);
    cc__san_ignore_writes(false);
    if (found.count == 0 && out[0].function[0] != '\0') found.count = 1;
    return found.count;
}

struct lookup {
    uintptr_t pc;
    const struct module *module;
    struct symbol *out;
    unsigned max, count;
};

static void *look_up_there(void *arg) {
    struct lookup *l = arg;
    l->count = look_up(l->pc, l->module, l->out, l->max);
    return NULL;
}

/* The functions of a file are read when the first of them is asked for, by a function that calls itself for each block
 * inside another: on a thread of its own, if the stack is small. 0: also if that cannot be created, or descriptors are
 * lacking; the next call tries again. */
static unsigned ask_debug_information(uintptr_t pc, const struct module *module, struct symbol *out, unsigned max) {
    struct lookup lookup = {pc, module, out, max, 0};
    pthread_t thread;
    if (!cc__get(&created) && lacks_descriptors()) return 0;
    if (!stack_is_small()) return look_up(pc, module, out, max);
    if (cc__thread_start_deaf(&thread, look_up_there, &lookup) == 0) cc__thread_join(thread);
    return lookup.count;
}
#else
#define ask_debug_information(pc, module, out, max) 0
#endif

/* ---- names of C++ ---- */

static void demangle(struct symbol *symbol) {
    char mangled[sizeof symbol->function];
    if (strncmp(symbol->function, "_Z", 2) != 0 || stack_is_small()) return;
    copy_text(mangled, sizeof mangled, symbol->function);
    cc__cxx_demangle(mangled, symbol->function, sizeof symbol->function);
}

/* ---- lookup ---- */

unsigned cc__symbol_find_inlined(const void *return_address, struct symbol *out, unsigned max) {
    CC_KEEP_ERRNO;
    uintptr_t pc = (uintptr_t)return_address - 1; /* within the call instruction */
    struct module module;
    char name[sizeof out->module] = "";
    memset(out, 0, max * sizeof *out);
    bool has_module = return_address != NULL && cc__module_of(pc, &module, name, sizeof name);
    unsigned count = return_address != NULL ? ask_debug_information(pc, has_module ? &module : NULL, out, max) : 0;
    if (count == 0) count = 1;
    for (unsigned i = 0; has_module && i < count; i++) {
        memcpy(out[i].module, name, sizeof name);
        out[i].offset = (uintptr_t)return_address - module.begin;
    }
    if (has_module && out[0].function[0] == '\0') {
        uintptr_t function = cc__module_function(pc, out[0].function, sizeof out[0].function);
        if (function != 0) out[0].function_offset = (uintptr_t)return_address - function;
    }
    if (out[0].file[0] == '\0') out[0].ours = strncmp(out[0].function, "cc_", 3) == 0;
    if (strncmp(out[0].function, "cc__", 4) == 0) out[0].ours = true; /* assembly: its path has another form */
    for (unsigned i = 0; i < count; i++) demangle(&out[i]);
    return count;
}

void cc__symbol_find(const void *return_address, struct symbol *out) {
    (void)cc__symbol_find_inlined(return_address, out, 1);
}

/* Drops outermost frames: the callers of a task's guard, which are the scheduler and perhaps the C library; in other
 * stacks, the frames that are ours. */
unsigned cc__symbol_without_own(const void *const *frames, unsigned count) {
    struct symbol symbol;
    bool run = false;
    for (unsigned i = count; i-- > 1;) {
        cc__symbol_find(frames[i], &symbol);
        run = run || strncmp(symbol.function, "cc__run_", 8) == 0;
        if (run && strcmp(symbol.function, "cc__guard") == 0) return i;
    }
    unsigned left = count;
    while (left > 0 && (cc__symbol_find(frames[left - 1], &symbol), symbol.ours)) left--;
    return left > 0 ? left : count;
}

void cc__symbol_text(const void *return_address, char *text, size_t size) {
    enum { DEPTH = 3 };
    struct symbol found[DEPTH];
    unsigned count = cc__symbol_find_inlined(return_address, found, DEPTH);
    const struct symbol *s = &found[0];
    size_t used = 0;
    if (s->function[0] == '\0' && s->module[0] == '\0') {
        snprintf(text, size, "%p", return_address);
        return;
    }
    if (s->function[0] == '\0') {
        snprintf(text, size, "%s+%#zx", s->module, s->offset);
        return;
    }
    if (s->line == 0) {
        snprintf(text, size, "%s+%#zx (%s+%#zx)", s->function, s->function_offset, s->module, s->offset);
        return;
    }
    for (unsigned i = 0; i < count && used < size; i++) {
        int n = snprintf(text + used, size - used, "%s%s (%s:%u)", i > 0 ? " in " : "", found[i].function,
                         found[i].file, found[i].line);
        if (n < 0) break;
        used += (size_t)n;
    }
}
