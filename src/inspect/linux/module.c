/* module.c - see module.h. All memory of a module is accessed in callbacks of dl_iterate_phdr, which keep it loaded. */
#include "inspect/linux/module.h"

#include "base/san.h"
#include "os/clock.h"
#include "os/thread.h"
#include "sync/atomic.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* ---- forks ---- */

/* Not a lock: a function of the program that dl_iterate_phdr calls may call this library, or fork, while others wait
 * for the dynamic linker's lock. So each waits for a second at most, and what they wait for may be interrupted. */
enum { FORK = 1 << 16, WALKS = FORK - 1, PATIENCE_NS = 1000 * 1000 * 1000, NAP_NS = 50 * 1000 };
static _Atomic uint32_t in_progress; /* walks, and forks times FORK */

void cc__modules_begin(void) {
    uint64_t until = 0;
    for (uint32_t now = cc__get(&in_progress);;) {
        if (now >= FORK && (until == 0 || cc__clock_real() < until)) {
            if (until == 0) until = cc__clock_real() + PATIENCE_NS;
            cc__thread_nap(NAP_NS);
            now = cc__get(&in_progress);
        } else if (cc__cas(&in_progress, &now, now + 1)) {
            return;
        }
    }
}

void cc__modules_end(void) {
    (void)cc__sub(&in_progress, 1);
}

static void before_fork(void) {
    uint64_t until = cc__clock_real() + PATIENCE_NS;
    (void)cc__add(&in_progress, FORK);
    while ((cc__get_acquire(&in_progress) & WALKS) != 0 && cc__clock_real() < until) cc__thread_nap(NAP_NS);
}

static void after_fork(void) {
    (void)cc__sub(&in_progress, FORK);
}

static void after_fork_in_child(void) {
    cc__set(&in_progress, 0);
}

CC_AT_LOAD(watch_forks) {
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

static void walk(int (*fn)(struct dl_phdr_info *info, size_t size, void *arg), void *arg) {
    cc__modules_begin();
    (void)dl_iterate_phdr(fn, arg);
    cc__modules_end();
}

/* ---- one module ---- */

struct search {
    uintptr_t pc;
    struct module module;
    char *name;
    size_t size;
    uintptr_t function;
    bool found;
};

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) { /* FNV-1a */
    for (const unsigned char *at = bytes; n > 0; at++, n--) hash = (hash ^ *at) * UINT64_C(0x100000001b3);
    return hash;
}

static void copy_text(char *to, size_t size, const char *from) {
    size_t n = strnlen(from, size - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

static const void *at(const struct dl_phdr_info *info, uintptr_t offset) {
    return (const void *)(uintptr_t)(info->dlpi_addr + offset);
}

static bool contains(const struct dl_phdr_info *info, uintptr_t pc) {
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && pc - info->dlpi_addr - segment->p_vaddr < segment->p_memsz) return true;
    }
    return false;
}

/* By the file's name, the layout, and the notes, of which one is a hash of the contents if the linker has made it. */
static struct module describe(const struct dl_phdr_info *info) {
    uintptr_t lowest = UINTPTR_MAX, page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uint64_t id = hash_bytes(UINT64_C(0xcbf29ce484222325), info->dlpi_name, strlen(info->dlpi_name));
    id = hash_bytes(id, info->dlpi_phdr, info->dlpi_phnum * sizeof info->dlpi_phdr[0]);
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && segment->p_vaddr < lowest) lowest = segment->p_vaddr;
        if (segment->p_type == PT_NOTE && contains(info, info->dlpi_addr + segment->p_vaddr))
            id = hash_bytes(id, at(info, segment->p_vaddr), segment->p_memsz);
    }
    return (struct module){(info->dlpi_addr + lowest) & ~(page - 1), id};
}

/* ---- all of them ---- */

struct all {
    struct module *list;
    size_t count, max;
};

static int add(struct dl_phdr_info *info, size_t size, void *arg) {
    struct all *all = arg;
    (void)size;
    if (all->count < all->max) all->list[all->count] = describe(info);
    all->count++;
    return 0;
}

size_t cc__modules(struct module *list, size_t max) {
    struct all all = {list, 0, max};
    walk(add, &all);
    return all.count;
}

/* ---- one ---- */

static int find(struct dl_phdr_info *info, size_t size, void *arg) {
    struct search *s = arg;
    (void)size;
    if (!contains(info, s->pc)) return 0;
    s->found = true;
    s->module = describe(info);
    const char *path = info->dlpi_name[0] != '\0' ? info->dlpi_name : program_invocation_name;
    const char *slash = strrchr(path, '/');
    copy_text(s->name, s->size, slash != NULL ? slash + 1 : path);
    return 1;
}

bool cc__module_of(uintptr_t pc, struct module *module, char *name, size_t size) {
    struct search s = {.pc = pc, .name = name, .size = size};
    walk(find, &s);
    *module = s.module;
    return s.found;
}

/* ---- its exported functions ---- */

struct exported {
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *hash, *gnu_hash;
};

/* Some systems store addresses in the section, others offsets. */
static const void *pointer(const struct dl_phdr_info *info, uintptr_t value) {
    return contains(info, value) ? (const void *)value : at(info, value);
}

static struct exported exported_by(const struct dl_phdr_info *info) {
    struct exported e = {0};
    const ElfW(Dyn) *entry = NULL;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) entry = at(info, info->dlpi_phdr[i].p_vaddr);
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB) e.symbols = pointer(info, entry->d_un.d_ptr);
        if (entry->d_tag == DT_STRTAB) e.names = pointer(info, entry->d_un.d_ptr);
        if (entry->d_tag == DT_HASH) e.hash = pointer(info, entry->d_un.d_ptr);
        if (entry->d_tag == DT_GNU_HASH) e.gnu_hash = pointer(info, entry->d_un.d_ptr);
    }
    return e;
}

/* The table has no length. In GNU's hash table the chain of the last bucket ends with the last symbol; the older one
 * has an entry for each symbol. */
static size_t symbol_count(const struct exported *e) {
    if (e->symbols == NULL || e->names == NULL) return 0;
    if (e->gnu_hash == NULL) return e->hash != NULL ? e->hash[1] : 0;
    uint32_t buckets = e->gnu_hash[0], first = e->gnu_hash[1], words = e->gnu_hash[2], last = 0;
    const uint32_t *bucket = e->gnu_hash + 4 + words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++)
        if (bucket[i] > last) last = bucket[i];
    if (last < first) return first;
    while ((chain[last - first] & 1) == 0) last++;
    return last + 1;
}

static int find_function(struct dl_phdr_info *info, size_t size, void *arg) {
    struct search *s = arg;
    (void)size;
    if (!contains(info, s->pc)) return 0;
    struct exported e = exported_by(info);
    for (size_t i = symbol_count(&e); i-- > 1;) {
        const ElfW(Sym) *symbol = &e.symbols[i];
        uintptr_t from = info->dlpi_addr + symbol->st_value;
        bool defined = symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 && (symbol->st_info & 15) == STT_FUNC;
        if (!defined || s->pc - from >= symbol->st_size || from < s->function) continue;
        s->function = from;
        copy_text(s->name, s->size, e.names + symbol->st_name);
    }
    return 1;
}

uintptr_t cc__module_function(uintptr_t pc, char *name, size_t size) {
    struct search s = {.pc = pc, .name = name, .size = size};
    walk(find_function, &s);
    return s.function;
}
