/* names.c - suffixes; see names.h. */
#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *suffix, *instead;
} known[] = {{".gz", ""}, {"-gz", ""}, {".zz", ""},      {".z", ""},
             {"-z", ""},  {"_z", ""},  {".tgz", ".tar"}, {".taz", ".tar"}};

/* How much of the name is in front of the suffix, *instead being what replaces it; 0: there is none. */
static size_t stem_of(const char *name, const char *own_suffix, const char **instead) {
    size_t length = strlen(name);
    const char *slash = strrchr(name, '/');
    const char *base = slash != NULL ? slash + 1 : name;
    for (size_t i = 0; i <= sizeof known / sizeof known[0]; i++) {
        const char *suffix = i == 0 ? own_suffix : known[i - 1].suffix;
        size_t n = strlen(suffix);
        if (length - (size_t)(base - name) <= n || strcmp(name + length - n, suffix) != 0) continue;
        *instead = i == 0 ? "" : known[i - 1].instead;
        return length - n;
    }
    return 0;
}

bool names_is_packed(const char *name, const struct options *options) {
    const char *instead;
    return stem_of(name, options->suffix, &instead) > 0;
}

static char *join(const char *first, size_t n, const char *second) {
    char *name = malloc(n + strlen(second) + 1);
    if (name == NULL) return NULL;
    memcpy(name, first, n);
    strcpy(name + n, second);
    return name;
}

char *names_pack(const char *name, const struct options *options) {
    return join(name, strlen(name), options->suffix);
}

char *names_unpack(const char *name, const struct options *options) {
    const char *instead;
    size_t n = stem_of(name, options->suffix, &instead);
    return n == 0 ? NULL : join(name, n, instead);
}

char *names_restore(const char *from_header, const char *beside) {
    const char *slash = strrchr(from_header, '/');
    const char *base = slash != NULL ? slash + 1 : from_header;
    if (*base == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0) return NULL;
    slash = strrchr(beside, '/');
    return join(beside, slash != NULL ? (size_t)(slash + 1 - beside) : 0, base);
}
