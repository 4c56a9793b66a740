/* vm.c - address space. */
#include "os/vm.h"

#include "base/error.h"
#include "base/fatal.h"
#include "base/san.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

#ifndef SYS_process_madvise
#define SYS_process_madvise 440 /* on every architecture */
#endif
#define SELF (-10000) /* PIDFD_SELF_THREAD: no descriptor is needed */

size_t cc__vm_page_size;
static bool guard_free;
static _Atomic size_t guards, guards_max; /* by mprotect; the limit is 0 until it is needed */
static bool many;                         /* the system has advice for many ranges at once */

_Static_assert(sizeof(struct vm_range) == sizeof(struct iovec) &&
                   offsetof(struct vm_range, at) == offsetof(struct iovec, iov_base) &&
                   offsetof(struct vm_range, size) == offsetof(struct iovec, iov_len),
               "the system reads our ranges");

/* One system call for all of them: n - 1 calls less, and one TLB flush. For any advice about the process itself: Linux
 * 6.14. */
static bool advise_all(const struct vm_range *ranges, size_t n, int advice) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++) total += ranges[i].size;
    return syscall(SYS_process_madvise, SELF, ranges, n, advice, 0) == (long)total;
}

/* Some systems accept advice that they do not know. A guard works if its page cannot be populated, and another one
 * can: the kernel says so without a fault here. */
__attribute__((unused)) static void try_guard_advice(void) {
    size_t page = cc__vm_page();
    char *p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    struct vm_range ranges[2] = {{p, page}, {p + page, page}};
    many = !cc__san_on_valgrind() && advise_all(ranges, 2, MADV_GUARD_INSTALL); /* Valgrind does not know the call */
    guard_free = (many || madvise(p, page, MADV_GUARD_INSTALL) == 0) && madvise(p, page, MADV_POPULATE_READ) == -1 &&
                 cc__errno_get() == EFAULT && madvise(p + 2 * page, page, MADV_POPULATE_READ) == 0;
    many = many && guard_free;
    munmap(p, 3 * page);
}

/* Each guard by mprotect splits a mapping: it takes two more of vm.max_map_count. Guards get three quarters at most. */
static size_t most_guards(void) {
    char text[24] = "";
    if (guards_max != 0) return guards_max;
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0) close(fd);
    unsigned long mappings = n > 0 ? strtoul(text, NULL, 10) : 0;
    guards_max = (mappings > 0 ? mappings : 65530) / 4 * 3 / 2;
    return guards_max;
}

void cc__vm_init(void) {
    CC_KEEP_ERRNO;
    cc__vm_page_size = (size_t)sysconf(_SC_PAGESIZE);
    guard_free = many = false;
#ifndef CC_ASAN /* LeakSanitizer reads every stack, and skips only what the list of mappings marks as unreadable */
    try_guard_advice();
#endif
    guards = guards_max = 0;
}

bool cc__vm_guard_is_free(void) {
    return guard_free;
}

size_t cc__vm_guards_max(void) {
    return guard_free ? SIZE_MAX : most_guards();
}

void *cc__vm_reserve(size_t size) {
    CC_KEEP_ERRNO;
    cc__san_ignore_writes(true); /* the race detector treats a mapping as a write by the calling thread */
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cc__san_ignore_writes(false);
    if (p == MAP_FAILED) return NULL;
    /* A stack that touches one page must not cost 2 MiB. Fails without huge pages, and then is not needed. */
    (void)madvise(p, size, MADV_NOHUGEPAGE);
    return p;
}

/* The system merges adjacent mappings. To unmap a part takes one more of vm.max_map_count: if there is none, the range
 * stays, without its memory. */
void cc__vm_release(void *p, size_t size) {
    CC_KEEP_ERRNO;
    if (munmap(p, size) == 0) return;
    if (cc__errno_get() != ENOMEM)
        cc__fatal("munmap of a range of %zu bytes failed with error %d", size, cc__errno_get());
    (void)madvise(p, size, MADV_DONTNEED);
}

/* Locked memory (mlockall) refuses the advice. */
bool cc__vm_guard(void *p, size_t size) {
    CC_KEEP_ERRNO;
    if (guard_free && madvise(p, size, MADV_GUARD_INSTALL) == 0) return true;
    if (guards >= most_guards() || mprotect(p, size, PROT_NONE) != 0) return false;
    guards++;
    return true;
}

void cc__vm_populate(void *p, size_t size) {
    CC_KEEP_ERRNO;
    (void)madvise(p, size, MADV_POPULATE_WRITE); /* Linux 5.14; without it each page faults */
}

bool cc__vm_guard_all(const struct vm_range *ranges, size_t n) {
    CC_KEEP_ERRNO;
    if (many && advise_all(ranges, n, MADV_GUARD_INSTALL)) return true;
    bool ok = true;
    for (size_t i = 0; i < n; i++) ok = cc__vm_guard(ranges[i].at, ranges[i].size) && ok;
    return ok;
}

void cc__vm_populate_all(const struct vm_range *ranges, size_t n) {
    CC_KEEP_ERRNO;
    if (many) (void)advise_all(ranges, n, MADV_POPULATE_WRITE);
}

void cc__vm_discard_all(const struct vm_range *ranges, size_t n) {
    CC_KEEP_ERRNO;
    bool done = many && advise_all(ranges, n, MADV_DONTNEED);
    for (size_t i = 0; !done && i < n; i++)
        (void)madvise(ranges[i].at, ranges[i].size, MADV_DONTNEED); /* advice: a refusal only costs memory */
}

size_t cc__vm_touched(const void *p, size_t size) {
    CC_KEEP_ERRNO;
    unsigned char pages[1024];
    size_t step = sizeof pages * cc__vm_page(), found = 0;
    for (size_t at = 0; at < size && found == 0; at += step) {
        size_t here = size - at < step ? size - at : step;
        if (mincore((char *)(uintptr_t)p + at, here, pages) != 0) break;
        for (size_t i = 0; i < here / cc__vm_page() && found == 0; i++)
            if (pages[i] & 1) found = size - at - i * cc__vm_page();
    }
    return found;
}
