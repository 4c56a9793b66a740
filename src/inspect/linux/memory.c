/* memory.c - the list of mappings, and which of their pages are used.
 *
 * The kernel's pagemap says of each page whether it is resident or swapped out, and whether it is private. Where there
 * is no pagemap, or it describes other addresses than ours (qemu), every page counts.
 */
#include "inspect/reach.h"

#include "base/attr.h"
#include "base/error.h"
#include "os/vm.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_OF_FILE (UINT64_C(1) << 61) /* or shared */

struct visit {
    int pagemap; /* -1: none */
    uint64_t left;
    void (*fn)(void *arg, uintptr_t low, uintptr_t high);
    void *arg;
};

static bool read_pages(const struct visit *v, uintptr_t at, uint64_t *pages, size_t n) {
    return v->pagemap >= 0 && pread(v->pagemap, pages, n * sizeof *pages,
                                    (off_t)(at / cc__vm_page() * sizeof *pages)) == (ssize_t)(n * sizeof *pages);
}

/* Whether it reports the page of this frame as resident. */
static bool pagemap_is_ours(const struct visit *v) {
    uint64_t page = 0;
    return read_pages(v, (uintptr_t)&page, &page, 1) && (page & PAGE_PRESENT) != 0;
}

/* A page of a shared mapping may have contents without being resident. */
static bool visit_mapping(struct visit *v, uintptr_t low, uintptr_t high, bool writable, bool shared) {
    enum { PAGES = 512 };
    uint64_t pages[PAGES];
    uintptr_t page = cc__vm_page(), begin = 0;
    for (uintptr_t at = low; at < high;) {
        uintptr_t n = (high - at) / page < PAGES ? (high - at) / page : PAGES;
        bool known = !shared && read_pages(v, at, pages, n);
        for (uintptr_t i = 0; i < n; i++, at += page) {
            bool there = !known || (pages[i] & (PAGE_PRESENT | PAGE_SWAPPED)) != 0;
            /* A read-only page holds addresses only if it was writable once: then it is private. */
            if (known && !writable) there = there && (pages[i] & PAGE_OF_FILE) == 0;
            if (there) {
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

/* Mappings of devices are not memory, with exceptions. */
static bool is_device(const char *path) {
    static const char *const memory[] = {"/dev/shm/", "/dev/zero", "/dev/hugepages/"};
    if (strncmp(path, "/dev/", 5) != 0) return false;
    for (size_t i = 0; i < array_len(memory); i++)
        if (strncmp(path, memory[i], strlen(memory[i])) == 0) return false;
    return true;
}

/* "low-high rw-p offset device inode path" */
static bool visit_line(struct visit *v, const char *line) {
    unsigned long low, high;
    char mode[5];
    int path = 0;
    if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %n", &low, &high, mode, &path) != 3 || mode[0] != 'r') return true;
    bool writable = mode[1] == 'w', shared = mode[3] == 's';
    if (path != 0 && is_device(line + path)) return true;
    if (path != 0 && strncmp(line + path, "[v", 2) == 0) return true; /* vdso, vvar, vsyscall: the kernel's */
    if (!writable && (shared || v->pagemap < 0)) return true;
    return visit_mapping(v, low, high, writable, shared);
}

bool cc__memory_each(uint64_t limit, void (*fn)(void *arg, uintptr_t low, uintptr_t high), void *arg) {
    CC_KEEP_ERRNO;
    struct visit v = {open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), limit, fn, arg};
    if (v.pagemap >= 0 && !pagemap_is_ours(&v)) {
        close(v.pagemap);
        v.pagemap = -1;
    }
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0;
    char text[4096 + 512]; /* a path may have 4096 bytes */
    size_t len = 0;
    while (good) {
        ssize_t n = read(fd, text + len, sizeof text - 1 - len);
        if (n < 0) good = false; /* unread mappings may hold anything */
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
    if (v.pagemap >= 0) close(v.pagemap);
    return good;
}
