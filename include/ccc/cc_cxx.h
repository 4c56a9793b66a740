/* cc_cxx.h - tells the library about the C++ runtime; included by cc_base.h, with nothing to call.
 *
 * Exceptions in fibers work as in threads: a fiber may wait inside a catch block, or in a destructor that an exception
 * runs, and go on, rethrow or return on another OS thread. std::uncaught_exceptions() and std::current_exception() are
 * the fiber's own. An exception that leaves the function of a task, of cc_try or of cc_hosted_call becomes a panic
 * there (cc_panic.h), whose message holds the name of its type and, for a std::exception, what(). Destructors on the
 * way have run by then.
 *
 * For that the library uses the C++ runtime of the program, if there is one when it is loaded. C++ code that is loaded
 * later (dlopen) announces it by including any of these headers. A process has one C++ runtime.
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

/* Tells the library where they are, if it has not found them by itself. Any context; does not switch. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
void cc_cxx_attach(const CCCxxRuntime *found);

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && defined(__GNUC__) && defined(__EXCEPTIONS)

extern "C" {
/* By other names: each runtime declares its own types for these. */
void *cc_cxx_get_globals_(void) __asm__("__cxa_get_globals");
void *cc_cxx_begin_catch_(void *exception) __asm__("__cxa_begin_catch");
void cc_cxx_end_catch_(void) __asm__("__cxa_end_catch");
void *cc_cxx_current_type_(void) __asm__("__cxa_current_exception_type");
char *cc_cxx_demangle_(const char *name, char *buffer, size_t *size, int *status) __asm__("__cxa_demangle");
int cc_cxx_personality_(int version, int actions, uint64_t language, void *exception,
                        void *context) __asm__("__gxx_personality_v0");
extern const char cc_cxx_std_exception_[] __asm__("_ZTISt9exception");
}

/* When the code is loaded. */
__attribute__((constructor)) static void cc_cxx_attach_(void) {
    static const CCCxxRuntime found = {
        cc_cxx_get_globals_, cc_cxx_begin_catch_, cc_cxx_end_catch_,     cc_cxx_current_type_,
        cc_cxx_demangle_,    cc_cxx_personality_, cc_cxx_std_exception_, {}};
    cc_cxx_attach(&found);
}

#endif

#endif
