/* cc_cxx.h - connects the library to the C++ runtime; included by cc_base.h, with nothing to call.
 *
 * Exceptions in fibers work as in threads: a fiber may wait inside a catch block, or in a destructor that runs during
 * unwinding, and continue, rethrow or return on another OS thread. std::uncaught_exceptions() and
 * std::current_exception() are per fiber. An exception that leaves the function of a task, of cc_try or of
 * cc_hosted_call becomes a panic there (cc_panic.h), whose message contains the name of its type and, for a
 * std::exception, what(). Unwinding has run all destructors by then. It may pass through the other calls that call a
 * function of the program, such as cc_once, cc_parallel_for or a receive from a pool: they clean up as after a panic.
 * (What another fiber throws for cc_parallel_for is a panic of that fiber; an OS thread lets others run all of it.)
 * C code with CC_DEFER, or another block of this library, that an exception passes through on its way to a catch block
 * has to be compiled with -fexceptions; otherwise the block does not end.
 *
 * For this the library uses the program's C++ runtime, if one is present when the library is loaded. C++ code that is
 * loaded later (dlopen) registers it by including any of these headers. A process has one C++ runtime.
 */
#ifndef CCC_CC_CXX_H
#define CCC_CC_CXX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The entry points of the Itanium C++ ABI that the library uses. */
typedef struct CCCxxRuntime {
    void *(*get_globals)(void);
    void *(*begin_catch)(void *exception);
    void (*end_catch)(void);
    void *(*current_type)(void);
    char *(*demangle)(const char *name, char *buffer, size_t *size, int *status);
    int (*personality)(int version, int actions, uint64_t language, void *exception, void *context);
    const void *std_exception; /* &typeid(std::exception) */
    const void *reserved[4];   /* NULL; see cc_base.h */
} CCCxxRuntime;

/* Registers the entry points, if the library has not found them itself. Any context; does not switch. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
void cc_cxx_attach(const CCCxxRuntime *found);

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && defined(__GNUC__) && defined(__EXCEPTIONS)

extern "C" {
/* Under private names, because each runtime declares these with its own types. */
void *cc_cxx_get_globals_(void) __asm__("__cxa_get_globals");
void *cc_cxx_begin_catch_(void *exception) __asm__("__cxa_begin_catch");
void cc_cxx_end_catch_(void) __asm__("__cxa_end_catch");
void *cc_cxx_current_type_(void) __asm__("__cxa_current_exception_type");
char *cc_cxx_demangle_(const char *name, char *buffer, size_t *size, int *status) __asm__("__cxa_demangle");
int cc_cxx_personality_(int version, int actions, uint64_t language, void *exception,
                        void *context) __asm__("__gxx_personality_v0");
extern const char cc_cxx_std_exception_[] __asm__("_ZTISt9exception");
}

/* Runs when the code is loaded. */
__attribute__((constructor)) static void cc_cxx_attach_(void) {
    static const CCCxxRuntime found = {
        cc_cxx_get_globals_, cc_cxx_begin_catch_, cc_cxx_end_catch_,     cc_cxx_current_type_,
        cc_cxx_demangle_,    cc_cxx_personality_, cc_cxx_std_exception_, {}};
    cc_cxx_attach(&found);
}

#endif

#endif
