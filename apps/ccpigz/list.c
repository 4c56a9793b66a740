/* list.c - gzip's table: sizes, ratio, name; with -v also method, check value and time. The sizes were counted, not
 * read from a trailer, which knows only the last member and only 32 bits. */
#include "list.h"
#include "names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned shown;
static uint64_t all_packed, all_plain;

static void show_sizes(uint64_t packed, uint64_t plain, const char *name) {
    double ratio = plain > 0 ? 100 * ((double)plain - (double)packed) / (double)plain : 0;
    printf("%19" PRIu64 " %19" PRIu64 " %5.1f%% %s\n", packed, plain, ratio, name);
}

void list_show(const struct job *job, long file_time) {
    const struct options *o = job->options;
    const struct wrapper *w = &job->wrapper;
    uint64_t packed = job->in_size > 0 ? job->in_size : atomic_load(&job->bytes_in);
    uint64_t plain = atomic_load(&job->bytes_out);
    if (shown++ == 0 && !o->quiet) {
        if (o->verbose > 0) printf("method  check     date  time  ");
        puts("         compressed        uncompressed  ratio uncompressed_name");
    }
    if (o->verbose > 0) {
        char when[32] = "";
        time_t seconds = w->time != 0 ? (time_t)w->time : (time_t)file_time;
        struct tm parts;
        if (localtime_r(&seconds, &parts) != NULL) strftime(when, sizeof when, "%b %e %H:%M", &parts);
        printf("%-7s %08" PRIx32 "  %s  ",
               w->format == FORMAT_GZIP   ? "gzip"
               : w->format == FORMAT_ZLIB ? "zlib"
                                          : "raw",
               job->check, when);
    }
    char *name = o->keep_name && w->name[0] != '\0' ? names_restore(w->name, job->name) : names_unpack(job->name, o);
    show_sizes(packed, plain, name != NULL ? name : job->name);
    free(name);
    all_packed += packed;
    all_plain += plain;
}

void list_end(const struct options *o) {
    if (shown < 2 || o->quiet) return;
    if (o->verbose > 0) printf("%31s", "");
    show_sizes(all_packed, all_plain, "(totals)");
}
