/* objects.c - the loaded objects, from the dynamic linker.
 *
 * _dl_find_object takes no lock and searches a sorted table; glibc has it since 2.35. Without it dl_iterate_phdr walks
 * all objects under the dynamic linker's lock.
 */
#include "inspect/linux/cfi.h"
#include "inspect/linux/module.h"

#include <dlfcn.h>
#include <link.h>

#if defined(DLFO_STRUCT_HAS_EH_DBASE)
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));
#endif

struct search {
    uintptr_t pc, table;
};

static int look_into(struct dl_phdr_info *info, size_t size, void *data) {
    struct search *s = data;
    uintptr_t table = 0;
    bool inside = false;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && s->pc >= from && s->pc - from < header->p_memsz) inside = true;
        if (header->p_type == PT_GNU_EH_FRAME) table = from;
    }
    if (inside) s->table = table;
    return inside;
}

uintptr_t cc__objects_table(uintptr_t pc) {
    struct search s = {pc, 0};
#if defined(DLFO_STRUCT_HAS_EH_DBASE)
    struct dl_find_object found;
    if (_dl_find_object != NULL) return _dl_find_object((void *)pc, &found) == 0 ? (uintptr_t)found.dlfo_eh_frame : 0;
#endif
    cc__modules_begin();
    (void)dl_iterate_phdr(look_into, &s);
    cc__modules_end();
    return s.table;
}

/* It would need section headers, which are not loaded; ccps reads them from the file. */
uintptr_t cc__objects_record(uintptr_t pc) {
    (void)pc;
    return 0;
}

static int add_counts(struct dl_phdr_info *info, size_t size, void *data) {
    uint64_t *epoch = data;
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *epoch = info->dlpi_adds + info->dlpi_subs;
    return 1; /* the counters are the same in all entries */
}

uint64_t cc__objects_epoch(void) {
    uint64_t epoch = 0;
    cc__modules_begin();
    (void)dl_iterate_phdr(add_counts, &epoch);
    cc__modules_end();
    return epoch;
}
