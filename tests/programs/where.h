/* where.h - detects tools that the program runs under, to skip cases that are meaningless there. */
#ifndef CCC_TESTS_WHERE_H
#define CCC_TESTS_WHERE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_ASAN
#define UNDER_ASAN 0
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

/* Valgrind loads a library of its own into every program. */
__attribute__((unused)) static bool under_valgrind(void) {
    char line[512];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "re");
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) found = strstr(line, "vgpreload") != NULL;
    if (f != NULL) fclose(f);
    return found;
}

/* qemu shows the host's processor, whatever it emulates. */
__attribute__((unused)) static bool under_qemu(void) {
#ifdef __x86_64__
    return false;
#else
    char line[512];
    bool found = false;
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
        found = strstr(line, "GenuineIntel") != NULL || strstr(line, "AuthenticAMD") != NULL;
    if (f != NULL) fclose(f);
    return found;
#endif
}

#endif
