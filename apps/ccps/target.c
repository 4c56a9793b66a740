/* target.c - reads processes and core files. */
#include "target.h"

#include "base/san.h"
#include "base/utf8.h"
#include "os/safe_copy.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* TARGET-1 */
enum { NOTES_MAX = 1 << 26, THREADS_MAX = 1 << 16, MAPPINGS_MAX = 1 << 20, SEGMENTS_MAX = 1 << 22 };

/* What a core file has of the memory. */
struct segment {
    uint64_t start, size, offset;
};

struct thread {
    int tid;
    int signal; /* that it was about to get; 0: none */
    bool known;
    struct registers regs;
};

static struct {
    int pid, core;
    char name[256];
    struct mapping *mappings;
    struct segment *segments;
    struct thread *threads;
    size_t mapping_count, segment_count, thread_count;
    bool stopped, went_on;
    unsigned reads;      /* since it was stopped */
    uint64_t stop_until; /* ns */
} target = {.core = -1};

_Noreturn void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(1); /* a stopped process continues when its tracer ends */
}

void *grow(void *old, size_t count, size_t size) {
    void *memory = reallocarray(old, count, size);
    if (memory == NULL && count != 0) fail("out of memory");
    return memory;
}

const char *target_name(void) {
    return target.name;
}

int target_pid(void) {
    return target.pid;
}

const struct mapping *target_mappings(size_t *count) {
    *count = target.mapping_count;
    return target.mappings;
}

/* Makes room for one more: arrays double. */
#define add(array, count)                                                                                     \
    (((count) & ((count)-1)) == 0 ? (void)((array) = grow(array, (count) ? 2 * (count) : 1, sizeof *(array))) \
                                  : (void)0,                                                                  \
     &(array)[(count)++])

static void add_mapping(uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    if (target.mapping_count == MAPPINGS_MAX) return;
    struct mapping *m = add(target.mappings, target.mapping_count);
    char *copy = strdup(path);
    if (copy == NULL) fail("out of memory");
    *m = (struct mapping){start, end, offset, copy, -1};
}

/* ---- registers as ptrace and core files have them ---- */

static void unpack(const elf_gregset_t set, struct registers *regs) {
    const uintptr_t *words = (const uintptr_t *)(const void *)set;
    *regs = (struct registers){0};
#if defined(__x86_64__) /* by DWARF's numbers: the places in user_regs_struct */
    static const unsigned char place[] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16};
    for (unsigned i = 0; i < sizeof place && i < CC_REGISTERS; i++) cc__registers_set(regs, i, words[place[i]]);
    regs->pc = words[16];
#elif defined(__aarch64__)
    for (unsigned i = 0; i < 32 && i < CC_REGISTERS; i++) cc__registers_set(regs, i, words[i]);
    regs->pc = words[32];
#elif defined(__riscv)
    for (unsigned i = 1; i < 32 && i < CC_REGISTERS; i++) cc__registers_set(regs, i, words[i]);
    regs->pc = words[0];
#else
    (void)words;
#endif
}

/* ---- a process ---- */

static void name_process(void) {
    char path[64], comm[64] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", target.pid);
    FILE *file = fopen(path, "re");
    if (file != NULL && fgets(comm, sizeof comm, file) != NULL) comm[strcspn(comm, "\n")] = '\0';
    if (file != NULL) fclose(file);
    for (char *c = comm; *c != '\0'; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    snprintf(target.name, sizeof target.name, "process %d (%s)", target.pid, comm);
}

static void refuse(int error) {
    if (error == ESRCH || error == ENOENT) fail("process %d: there is no such process", target.pid);
    if (error == EPERM || error == EACCES)
        fail("process %d: not permitted: it is another user's, or the system restricts ptrace (sysctl "
             "kernel.yama.ptrace_scope; a container needs the capability SYS_PTRACE)",
             target.pid);
    fail("process %d: %s", target.pid, strerror(error));
}

void target_open_process(int pid) {
    char path[64], line[4096 + 128], byte;
    target.pid = pid;
    name_process();
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) refuse(errno);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long start, end, offset;
        int at = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %n", &start, &end, &offset, &at) >= 3 && at > 0)
            add_mapping(start, end, offset, line + at);
    }
    int error = ferror(file) ? errno : 0;
    fclose(file);
    if (error != 0) refuse(error);
    if (target.mapping_count == 0) fail("process %d has no memory: it has ended, or is a part of the kernel", pid);
    if (!target_read(&byte, target.mappings[0].start, 1) && errno != EFAULT && errno != EIO) refuse(errno);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Every long operation reads memory: so the limit on how long the process is stopped is enforced here. */
static void heed_time(void) {
    if (!target.stopped || target.reads++ % 64 != 0 || now_ns() < target.stop_until) return;
    target_continue();
    target.went_on = true;
}

static bool read_process(void *to, uint64_t from, size_t n) {
    heed_time();
    struct iovec local = {to, n}, remote = {(void *)(uintptr_t)from, n};
    return process_vm_readv(target.pid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

/* A thread that is in the kernel, and cannot be interrupted there, stops later or never. */
static bool await_stop(int tid, int *status) {
    struct timespec pause = {0, 20000};
    pid_t pid;
    while ((pid = waitpid(tid, status, __WALL | WNOHANG)) == 0 && now_ns() < target.stop_until) nanosleep(&pause, NULL);
    return pid == tid && WIFSTOPPED(*status);
}

static bool stop_thread(int tid) {
    struct thread *t;
    elf_gregset_t set;
    struct iovec io = {&set, sizeof set};
    int status;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
        if (errno == EPERM && target.thread_count == 0 && tid == target.pid) refuse(errno); /* else: it is ending */
        return false;
    }
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 || !await_stop(tid, &status)) return false;
    t = add(target.threads, target.thread_count);
    *t = (struct thread){.tid = tid};
    if (status >> 16 != PTRACE_EVENT_STOP) t->signal = WSTOPSIG(status); /* one came first: it is delivered later */
    t->known = ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) == 0;
    if (t->known) unpack(set, &t->regs);
    return true;
}

static struct thread *find_thread(int tid) {
    for (size_t i = 0; i < target.thread_count; i++)
        if (target.threads[i].tid == tid) return &target.threads[i];
    return NULL;
}

/* Threads that are started meanwhile are found by the next round. */
void target_stop(unsigned ms) {
    char path[64];
    bool more = target.pid != 0;
    target.stop_until = now_ns() + ms * UINT64_C(1000000);
    target.stopped = more;
    snprintf(path, sizeof path, "/proc/%d/task", target.pid);
    while (more) {
        more = false;
        DIR *folder = opendir(path);
        if (folder == NULL) refuse(errno);
        for (struct dirent *e; (e = readdir(folder)) != NULL;) {
            int tid = atoi(e->d_name);
            if (tid > 0 && target.thread_count < THREADS_MAX && find_thread(tid) == NULL) more |= stop_thread(tid);
        }
        closedir(folder);
    }
}

void target_continue(void) {
    for (size_t i = 0; target.stopped && i < target.thread_count; i++)
        (void)ptrace(PTRACE_DETACH, target.threads[i].tid, NULL, (void *)(intptr_t)target.threads[i].signal);
    target.stopped = false;
}

bool target_went_on(void) {
    return target.went_on;
}

/* What the system shows of a thread that waits in the kernel. */
static bool registers_in_kernel(int tid, struct registers *regs) {
    char path[64], text[512] = "";
    unsigned long sp = 0, pc = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", target.pid, tid);
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    if (fgets(text, sizeof text, file) == NULL) text[0] = '\0';
    fclose(file);
    if (sscanf(text, "%*d %*s %*s %*s %*s %*s %*s %lx %lx", &sp, &pc) != 2 && sscanf(text, "-1 %lx %lx", &sp, &pc) != 2)
        return false;
    *regs = cc__registers_at(pc, sp);
    return pc != 0;
}

bool target_registers(int tid, struct registers *regs) {
    const struct thread *t = find_thread(tid);
    if (t != NULL && t->known) *regs = t->regs;
    return t != NULL ? t->known : target.pid != 0 && registers_in_kernel(tid, regs);
}

/* ---- a core file ---- */

static bool read_file(int fd, void *to, uint64_t offset, size_t n) {
    size_t done = 0;
    while (done < n && offset <= INT64_MAX - n) {
        ssize_t got = pread(fd, (char *)to + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return done == n;
}

static void take_files(const char *desc, size_t size) {
    uint64_t count, page, triple[3];
    if (size < 2 * sizeof count) return;
    memcpy(&count, desc, sizeof count);
    memcpy(&page, desc + sizeof count, sizeof page);
    if (count > (size - 2 * sizeof count) / sizeof triple) return;
    const char *name = desc + 2 * sizeof count + count * sizeof triple, *end = desc + size;
    for (uint64_t i = 0; i < count && name < end && memchr(name, '\0', (size_t)(end - name)) != NULL; i++) {
        memcpy(triple, desc + 2 * sizeof count + i * sizeof triple, sizeof triple);
        if (triple[0] < triple[1]) add_mapping(triple[0], triple[1], triple[2] * page, name);
        name += strlen(name) + 1;
    }
}

static void take_note(unsigned type, const char *desc, size_t size, const char *path) {
    if (type == NT_PRSTATUS && size >= sizeof(struct elf_prstatus) && target.thread_count < THREADS_MAX) {
        struct elf_prstatus status;
        memcpy(&status, desc, sizeof status);
        struct thread *t = add(target.threads, target.thread_count);
        *t = (struct thread){.tid = status.pr_pid, .known = true};
        unpack(status.pr_reg, &t->regs);
    } else if (type == NT_PRPSINFO && size >= sizeof(struct elf_prpsinfo)) {
        struct elf_prpsinfo info;
        memcpy(&info, desc, sizeof info);
        info.pr_fname[sizeof info.pr_fname - 1] = '\0';
        for (char *c = info.pr_fname; *c != '\0'; c++)
            if (*c < ' ' || *c > '~') *c = '?';
        snprintf(target.name, sizeof target.name, "%.200s (%s)", path, info.pr_fname);
    } else if (type == NT_FILE) {
        take_files(desc, size);
    }
}

static void read_notes(const Elf64_Phdr *header, const char *path) {
    size_t size = header->p_filesz, at = 0;
    Elf64_Nhdr note;
    if (size > NOTES_MAX) return;
    char *notes = grow(NULL, size + 1, 1);
    if (!read_file(target.core, notes, header->p_offset, size)) size = 0; /* cut short */
    while (size - at >= sizeof note) {
        memcpy(&note, notes + at, sizeof note);
        size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3, desc = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        at += sizeof note;
        if (name > size - at || note.n_descsz > size - at - name) break;
        take_note(note.n_type, notes + at + name, note.n_descsz, path);
        if (desc > size - at - name) break;
        at += name + desc;
    }
    free(notes);
}

static int by_start(const void *a, const void *b) {
    const struct segment *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* More than fit into e_phnum: the first section header has the number. */
static uint64_t count_headers(const Elf64_Ehdr *elf) {
    Elf64_Shdr first;
    if (elf->e_phnum != PN_XNUM) return elf->e_phnum;
    return read_file(target.core, &first, elf->e_shoff, sizeof first) ? first.sh_info : 0;
}

void target_open_core(const char *path) {
    Elf64_Ehdr elf;
    Elf64_Phdr header;
    static const uint16_t machine =
#if defined(__x86_64__)
        EM_X86_64;
#elif defined(__aarch64__)
        EM_AARCH64;
#else
        EM_RISCV;
#endif
    target.core = open(path, O_RDONLY | O_CLOEXEC);
    if (target.core < 0) fail("%s: %s", path, strerror(errno));
    snprintf(target.name, sizeof target.name, "%.200s", path);
    if (!read_file(target.core, &elf, 0, sizeof elf) || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
        elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_type != ET_CORE || elf.e_phentsize != sizeof header)
        fail("%s is no core file, and no number of a process", path);
    if (elf.e_machine != machine) fail("%s is the core file of another kind of CPU", path);
    uint64_t count = count_headers(&elf);
    for (uint64_t i = 0; i < count && i < SEGMENTS_MAX; i++) {
        if (!read_file(target.core, &header, elf.e_phoff + i * sizeof header, sizeof header)) break;
        if (header.p_type == PT_NOTE) read_notes(&header, path);
        if (header.p_type != PT_LOAD || header.p_filesz == 0 || header.p_vaddr > UINT64_MAX - header.p_filesz) continue;
        *add(target.segments, target.segment_count) =
            (struct segment){header.p_vaddr, header.p_filesz, header.p_offset};
    }
    if (target.segment_count == 0) fail("%s has no memory in it", path);
    qsort(target.segments, target.segment_count, sizeof *target.segments, by_start);
}

static const struct segment *find_segment(uint64_t at) {
    size_t low = 0, high = target.segment_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (target.segments[middle].start <= at)
            low = middle + 1;
        else
            high = middle;
    }
    const struct segment *s = low > 0 ? &target.segments[low - 1] : NULL;
    return s != NULL && at - s->start < s->size ? s : NULL;
}

/* A damaged file may name any path: to open a device could have effects. */
int target_open_file(const char *path) {
    struct stat file;
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode)) return -2;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd >= 0 ? fd : -2;
}

static struct mapping *find_mapping(uint64_t at) {
    for (size_t i = 0; i < target.mapping_count; i++) {
        struct mapping *m = &target.mappings[i];
        if (at < m->start || at >= m->end) continue;
        if (m->fd == -1) m->fd = target_open_file(m->path);
        return m->fd >= 0 ? m : NULL;
    }
    return NULL;
}

/* What the system did not write into the core file was not changed since it was read from a file. */
static bool read_core(void *to, uint64_t from, size_t n) {
    for (size_t piece; n > 0; to = (char *)to + piece, from += piece, n -= piece) {
        const struct segment *s = find_segment(from);
        struct mapping *m = s == NULL ? find_mapping(from) : NULL;
        if (s == NULL && m == NULL) return false;
        uint64_t left = s != NULL ? s->size - (from - s->start) : m->end - from;
        piece = n < left ? n : (size_t)left;
        if (!(s != NULL ? read_file(target.core, to, s->offset + (from - s->start), piece)
                        : read_file(m->fd, to, m->offset + (from - m->start), piece)))
            return false;
    }
    return true;
}

/* ---- many pieces at once ---- */

/* Pieces that lie close together are one run, and are read with what is between them. */
enum { RUNS = 256, RUN_GAP = 256, RUN_MAX = 1 << 16, BATCH_MAX = 1 << 20 };

struct batch {
    struct iovec run[RUNS];
    size_t first[RUNS]; /* piece of the run; that of the next run ends it */
    size_t runs, bytes;
};

static bool joins(const struct iovec *run, const struct piece *p) {
    uint64_t start = (uintptr_t)run->iov_base, end = start + run->iov_len;
    return p->from >= end && p->from - end < RUN_GAP && p->from + p->size - start <= RUN_MAX;
}

/* Runs of the pieces from `at` on; where the pieces end that are in it. */
static size_t make_batch(struct batch *b, const struct piece *pieces, size_t at, size_t count) {
    b->runs = b->bytes = 0;
    for (; at < count; at++) {
        const struct piece *p = &pieces[at];
        if (p->from > UINT64_MAX - RUN_MAX || p->size > RUN_MAX) break;
        bool more = b->runs > 0 && joins(&b->run[b->runs - 1], p);
        size_t before = more ? b->run[b->runs - 1].iov_len : 0;
        size_t size = more ? p->from + p->size - (uintptr_t)b->run[b->runs - 1].iov_base : p->size;
        if ((!more && b->runs == RUNS) || b->bytes + size - before > BATCH_MAX) break;
        if (!more) {
            b->run[b->runs] = (struct iovec){(void *)(uintptr_t)p->from, 0};
            b->first[b->runs++] = at;
        }
        b->run[b->runs - 1].iov_len = size;
        b->bytes += size - before;
    }
    return at;
}

/* The pieces of a batch; where the first run begins that could not be read. */
static size_t read_batch(const struct batch *b, struct piece *pieces, size_t end) {
    static char memory[BATCH_MAX];
    struct iovec local = {memory, b->bytes};
    heed_time();
    ssize_t got = process_vm_readv(target.pid, &local, 1, b->run, b->runs, 0);
    size_t at = 0;
    for (size_t i = 0; i < b->runs; at += b->run[i++].iov_len) {
        size_t last = i + 1 < b->runs ? b->first[i + 1] : end;
        if (got < 0 || (size_t)got < at + b->run[i].iov_len) return b->first[i];
        for (size_t j = b->first[i]; j < last; j++) {
            memcpy(pieces[j].to, memory + at + (pieces[j].from - (uintptr_t)b->run[i].iov_base), pieces[j].size);
            pieces[j].read = true;
        }
    }
    return end;
}

void target_read_many(struct piece *pieces, size_t count) {
    static struct batch batch;
    for (size_t at = 0; at < count;) {
        size_t end = target.pid != 0 ? make_batch(&batch, pieces, at, count) : at;
        size_t done = end > at ? read_batch(&batch, pieces, end) : at;
        if (done < end || end == at) { /* on its own: not all of its run is there, or it is large, or a core file's */
            pieces[done].read = target_read(pieces[done].to, pieces[done].from, pieces[done].size);
            done++;
        }
        at = done;
    }
}

/* ---- both ---- */

bool target_read(void *to, uint64_t from, size_t n) {
    if (n == 0) return true;
    if (from > UINT64_MAX - n) return false;
    return target.pid != 0 ? read_process(to, from, n) : read_core(to, from, n);
}

uint64_t target_word(uint64_t at, unsigned size) {
    uint64_t word = 0; /* our CPUs are little endian */
    return target_read(&word, at, size) ? word : 0;
}

void target_text(uint64_t at, char *text, size_t max) {
    if (!target_read(text, at, max)) text[0] = '\0';
    text[max - 1] = '\0';
    cc__utf8_cut(text);
}

/* How the unwinder reads memory. */
bool cc__safe_copy(void *to, const void *from, size_t n) {
    return target_read(to, (uintptr_t)from, n);
}

/* For stacks of the process itself; unused here. */
void cc__san_define(void *from, size_t size) {
    (void)from, (void)size;
}
