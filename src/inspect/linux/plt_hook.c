/* plt_hook.c - rewrites the entries of global offset tables. */
#include "inspect/plt_hook.h"

#include "arch/machine.h"
#include "base/attr.h"
#include "os/vm.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

struct install {
    struct plt_hook *hooks;
    unsigned count;
    int patched;
    bool any_tables;
    unsigned modules;
};

/* From a module's dynamic section. */
struct tables {
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * calls, *others;
    size_t calls_size, others_size;
    uintptr_t sealed_low, sealed_high; /* read-only after relocation (RELRO) */
};

/* On most systems, but not on all, the dynamic linker has added the module's base to these addresses. */
static const void *resolve(const struct dl_phdr_info *info, ElfW(Addr) address) {
    return (const void *)(address < info->dlpi_addr ? address + info->dlpi_addr : address);
}

static bool find_tables(const struct dl_phdr_info *info, struct tables *t) {
    const ElfW(Dyn) *dynamic = NULL;
    memset(t, 0, sizeof *t);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_DYNAMIC) dynamic = (const ElfW(Dyn) *)at;
        if (p->p_type != PT_GNU_RELRO) continue;
        t->sealed_low = at & ~(cc__vm_page() - 1);
        t->sealed_high = (at + p->p_memsz) & ~(cc__vm_page() - 1);
    }
    ElfW(Addr) entry[DT_NUM] = {0};
    for (; dynamic != NULL && dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag > 0 && dynamic->d_tag < DT_NUM) entry[dynamic->d_tag] = dynamic->d_un.d_ptr;
    if (entry[DT_SYMTAB] == 0 || entry[DT_STRTAB] == 0) return false;
    t->symbols = resolve(info, entry[DT_SYMTAB]);
    t->names = resolve(info, entry[DT_STRTAB]);
    t->calls = resolve(info, entry[DT_JMPREL]);
    t->calls_size = entry[DT_PLTRELSZ];
    t->others = resolve(info, entry[DT_RELA]);
    t->others_size = entry[DT_RELASZ];
    return true;
}

static bool contains(const struct dl_phdr_info *info, const void *address) {
    uintptr_t at = (uintptr_t)address - info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && at >= p->p_vaddr && at - p->p_vaddr < p->p_memsz) return true;
    }
    return false;
}

/* Atomic: a concurrent call through the slot uses the old or the new function. */
static bool rewrite(const struct tables *t, uintptr_t slot, const void *to) {
    bool sealed = slot >= t->sealed_low && slot < t->sealed_high;
    void *page = (void *)(slot & ~(cc__vm_page() - 1));
    if (sealed && mprotect(page, cc__vm_page(), PROT_READ | PROT_WRITE) != 0) return false;
    *(_Atomic uintptr_t *)slot = (uintptr_t)to;
    if (sealed) (void)mprotect(page, cc__vm_page(), PROT_READ);
    return true;
}

static void rewrite_all(struct install *install, const struct dl_phdr_info *info, const struct tables *t,
                        const ElfW(Rela) * at, size_t size) {
    for (const ElfW(Rela) *end = at + size / sizeof *at; at < end; at++) {
        if (!CC_RELOCATION_IS_SLOT(ELF64_R_TYPE(at->r_info)) || at->r_addend != 0) continue;
        const char *name = t->names + t->symbols[ELF64_R_SYM(at->r_info)].st_name;
        for (unsigned i = 0; i < install->count; i++) {
            const struct plt_hook *hook = &install->hooks[i];
            if (hook->original != NULL && strcmp(name, hook->name) == 0)
                install->patched += rewrite(t, info->dlpi_addr + at->r_offset, hook->instead);
        }
    }
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size;
    struct install *install = arg;
    struct tables t;
    bool program = install->modules++ == 0; /* the program comes first */
    if (!find_tables(info, &t)) return 0;
    install->any_tables |= program; /* other modules do not count: every process has the vDSO's */
    if (!program && contains(info, (const void *)cc__plt_hook_install)) return 0;
    for (unsigned i = 0; i < install->count; i++)
        if (install->hooks[i].original != NULL && contains(info, install->hooks[i].original)) {
            if (program) install->any_tables = false; /* the program defines it, as with a sanitizer: called directly */
            return 0;
        }
    if (strstr(info->dlpi_name, "/ld-") != NULL || strstr(info->dlpi_name, "linux-vdso") != NULL) return 0;
    rewrite_all(install, info, &t, t.calls, t.calls_size);
    rewrite_all(install, info, &t, t.others, t.others_size);
    return 0;
}

int cc__plt_hook_install(struct plt_hook *hooks, unsigned count) {
    struct install install = {.hooks = hooks, .count = count};
    bool known = false;
    for (unsigned i = 0; i < count; i++) {
        hooks[i].original = dlsym(RTLD_DEFAULT, hooks[i].name);
        known |= hooks[i].original != NULL;
    }
    (void)dl_iterate_phdr(visit, &install);
    return install.any_tables && known ? install.patched : -1;
}
