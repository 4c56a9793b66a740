/* cxx.c - access to the C++ runtime, if it is loaded; see cxx.h. */
#include "fiber/cxx.h"

#include "base/mem.h"
#include "base/san.h"

#include <ccc/cc_cxx.h>

#include <stdio.h>
#include <string.h>
#include <unwind.h>

struct cxx_globals cc__cxx_none;

/* Declared here, because there is no C header. */
__attribute__((weak)) void *__cxa_get_globals(void);
__attribute__((weak)) void *__cxa_begin_catch(void *exception);
__attribute__((weak)) void __cxa_end_catch(void);
__attribute__((weak)) void *__cxa_current_exception_type(void);
__attribute__((weak)) char *__cxa_demangle(const char *name, char *buffer, size_t *size, int *status);
__attribute__((weak)) int __gxx_personality_v0(int version, int actions, uint64_t language, void *exception,
                                               void *context);
__attribute__((weak)) extern const char _ZTISt9exception[]; /* typeid(std::exception) */

static CCCxxRuntime runtime = {
    .get_globals = __cxa_get_globals,
    .begin_catch = __cxa_begin_catch,
    .end_catch = __cxa_end_catch,
    .current_type = __cxa_current_exception_type,
    .demangle = __cxa_demangle,
    .personality = __gxx_personality_v0,
};

/* For the table in arch/guard.S, by name. */
__attribute__((used)) const void *cc__cxx_std_exception = _ZTISt9exception;

void cc_cxx_attach(const CCCxxRuntime *found) {
    if (runtime.get_globals != NULL) return; /* one per process */
    cc__cxx_std_exception = found->std_exception;
    runtime = *found;
    /* A thread that runs C++ code synchronised with the load of that code, so it sees this store. */
    cc__set(&cc__cxx_none.caught, &cc__cxx_none);
}

/* Never inlined, like all functions that read thread-local state. */
CC_NOINLINE struct cxx_globals *cc__cxx_here(void) {
    return runtime.get_globals != NULL ? runtime.get_globals() : &cc__cxx_none;
}

CC_NOINLINE CC_NO_TSAN struct cxx_state cc__cxx_state(struct cxx_globals *g) {
    return (struct cxx_state){cc__get(&g->caught), cc__get(&g->uncaught)};
}

CC_NOINLINE CC_NO_TSAN void cc__cxx_put(struct cxx_globals *g, struct cxx_state state) {
    cc__set(&g->caught, state.caught);
    cc__set(&g->uncaught, state.uncaught);
}

#ifdef CC_TSAN
CC_NOINLINE CC_NO_TSAN bool cc__cxx_busy(struct cxx_globals *g) {
    return ((uintptr_t)cc__get(&g->caught) | cc__get(&g->uncaught)) != 0;
}
#endif

void cc__cxx_abandon(struct cxx_state before) {
    for (;;) {
        struct cxx_globals *g = cc__cxx_here(); /* again each time: a destructor may switch */
        if (g == &cc__cxx_none) return;
        struct cxx_state now = cc__cxx_state(g);
        if (now.caught == before.caught || now.caught == NULL) {
            cc__cxx_put(g, (struct cxx_state){now.caught, before.uncaught});
            return;
        }
        runtime.end_catch();
    }
}

/* ---- what an exception says ---- */

/* The exception class begins with GNUCC++ or CLNGC++; the last byte does not matter here. */
static bool is_cxx(const struct _Unwind_Exception *e) {
    uint64_t language = (uint64_t)e->exception_class >> 8;
    return language == UINT64_C(0x474e5543432b2b) || language == UINT64_C(0x434c4e47432b2b);
}

void cc__cxx_demangle(const char *mangled, char *name, size_t size) {
    int status = -1;
    char *readable = runtime.demangle != NULL ? runtime.demangle(mangled, NULL, NULL, &status) : NULL;
    (void)snprintf(name, size, "%s", status == 0 && readable != NULL ? readable : mangled);
    cc__mem_free_libc(readable);
}

/* The name in a std::type_info: by the ABI, it follows the vtable pointer. A star marks names of local types. */
static void type_name(const void *type, char *name, size_t size) {
    const char *mangled;
    memcpy(&mangled, (const char *)type + sizeof(void *), sizeof mangled);
    cc__cxx_demangle(mangled + (mangled[0] == '*'), name, size);
}

/* Calls what() of a std::exception: the third vtable entry, after two destructors. */
static const char *what(void *exception) {
    const char *(*const *table)(void *);
    memcpy(&table, exception, sizeof table);
    return table[2](exception);
}

void cc__cxx_consume(void *unwind_exception, void *context, char *text, size_t size) {
    struct _Unwind_Exception *e = unwind_exception;
    char name[128] = "";
    if (!is_cxx(e) || runtime.begin_catch == NULL || runtime.personality == NULL) {
        (void)snprintf(text, size, "uncaught exception");
        if (e->exception_cleanup != NULL) e->exception_cleanup(_URC_FOREIGN_EXCEPTION_CAUGHT, e);
        return;
    }
    /* The C++ runtime checks whether it is a std::exception, and returns the address of that base in the object. */
    bool standard = cc__cxx_std_exception != NULL &&
                    runtime.personality(1, _UA_SEARCH_PHASE, e->exception_class, e, context) == _URC_HANDLER_FOUND;
    void *object = runtime.begin_catch(e);
    const void *type = runtime.current_type();
    if (type != NULL) type_name(type, name, sizeof name);
    if (standard)
        (void)snprintf(text, size, "uncaught exception %s: %s", name, what(object));
    else
        (void)snprintf(text, size, "uncaught exception %s", name);
    runtime.end_catch();
}
