/* options.h - what the command line asks for. */
#ifndef CCPIGZ_OPTIONS_H
#define CCPIGZ_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum action { ACTION_COMPRESS, ACTION_DECOMPRESS, ACTION_TEST, ACTION_LIST };
enum format { FORMAT_GZIP, FORMAT_ZLIB, FORMAT_RAW };
enum split { SPLIT_AUTO, SPLIT_NEVER, SPLIT_ALWAYS };
enum engine { ENGINE_AUTO, ENGINE_ZLIB, ENGINE_LIBDEFLATE };

#define LEVEL_DEFAULT 6
#define LEVEL_ZLIB_MAX 9
#define LEVEL_MAX 12

struct options {
    enum action action;
    enum format format;
    enum engine engine; /* after options_parse never AUTO when compressing */
    int level;
    unsigned workers; /* blocks that are worked on at the same time; after options_parse never more than cpus */
    unsigned cpus;
    size_t block;       /* bytes; 0: the engine's own */
    const char *suffix; /* with the dot */
    bool independent, rsyncable;
    enum split split; /* decompressing: one stream by several tasks; after options_parse never AUTO */
    bool force, keep, to_stdout, recursive, synchronous;
    int keep_name, keep_time; /* compressing: into the header; decompressing: out of it */
    bool quiet;
    int verbose;
    char **names; /* NULL at the end */
};

/* Reads the command line; names are moved to the front of argv. Returns -1, or the status to exit with at once. */
int options_parse(struct options *options, int argc, char **argv);

#endif
