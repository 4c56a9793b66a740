/* module.h - the loaded program or library that an address belongs to.
 *
 * dladdr waits for whoever loads a library, constructors included, and returns strings that a dlclose frees. So the
 * modules are walked by dl_iterate_phdr, whose lock is held only while the list changes, and what is needed is copied.
 */
#ifndef CC_INSPECT_LINUX_MODULE_H
#define CC_INSPECT_LINUX_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct module {
    uintptr_t begin;
    uint64_t id; /* tells it from others that are loaded at the same address, before or after it */
};

/* Around everything that walks the modules. A fork waits until nobody does: else its child would find the dynamic
 * linker's lock held for ever, in a dlopen for example. */
void cc__modules_begin(void);
void cc__modules_end(void);

/* How many are loaded; describes up to max of them. */
size_t cc__modules(struct module *list, size_t max);

/* The module of an address, and the last component of its file's name. False: there is none. */
bool cc__module_of(uintptr_t pc, struct module *module, char *name, size_t size);

/* The exported function that contains the address, from the table of the dynamic linker. Returns where it begins; 0:
 * there is none. */
uintptr_t cc__module_function(uintptr_t pc, char *name, size_t size);

#endif
