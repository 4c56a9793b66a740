/* options.c - reads the command line: gzip's and pigz's letters and long names, in any mix with the file names. */
#include "options.h"
#include "say.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

/* Long names without a letter. */
enum { OPTION_FAST = 256, OPTION_BEST, OPTION_RAW, OPTION_ENGINE, OPTION_SPLIT, OPTION_CPUS };

static const struct {
    int id;
    const char *name;
    bool takes_value;
    const char *help;
} known[] = {
    {'b', "blocksize", true, "KIB    bytes that one task compresses, in KiB"},
    {'c', "stdout", false, "       write to standard output, keep the files"},
    {'d', "decompress", false, "       decompress"},
    {0, "uncompress", false, NULL},
    {'f', "force", false, "       overwrite, follow links, write to terminals"},
    {'h', "help", false, "       this text"},
    {'i', "independent", false, "       no block refers to the one before it"},
    {'k', "keep", false, "       keep the input files"},
    {'l', "list", false, "       sizes and names, found by decompressing"},
    {'L', "license", false, "       the licence"},
    {'m', "no-time", false, "       neither store nor restore the time"},
    {'M', "time", false, "       store and restore the time"},
    {'n', "no-name", false, "       neither store nor restore name and time"},
    {'N', "name", false, "       store and restore name and time"},
    {'p', "processes", true, "N      blocks that are worked on at the same time"},
    {'q', "quiet", false, "       no warnings"},
    {0, "silent", false, NULL},
    {'r', "recursive", false, "       files in directories, too"},
    {'R', "rsyncable", false, "       block limits that follow the content"},
    {'S', "suffix", true, "SUF    suffix of compressed files instead of .gz"},
    {'t', "test", false, "       test only"},
    {'v', "verbose", false, "       say what is done; twice: progress without a terminal, too"},
    {'V', "version", false, "       versions"},
    {'Y', "synchronous", false, "       wait until the output is on the disk"},
    {'z', "zlib", false, "       zlib format (.zz)"},
    {OPTION_RAW, "raw", false, "       bare deflate data, both ways"},
    {OPTION_ENGINE, "engine", true, "NAME   zlib or libdeflate"},
    {OPTION_CPUS, "cpus", true, "N      processors to count on, whatever the system says"},
    {OPTION_SPLIT, "split", true, "WHEN   always or never: one stream is decompressed by several tasks"},
    {OPTION_FAST, "fast", false, "       as -1"},
    {OPTION_BEST, "best", false, "       as -9"},
};
enum { KNOWN = sizeof known / sizeof known[0] };

static int wrong_use(const char *format, const char *what) {
    say_error(NULL, format, what);
    say_line("Try `ccpigz --help'.");
    return 1;
}

static int show_help(void) {
    puts("Usage: ccpigz [OPTION]... [FILE]...\n"
         "Compresses or decompresses files in place, on several processors. Without a FILE, or with -, from standard\n"
         "input to standard output.\n\n"
         "  -0 to -12              level; 10 to 12 need libdeflate");
    for (int i = 0; i < KNOWN; i++) {
        if (known[i].help == NULL) continue;
        if (known[i].id < 256)
            printf("  -%c, ", known[i].id);
        else
            printf("      ");
        printf("--%-12s %s\n", known[i].name, known[i].help);
    }
    return say_flush();
}

static int show_version(void) {
    printf("ccpigz %d.%d.%d, with zlib %s", CC_VERSION_MAJOR, CC_VERSION_MINOR, CC_VERSION_PATCH, zlibVersion());
#ifdef HAVE_LIBDEFLATE
    printf(" and libdeflate %s", LIBDEFLATE_VERSION_STRING);
#endif
    putchar('\n');
    return say_flush();
}

/* A whole number between two limits; -1: it is none. */
static long number_between(const char *text, long least, long most) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno != 0 || end == text || *end != '\0' || value < least || value > most ? -1 : value;
}

static int take_value(struct options *o, int id, const char *value) {
    long number;
    switch (id) {
    case 'b':
        /* A dictionary has 32 KiB; with more than 512 MiB sizes would not fit into the headers of members. */
        number = number_between(value, 32, 512 * 1024);
        if (number < 0) return wrong_use("%s: a block has 32 to 524288 KiB", value);
        o->block = (size_t)number * 1024;
        return -1;
    case 'p':
        number = number_between(value, 1, CC_WORKERS_MAX - 2); /* reader and writer have one each */
        if (number < 0) return wrong_use("%s: there may be 1 to 510 processes", value);
        o->workers = (unsigned)number;
        return -1;
    case OPTION_CPUS:
        number = number_between(value, 1, CC_WORKERS_MAX - 2);
        if (number < 0) return wrong_use("%s: there may be 1 to 510 processors", value);
        o->cpus = (unsigned)number;
        return -1;
    case 'S':
        if (*value == '\0' || strchr(value, '/') != NULL) return wrong_use("'%s': not a suffix", value);
        o->suffix = value;
        return -1;
    case OPTION_SPLIT:
        o->split = strcmp(value, "always") == 0 ? SPLIT_ALWAYS : strcmp(value, "never") == 0 ? SPLIT_NEVER : SPLIT_AUTO;
        return o->split == SPLIT_AUTO ? wrong_use("%s: splits are made always or never", value) : -1;
    default:
        if (strcmp(value, "zlib") == 0) {
            o->engine = ENGINE_ZLIB;
        } else if (strcmp(value, "libdeflate") == 0) {
            o->engine = ENGINE_LIBDEFLATE;
        } else {
            return wrong_use("%s: there is no such engine; zlib and libdeflate are", value);
        }
        return -1;
    }
}

static int take_flag(struct options *o, int id) {
    switch (id) {
    case 'c':
        o->to_stdout = true;
        break;
    case 'd':
        o->action = ACTION_DECOMPRESS;
        break;
    case 'f':
        o->force = true;
        break;
    case 'h':
        return show_help();
    case 'i':
        o->independent = true;
        break;
    case 'k':
        o->keep = true;
        break;
    case 'l':
        o->action = ACTION_LIST;
        break;
    case 'L':
        puts("ccpigz is part of the Concurrent C runtime and under its licence; see the file LICENSE.");
        return say_flush();
    case 'm':
        o->keep_time = 0;
        break;
    case 'M':
        o->keep_time = 1;
        break;
    case 'n':
        o->keep_name = o->keep_time = 0;
        break;
    case 'N':
        o->keep_name = o->keep_time = 1;
        break;
    case 'q':
        o->quiet = true;
        break;
    case 'r':
        o->recursive = true;
        break;
    case 'R':
        o->rsyncable = o->independent = true;
        break;
    case 't':
        o->action = ACTION_TEST;
        break;
    case 'v':
        o->verbose++;
        break;
    case 'V':
        return show_version();
    case 'Y':
        o->synchronous = true;
        break;
    case 'z':
        o->format = FORMAT_ZLIB;
        break;
    case OPTION_RAW:
        o->format = FORMAT_RAW;
        break;
    case OPTION_FAST:
        o->level = 1;
        break;
    case OPTION_BEST:
        o->level = 9;
        break;
    default:
        break;
    }
    return -1;
}

static int take_long(struct options *o, const char *text, char **next, bool *used_next) {
    const char *value = strchr(text, '=');
    size_t length = value != NULL ? (size_t)(value++ - text) : strlen(text);
    int found = -1, candidates = 0;
    for (int i = 0; i < KNOWN; i++) {
        if (strncmp(known[i].name, text, length) != 0) continue;
        found = i;
        if (known[i].name[length] == '\0') {
            candidates = 1;
            break;
        }
        candidates++;
    }
    if (candidates != 1) return wrong_use(candidates == 0 ? "--%s: unknown option" : "--%s: ambiguous option", text);
    /* An alias follows the name that it stands for. */
    int id = known[found].id != 0 ? known[found].id : known[found - 1].id;
    if (!known[found].takes_value) {
        return value == NULL ? take_flag(o, id) : wrong_use("--%s: takes no value", known[found].name);
    }
    if (value == NULL) {
        value = *next;
        *used_next = true;
    }
    return value == NULL ? wrong_use("--%s: a value is missing", known[found].name) : take_value(o, id, value);
}

/* A cluster of letters after one dash; adjacent digits are one level. */
static int take_short(struct options *o, const char *text, char **next, bool *used_next) {
    while (*text != '\0') {
        if (*text >= '0' && *text <= '9') {
            char *end;
            long level = strtol(text, &end, 10);
            if (level > LEVEL_MAX) return wrong_use("-%s: levels go from 0 to 12", text);
            o->level = (int)level;
            text = end;
            continue;
        }
        int found = 0;
        while (found < KNOWN && known[found].id != *text) found++;
        if (found == KNOWN) return wrong_use("-%.1s: unknown option", text);
        text++;
        int status;
        if (known[found].takes_value) {
            const char *value = *text != '\0' ? text : *next;
            *used_next = *text == '\0';
            return value == NULL ? wrong_use("-%s: a value is missing", (char[]){text[-1], '\0'})
                                 : take_value(o, known[found].id, value);
        }
        status = take_flag(o, known[found].id);
        if (status >= 0) return status;
    }
    return -1;
}

/* Which engine: libdeflate wherever the output may consist of several members, because its streams cannot be joined
 * (docs/decisions/013-ccpigz-members.md). */
static int choose_engine(struct options *o) {
    bool members = o->format == FORMAT_GZIP && o->level >= 1 && !o->rsyncable;
#ifdef HAVE_LIBDEFLATE
    if (o->engine == ENGINE_AUTO) o->engine = members && !o->independent ? ENGINE_LIBDEFLATE : ENGINE_ZLIB;
#else
    if (o->engine == ENGINE_LIBDEFLATE) return wrong_use("%s was not built in", "libdeflate");
    o->engine = ENGINE_ZLIB;
#endif
    if (o->engine == ENGINE_LIBDEFLATE && !members) {
        return wrong_use("%s makes gzip files of level 1 to 12, and none for rsync", "libdeflate");
    }
    if (o->engine == ENGINE_ZLIB && o->level > LEVEL_ZLIB_MAX) return wrong_use("%s has levels 0 to 9", "zlib");
    return -1;
}

/* The CPUs that the process may use. */
static unsigned count_cpus(void) {
    cpu_set_t set;
    long count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > 256 ? 256 : (unsigned)count;
}

int options_parse(struct options *o, int argc, char **argv) {
    *o = (struct options){.level = LEVEL_DEFAULT, .names = argv, .keep_name = -1, .keep_time = -1};
    const char *called = strrchr(argv[0], '/');
    called = called != NULL ? called + 1 : argv[0];
    if (strncmp(called, "un", 2) == 0) o->action = ACTION_DECOMPRESS;

    int names = 0, status = -1;
    bool only_names = false;
    for (int i = 1; i < argc && status < 0; i++) {
        bool used_next = false;
        const char *text = argv[i];
        if (only_names || text[0] != '-' || text[1] == '\0') {
            argv[names++] = argv[i];
        } else if (strcmp(text, "--") == 0) {
            only_names = true;
        } else {
            status = text[1] == '-' ? take_long(o, text + 2, &argv[i + 1], &used_next)
                                    : take_short(o, text + 1, &argv[i + 1], &used_next);
            i += used_next;
        }
    }
    if (status >= 0) return status;
    argv[names] = NULL;
    /* By default, both are written to the header and not restored from it. */
    if (o->keep_name < 0) o->keep_name = o->action == ACTION_COMPRESS;
    if (o->keep_time < 0) o->keep_time = o->action == ACTION_COMPRESS;
    /* The tasks only compute: more of them than processors would only take memory. */
    if (o->cpus == 0) o->cpus = count_cpus();
    if (o->workers == 0 || o->workers > o->cpus) o->workers = o->cpus;
    /* Scouts take half as much work again (scout.h): with two processors there is little gain, and much memory is used.
     */
    if (o->split == SPLIT_AUTO) o->split = o->workers > 2 ? SPLIT_ALWAYS : SPLIT_NEVER;
    if (o->suffix == NULL) o->suffix = o->format == FORMAT_ZLIB ? ".zz" : o->format == FORMAT_RAW ? ".deflate" : ".gz";
    say_quiet(o->quiet);
    return o->action == ACTION_COMPRESS ? choose_engine(o) : -1;
}
