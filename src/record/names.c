/* names.c - interned strings and code addresses, numbered in the order of their first use. */
#include "record/record.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { STRING_BUCKETS = 4096 };

struct entry {
    char *text;
    uint32_t next; /* with the same hash; 0: none */
};

static bool fill(struct names *names) {
    for (size_t i = 0; i < STRING_BUCKETS; i++)
        if (cc__vec_add(&names->buckets, sizeof(uint32_t)) == NULL) return false;
    struct entry *none = cc__vec_add(&names->strings, sizeof *none);
    if (none == NULL || (none->text = cc__mem_alloc_small(1)) == NULL) return false;
    none->text[0] = '\0';
    return true;
}

bool cc__names_init(struct names *names) {
    *names = (struct names){0};
    if (fill(names)) return true;
    cc__names_free(names);
    return false;
}

void cc__names_free(struct names *names) {
    for (size_t i = 0; i < names->strings.count; i++) cc__mem_free(cc__vec_at(struct entry, &names->strings, i)->text);
    cc__vec_free(&names->strings);
    cc__vec_free(&names->places);
    cc__vec_free(&names->buckets);
}

uint32_t cc__names_string(struct names *names, const char *text) {
    if (text[0] == '\0' || names->buckets.count < STRING_BUCKETS) return 0;
    uint32_t hash = 2166136261u;
    for (const char *c = text; *c != '\0'; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    uint32_t *bucket = cc__vec_at(uint32_t, &names->buckets, hash % STRING_BUCKETS);
    for (uint32_t i = *bucket; i != 0; i = cc__vec_at(struct entry, &names->strings, i)->next)
        if (strcmp(cc__vec_at(struct entry, &names->strings, i)->text, text) == 0) return i;
    char *copy = cc__mem_alloc_small(strlen(text) + 1);
    struct entry *e = copy != NULL ? cc__vec_add(&names->strings, sizeof *e) : NULL;
    if (e == NULL) {
        cc__mem_free(copy);
        names->strings.failed = true;
        return 0;
    }
    strcpy(copy, text);
    e->text = copy;
    e->next = *bucket;
    return *bucket = (uint32_t)(names->strings.count - 1);
}

const char *cc__names_text(const struct names *names, uint32_t string) {
    return string < names->strings.count ? cc__vec_at(struct entry, &names->strings, string)->text : "";
}

struct code_place *cc__names_place_at(const struct names *names, uint32_t number) {
    return cc__vec_at(struct code_place, &names->places, number);
}

uint32_t cc__names_place(struct names *names, const void *address) {
    uint32_t *recent = &names->recent[((uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> 56];
    if (*recent != 0 && cc__names_place_at(names, *recent - 1)->address == address) return *recent - 1;
    for (uint32_t i = 0; i < names->places.count; i++)
        if (cc__names_place_at(names, i)->address == address) return (*recent = i + 1) - 1;
    struct code_place *p = cc__vec_add(&names->places, sizeof *p);
    if (p == NULL) return NOBODY;
    uint32_t number = (uint32_t)(names->places.count - 1);
    struct symbol s;
    char text[160];
    cc__symbol_find(address, &s);
    if (s.function[0] != '\0')
        snprintf(text, sizeof text, "%s", s.function);
    else if (s.module[0] != '\0')
        snprintf(text, sizeof text, "%s+0x%zx", s.module, s.offset);
    else
        snprintf(text, sizeof text, "?");
    uint32_t function = cc__names_string(names, text);
    uint32_t file = cc__names_string(names, s.file[0] != '\0' ? s.file : s.module);
    p = cc__names_place_at(names, number);
    *p = (struct code_place){address, function, file, s.line, s.ours};
    return number;
}
