/* dispatch.c - one library, and a copy of it for each sanitizer: the dynamic linker chooses when the program starts.
 *
 * The copies are compiled from the same sources (cmake/variants.cmake). Each public function has a resolver, which asks
 * whether a sanitizer's runtime is in the process; so a call goes straight to the right copy, and what the sanitizers
 * have to be told costs nothing where there are none. docs/decisions/026-sanitizer-variants.md says why.
 *
 * A resolver runs before constructors and while other libraries are still being relocated: it calls nothing.
 */

/* DISPATCH(name) for every public function; generated. */
#define DISPATCH(name)                                                 \
    __attribute__((visibility("hidden"))) void cc__plain_##name(void); \
    __attribute__((visibility("hidden"))) void cc__tsan_##name(void);  \
    __attribute__((visibility("hidden"))) void cc__asan_##name(void);  \
    __attribute__((used)) static void (*resolve_##name(void))(void) {  \
        switch (variant()) {                                           \
        case 1:                                                        \
            return cc__tsan_##name;                                    \
        case 2:                                                        \
            return cc__asan_##name;                                    \
        default:                                                       \
            return cc__plain_##name;                                   \
        }                                                              \
    }                                                                  \
    __attribute__((visibility("default"), ifunc("resolve_" #name))) void name(void);

__attribute__((weak)) void __tsan_init(void);
__attribute__((weak)) void __asan_init(void);
__attribute__((weak)) void __lsan_register_root_region(const void *p, unsigned long size);

/* The numbers are those of CC_VARIANT. */
static inline __attribute__((always_inline)) int variant(void) {
    if (__builtin_expect(__tsan_init != 0, 0)) return 1;
    if (__builtin_expect(__asan_init != 0 || __lsan_register_root_region != 0, 0)) return 2;
    return 0;
}

int cc__variant(void);
int cc__variant(void) {
    return variant();
}

/* In place of __tsan_init in the copy's own constructors: they run in every program, and the program's own call it. */
void cc__variant_nothing(void);
void cc__variant_nothing(void) {}

#include "variant_names.h"
