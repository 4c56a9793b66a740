/* modules.c - finds ELF objects in the target's memory, and reads symbol tables from their files. */
#include "modules.h"

#include "inspect/linux/cfi.h"
#include "records.h"
#include "target.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADERS_MAX = 64, NOTES_MAX = 1 << 16, SECTIONS_MAX = 1 << 16, TABLE_MAX = 1 << 28 };

struct function {
    uint64_t value, size;
    const char *name;
    unsigned file; /* from which it was compiled: a number; 0 if it is not local */
    bool local, ours;
};

struct module {
    const struct mapping *mapping; /* of its first page */
    uint64_t bias, end, unwind;    /* unwind: its .eh_frame_hdr; 0: it has none */
    const char *name;
    Elf64_Ehdr elf;
    unsigned header_count;
    Elf64_Phdr headers[HEADERS_MAX];
    struct record *records; /* of functions, if it has no table */
    size_t record_count;
    bool loaded; /* the functions are; they are read when they are first asked for */
    char *names; /* of the functions */
    struct function *functions;
    size_t count;
};

static struct module *modules;
static size_t module_count;

/* ---- which there are ---- */

static bool maps_code_of(const struct mapping *like, uint64_t at) {
    size_t count;
    const struct mapping *m = target_mappings(&count);
    for (size_t i = 0; i < count; i++)
        if (at >= m[i].start && at < m[i].end && strcmp(m[i].path, like->path) == 0) return true;
    return false;
}

/* An ELF object whose first page is at the start of that mapping, and whose code is mapped, too. */
static bool read_headers(const struct mapping *mapping, struct module *module) {
    bool based = false, code = false;
    const Elf64_Ehdr *elf = &module->elf;
    *module = (struct module){.mapping = mapping};
    if (!target_read(&module->elf, mapping->start, sizeof *elf) || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 ||
        elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_phentsize != sizeof(Elf64_Phdr) || elf->e_phnum > HEADERS_MAX)
        return false;
    module->header_count = elf->e_phnum;
    if (!target_read(module->headers, mapping->start + elf->e_phoff, elf->e_phnum * sizeof(Elf64_Phdr))) return false;
    for (unsigned i = 0; i < module->header_count; i++) {
        const Elf64_Phdr *h = &module->headers[i];
        if (h->p_type != PT_LOAD) continue;
        if (!based) module->bias = mapping->start - (h->p_vaddr - h->p_offset);
        based = true;
        uint64_t from = module->bias + h->p_vaddr, end = from + h->p_memsz;
        if (end > module->end) module->end = end;
        if (h->p_flags & PF_X) code = code || maps_code_of(mapping, from);
    }
    for (unsigned i = 0; i < module->header_count; i++)
        if (module->headers[i].p_type == PT_GNU_EH_FRAME) module->unwind = module->bias + module->headers[i].p_vaddr;
    const char *slash = strrchr(mapping->path, '/');
    module->name = slash != NULL ? slash + 1 : mapping->path;
    return based && code && module->end > mapping->start;
}

static void find_records(struct module *m);

void modules_find(void) {
    size_t count;
    const struct mapping *m = target_mappings(&count);
    for (size_t i = 0; i < count; i++) {
        if (m[i].offset != 0 || (m[i].path[0] != '/' && strcmp(m[i].path, "[vdso]") != 0)) continue;
        modules = grow(modules, module_count + 1, sizeof *modules);
        if (!read_headers(&m[i], &modules[module_count])) continue;
        if (modules[module_count].unwind == 0) find_records(&modules[module_count]); /* before anything is stopped */
        module_count++;
    }
}

static struct module *find(uint64_t address) {
    for (size_t i = 0; i < module_count; i++)
        if (address >= modules[i].mapping->start && address < modules[i].end) return &modules[i];
    return NULL;
}

/* ---- for the unwinder (inspect/linux/cfi.h) ---- */

uintptr_t cc__objects_table(uintptr_t pc) {
    const struct module *m = find(pc);
    return m != NULL ? m->unwind : 0;
}

uintptr_t cc__objects_record(uintptr_t pc) {
    const struct module *m = find(pc);
    return m != NULL ? records_find(m->records, m->record_count, pc) : 0;
}

uint64_t cc__objects_epoch(void) {
    return 0; /* they are listed once */
}

/* ---- notes ---- */

static void walk_notes(const char *notes, size_t size, size_t align, uint64_t at, const char *name, uint32_t type,
                       void (*fn)(uint64_t at, size_t size)) {
    Elf64_Nhdr note;
    for (size_t i = 0, step; size - i >= sizeof note; i += step) {
        memcpy(&note, notes + i, sizeof note);
        size_t desc = (sizeof note + note.n_namesz + align - 1) & ~(align - 1);
        step = (desc + note.n_descsz + align - 1) & ~(align - 1);
        if (desc > size - i || note.n_descsz > size - i - desc) return;
        if (note.n_type == type && note.n_namesz == strlen(name) + 1 &&
            memcmp(notes + i + sizeof note, name, note.n_namesz) == 0)
            fn(at + i + desc, note.n_descsz);
        if (step > size - i) return;
    }
}

void modules_each_note(const char *name, uint32_t type, void (*fn)(uint64_t at, size_t size)) {
    for (size_t i = 0; i < module_count; i++) {
        for (unsigned j = 0; j < modules[i].header_count; j++) {
            const Elf64_Phdr *h = &modules[i].headers[j];
            if (h->p_type != PT_NOTE || h->p_memsz > NOTES_MAX) continue;
            char *notes = grow(NULL, h->p_memsz + 1, 1);
            uint64_t at = modules[i].bias + h->p_vaddr;
            if (target_read(notes, at, h->p_memsz))
                walk_notes(notes, h->p_memsz, h->p_align == 8 ? 8 : 4, at, name, type, fn);
            free(notes);
        }
    }
}

/* ---- symbol tables ---- */

static bool read_at(int fd, void *to, uint64_t offset, size_t n) {
    return offset <= INT64_MAX && pread(fd, to, n, (off_t)offset) == (ssize_t)n;
}

/* A file that is the one that was mapped, as its first bytes say; -1: it is not. */
static int open_if(const struct module *m, const char *path) {
    Elf64_Ehdr elf;
    int fd = target_open_file(path);
    if (fd >= 0 && read_at(fd, &elf, 0, sizeof elf) && memcmp(&elf, &m->elf, sizeof elf) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* Also if the target sees another file system, or the file was deleted. */
static int open_file(const struct module *m) {
    char path[4096];
    int fd = -1;
    if (m->mapping->path[0] != '/') return -1;
    if (target_pid() == 0) return open_if(m, m->mapping->path);
    snprintf(path, sizeof path, "/proc/%d/map_files/%lx-%lx", target_pid(), (unsigned long)m->mapping->start,
             (unsigned long)m->mapping->end);
    fd = open_if(m, path);
    if (fd < 0 && snprintf(path, sizeof path, "/proc/%d/root%s", target_pid(), m->mapping->path) < (int)sizeof path)
        fd = open_if(m, path);
    if (fd < 0) {
        snprintf(path, sizeof path, "/proc/%d/exe", target_pid());
        fd = open_if(m, path);
    }
    return fd;
}

/* A section's bytes with a 0 behind them; NULL: there are none. */
static char *read_section(int fd, const Elf64_Shdr *section) {
    if (section->sh_size == 0 || section->sh_size > TABLE_MAX || section->sh_type == SHT_NOBITS) return NULL;
    char *bytes = grow(NULL, section->sh_size + 1, 1);
    bytes[section->sh_size] = '\0';
    if (read_at(fd, bytes, section->sh_offset, section->sh_size)) return bytes;
    free(bytes);
    return NULL;
}

static int by_value(const void *a, const void *b) {
    const struct function *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->local - y->local; /* the public name of two is the better one */
}

static bool has_prefix(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* A static function of the library lies among others of the library, or is from the same file as one that does. */
static void mark_ours(struct module *m, unsigned files) {
    bool *file_is_ours = grow(NULL, files + 1, sizeof *file_is_ours);
    memset(file_is_ours, 0, (files + 1) * sizeof *file_is_ours);
    bool whole = has_prefix(m->name, "libccc.so"), before = false;
    for (size_t i = 0; i < m->count; i++) {
        struct function *f = &m->functions[i];
        if (!f->local || has_prefix(f->name, "cc_")) before = has_prefix(f->name, "cc_");
        f->ours = before || whole;
    }
    bool after = false;
    for (size_t i = m->count; i-- > 0;) {
        struct function *f = &m->functions[i];
        if (!f->local || has_prefix(f->name, "cc_")) after = has_prefix(f->name, "cc_");
        f->ours = f->ours && (after || whole);
        if (f->ours) file_is_ours[f->file] = true;
    }
    for (size_t i = 0; i < m->count; i++)
        if (m->functions[i].file != 0 && file_is_ours[m->functions[i].file]) m->functions[i].ours = true;
    free(file_is_ours);
}

static void take_functions(struct module *m, const Elf64_Sym *symbols, size_t count, const char *names, size_t size) {
    unsigned file = 0;
    m->functions = grow(NULL, count + 1, sizeof *m->functions);
    for (size_t i = 0; i < count; i++) {
        unsigned type = ELF64_ST_TYPE(symbols[i].st_info);
        bool local = ELF64_ST_BIND(symbols[i].st_info) == STB_LOCAL;
        file += type == STT_FILE;
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbols[i].st_shndx == SHN_UNDEF ||
            symbols[i].st_name >= size)
            continue;
        m->functions[m->count++] = (struct function){
            symbols[i].st_value, symbols[i].st_size, names + symbols[i].st_name, local ? file : 0, local, false};
    }
    qsort(m->functions, m->count, sizeof *m->functions, by_value);
    mark_ours(m, file);
}

/* The section headers, which the caller frees; NULL: there are none. */
static Elf64_Shdr *read_sections(const struct module *m, int fd) {
    size_t count = m->elf.e_shnum;
    if (m->elf.e_shentsize != sizeof(Elf64_Shdr) || count == 0 || count > SECTIONS_MAX) return NULL;
    Elf64_Shdr *sections = grow(NULL, count, sizeof *sections);
    if (read_at(fd, sections, m->elf.e_shoff, count * sizeof *sections)) return sections;
    free(sections);
    return NULL;
}

static void take_records(struct module *m, const Elf64_Shdr *section) {
    uint64_t at = m->bias + section->sh_addr, size = section->sh_size;
    if (size > TABLE_MAX || at < m->mapping->start || at > m->end || size > m->end - at) return;
    unsigned char *bytes = grow(NULL, size + 1, 1);
    if (target_read(bytes, at, size)) m->records = records_list(bytes, size, at, &m->record_count);
    free(bytes);
}

static void find_records(struct module *m) {
    int fd = open_file(m);
    Elf64_Shdr *sections = fd >= 0 ? read_sections(m, fd) : NULL;
    unsigned names = m->elf.e_shstrndx;
    char *text = sections != NULL && names < m->elf.e_shnum ? read_section(fd, &sections[names]) : NULL;
    for (size_t i = 0; text != NULL && i < m->elf.e_shnum; i++) {
        const Elf64_Shdr *s = &sections[i];
        if ((s->sh_flags & SHF_ALLOC) != 0 && s->sh_name < sections[names].sh_size &&
            strcmp(text + s->sh_name, ".eh_frame") == 0 && m->records == NULL)
            take_records(m, s);
    }
    free(text);
    free(sections);
    if (fd >= 0) close(fd);
}

static void load_from(struct module *m, int fd) {
    const Elf64_Shdr *table = NULL;
    size_t count = m->elf.e_shnum;
    Elf64_Shdr *sections = read_sections(m, fd);
    for (size_t i = 0; sections != NULL && i < count; i++)
        if (sections[i].sh_type == SHT_SYMTAB || (sections[i].sh_type == SHT_DYNSYM && table == NULL))
            table = &sections[i];
    if (table != NULL && table->sh_link < count) {
        const Elf64_Shdr *strings = &sections[table->sh_link];
        char *symbols = read_section(fd, table);
        m->names = read_section(fd, strings);
        if (m->names != NULL && symbols != NULL)
            take_functions(m, (const Elf64_Sym *)(void *)symbols, table->sh_size / sizeof(Elf64_Sym), m->names,
                           strings->sh_size);
        free(symbols);
    }
    free(sections);
}

static const struct function *find_function(struct module *m, uint64_t pc) {
    if (!m->loaded) {
        int fd = open_file(m);
        if (fd >= 0) {
            load_from(m, fd);
            close(fd);
        }
        m->loaded = true;
    }
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->functions[middle].value <= pc - m->bias)
            low = middle + 1;
        else
            high = middle;
    }
    const struct function *f = low > 0 ? &m->functions[low - 1] : NULL;
    while (f != NULL && f > m->functions && f[-1].value == f->value && f[-1].size >= f->size) f--; /* the public name */
    return f != NULL && pc - m->bias - f->value < (f->size > 0 ? f->size : 1) ? f : NULL;
}

/* ---- what others ask ---- */

void modules_name(uint64_t return_address, char *text, size_t size) {
    uint64_t pc = return_address - 1;
    struct module *m = find(pc);
    const struct function *f = m != NULL ? find_function(m, pc) : NULL;
    unsigned long offset = m != NULL ? return_address - m->mapping->start : 0;
    if (m == NULL)
        snprintf(text, size, "%#lx", (unsigned long)return_address);
    else if (f == NULL)
        snprintf(text, size, "%s+%#lx", m->name, offset);
    else
        snprintf(text, size, "%s+%#lx (%s+%#lx)", f->name, (unsigned long)(return_address - m->bias - f->value),
                 m->name, offset);
}

enum owner modules_owner(uint64_t return_address) {
    struct module *m = find(return_address - 1);
    const struct function *f = m != NULL ? find_function(m, return_address - 1) : NULL;
    if (f == NULL || !f->ours) return OWNER_USER;
    if (has_prefix(f->name, "cc__run_") || has_prefix(f->name, "cc__context_first") ||
        has_prefix(f->name, "cc__guard") || has_prefix(f->name, "cc__context_call_on") ||
        has_prefix(f->name, "cc__escape"))
        return OWNER_SCHEDULER;
    return has_prefix(f->name, "cc_") && f->name[3] != '_' ? OWNER_CALL : OWNER_LIBRARY;
}
