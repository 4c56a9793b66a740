/* loaded.c - marks an object that dlopen has loaded as -z nodelete does at link time. */
#include "os/loaded.h"

#include "base/error.h"
#include "base/fatal.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma weak dlopen /* a statically linked program has none, and needs none */

/* Whether it was linked with -z nodelete. */
static bool stays(const struct dl_phdr_info *object) {
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *entry = (const void *)(uintptr_t)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++)
            if (entry->d_tag == DT_FLAGS_1) return (entry->d_un.d_val & DF_1_NODELETE) != 0;
    }
    return false;
}

static int find_own(struct dl_phdr_info *object, size_t size, void *name) {
    (void)size;
    uintptr_t here = (uintptr_t)cc__loaded_keep;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || here - object->dlpi_addr - segment->p_vaddr >= segment->p_memsz) continue;
        if (!stays(object)) *(const char **)name = object->dlpi_name;
        return 1;
    }
    return 0;
}

void cc__loaded_keep(void) {
    CC_KEEP_ERRNO;
    const char *name = "";
    (void)dl_iterate_phdr(find_own, &name);
    if (name[0] == '\0' || dlopen == NULL) return; /* the program itself, or it stays in any case */
    if (dlopen(name, RTLD_NOLOAD | RTLD_NODELETE | RTLD_LAZY) == NULL)
        cc__warn("%s cannot be kept loaded; dlclose must not unload it while the runtime runs", name);
}
