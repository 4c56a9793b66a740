/* output.h - where a job writes: standard output, or a file that appears under its name only when it is complete.
 *
 * OUTPUT-1  Until output_commit the target's name does not refer to the new file, and an older file stays. Where the
 *           system supports it the file has no name at all (O_TMPFILE), so that not even SIGKILL leaves an incomplete
 *           one. Elsewhere it has a temporary name beside the target, which output_discard, and signals.c, remove.
 * OUTPUT-2  Owner, mode and times are the input's before the name appears. While the file is written only its owner may
 *           read it. */
#ifndef CCPIGZ_OUTPUT_H
#define CCPIGZ_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct output {
    int fd;
    bool is_file;
    const char *name; /* the target's path, or "standard output" */
    char *temporary;  /* a path, or NULL */
};

void output_stdout(struct output *out);
/* 0, or an errno value. */
int output_create(struct output *out, const char *path);
const char *output_name(const struct output *out);
int output_write(struct output *out, const void *data, size_t size);
/* Gives the file its name; EEXIST: there is one, and replace is false. On an error the file is removed. */
int output_commit(struct output *out, const struct stat *like, bool replace, bool synchronous);
void output_discard(struct output *out);

#endif
