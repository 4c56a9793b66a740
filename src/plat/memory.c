/* memory.c - the list of mappings, and which of their pages are there. */
#include "plat/memory.h"

#include "plat/error.h"
#include "plat/vm.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct visit {
    uint64_t left;
    void (*fn)(void *arg, uintptr_t low, uintptr_t high);
    void *arg;
};

/* The resident parts of one mapping. */
static bool visit_mapping(struct visit *v, uintptr_t low, uintptr_t high) {
    enum { PAGES = 1024 };
    unsigned char there[PAGES];
    uintptr_t page = cc__vm_page(), begin = 0;
    for (uintptr_t at = low; at < high;) {
        uintptr_t n = (high - at) / page < PAGES ? (high - at) / page : PAGES;
        if (mincore((void *)at, n * page, there) != 0) memset(there, 0, n); /* gone meanwhile */
        for (uintptr_t i = 0; i < n; i++, at += page) {
            if (there[i] & 1) {
                if (begin == 0) begin = at;
                if (v->left < page) return false;
                v->left -= page;
            } else if (begin != 0) {
                v->fn(v->arg, begin, at);
                begin = 0;
            }
        }
    }
    if (begin != 0) v->fn(v->arg, begin, high);
    return true;
}

/* "low-high rw-p ..." */
static bool visit_line(struct visit *v, const char *line) {
    unsigned long low, high;
    char mode[5];
    if (sscanf(line, "%lx-%lx %4s", &low, &high, mode) != 3 || mode[0] != 'r' || mode[1] != 'w') return true;
    if (strstr(line, "/dev/") != NULL) return true; /* devices are no memory */
    return visit_mapping(v, low, high);
}

bool cc__memory_each(uint64_t limit, void (*fn)(void *arg, uintptr_t low, uintptr_t high), void *arg) {
    struct visit v = {limit, fn, arg};
    int saved = cc__errno_get();
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0;
    char text[4096];
    size_t len = 0;
    while (good) {
        ssize_t n = read(fd, text + len, sizeof text - 1 - len);
        if (n <= 0) break;
        len += (size_t)n;
        text[len] = '\0';
        char *at = text;
        for (char *end; good && (end = strchr(at, '\n')) != NULL; at = end + 1) {
            *end = '\0';
            good = visit_line(&v, at);
        }
        len -= (size_t)(at - text);
        memmove(text, at, len);
    }
    if (fd >= 0) close(fd);
    cc__errno_set(saved);
    return good;
}
