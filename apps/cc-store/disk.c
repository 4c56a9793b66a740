/* disk.c - the persistent state of a node. */
#include "disk.h"

#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SIZE = 512 };

static void path_of(const struct disk *d, const char *name, char path[PATH_SIZE]) {
    snprintf(path, PATH_SIZE, "%s/%s", d->directory, name);
}

/* ---- whole files ---- */

/* Files begin with a checksum. 0, ENOENT, EBADMSG. */
static int read_file(const struct disk *d, const char *name, struct bytes *content) {
    char path[PATH_SIZE];
    struct stat status;
    unsigned char head[8];
    int fd;
    size_t n = 0;
    path_of(d, name, path);
    bytes_clear(content);
    int error = cc_file_open(&fd, path, O_RDONLY, 0);
    if (error != 0) return error;
    error = cc_file_stat(fd, &status);
    if (error == 0) error = cc_file_read(fd, head, sizeof head, 0, &n);
    if (error == 0 && n < sizeof head) error = EBADMSG;
    size_t size = error == 0 ? (size_t)status.st_size - sizeof head : 0;
    char *data = malloc(size + 1);
    if (error == 0 && data == NULL) error = ENOMEM;
    if (error == 0) error = cc_file_read(fd, data, size, sizeof head, &n);
    if (error == 0) bytes_add(content, data, n);
    struct view v = {head, sizeof head, false};
    if (error == 0 && content->failed) error = ENOMEM;
    if (error == 0 && view_number(&v) != checksum(content->data, content->size)) error = EBADMSG;
    free(data);
    int closed = cc_fd_close(fd);
    return error != 0 ? error : closed;
}

static int replace_file(const struct disk *d, const char *name, const struct bytes *content, bool sums) {
    char path[PATH_SIZE];
    struct bytes out = {0};
    CCReplace *r;
    path_of(d, name, path);
    if (sums) bytes_add_number(&out, checksum(content->data, content->size));
    bytes_add(&out, content->data, content->size);
    int error = out.failed || content->failed ? ENOMEM : cc_replace_begin(&r, path, 0644);
    if (error == 0) {
        error = cc_file_write(cc_replace_fd(r), out.data, out.size, 0, NULL);
        if (error != 0)
            cc_replace_abort(r);
        else
            error = cc_replace_commit(r);
    }
    bytes_free(&out);
    return error;
}

/* ---- term and vote ---- */

int disk_set_vote(struct disk *d, uint64_t term, uint64_t vote) {
    struct bytes out = {0};
    bool forgets = BUG(BUG_VOTE_IS_FORGOTTEN) && term == d->term;
    d->term = term;
    d->vote = vote;
    bytes_add_number(&out, term);
    bytes_add_number(&out, vote);
    int error = forgets ? 0 : replace_file(d, "vote", &out, true);
    bytes_free(&out);
    return error;
}

static int load_vote(struct disk *d) {
    struct bytes in = {0};
    d->vote = NOBODY;
    int error = read_file(d, "vote", &in);
    if (error == 0) {
        struct view v = view_of(&in);
        d->term = view_number(&v);
        d->vote = view_number(&v);
        if (v.failed) error = EBADMSG;
    }
    bytes_free(&in);
    return error == ENOENT ? 0 : error;
}

/* ---- the log ---- */

uint64_t disk_last(const struct disk *d) {
    return d->base + d->count;
}

const struct entry *disk_entry(const struct disk *d, uint64_t index) {
    return index > d->base && index <= disk_last(d) ? &d->entries[index - d->base - 1] : NULL;
}

uint64_t disk_term_of(const struct disk *d, uint64_t index) {
    const struct entry *e = disk_entry(d, index);
    return e != NULL ? e->term : index == d->base ? d->base_term : 0;
}

int disk_add(struct disk *d, uint64_t term, const void *command, size_t size) {
    if (d->count == d->room) {
        size_t room = d->room == 0 ? 64 : d->room * 2;
        struct entry *more = realloc(d->entries, room * sizeof *more);
        if (more == NULL) return ENOMEM;
        d->entries = more;
        d->room = room;
    }
    struct entry e = {.term = term};
    bytes_add(&e.command, command, size);
    if (e.command.failed) return ENOMEM;
    d->entries[d->count++] = e;
    return 0;
}

/* Checksum, then index, term and command as one piece. */
static void add_record(struct bytes *out, uint64_t index, const struct entry *e) {
    struct bytes body = {0};
    bytes_add_number(&body, index);
    bytes_add_number(&body, e->term);
    bytes_add(&body, e->command.data, e->command.size);
    bytes_add_number(out, body.failed ? 0 : checksum(body.data, body.size));
    bytes_add_piece(out, body.data, body.size);
    if (body.failed) out->failed = true;
    bytes_free(&body);
}

int disk_sync(struct disk *d) {
    struct bytes out = {0};
    size_t first = d->count;
    while (first > 0 && d->entries[first - 1].end == 0) first--;
    uint64_t start = first > 0 ? d->entries[first - 1].end : 0;
    for (size_t i = first; i < d->count; i++) {
        add_record(&out, d->base + i + 1, &d->entries[i]);
        d->entries[i].end = start + out.size;
    }
    int error = out.failed ? ENOMEM : 0;
    if (error == 0 && out.size > 0) error = cc_file_write(d->log, out.data, out.size, (int64_t)start, NULL);
    if (error == 0 && out.size > 0 && !BUG(BUG_NO_SYNC)) error = cc_file_datasync(d->log);
    bytes_free(&out);
    return error;
}

static void forget_from(struct disk *d, size_t first) {
    for (size_t i = first; i < d->count; i++) bytes_free(&d->entries[i].command);
    if (first < d->count) d->count = first;
}

int disk_cut(struct disk *d, uint64_t index) {
    forget_from(d, (size_t)(index - d->base - 1));
    int error = cc_file_truncate(d->log, d->count > 0 ? (int64_t)d->entries[d->count - 1].end : 0);
    return error == 0 ? cc_file_datasync(d->log) : error;
}

/* Syncs the directory, so that its entries survive a crash. */
static int sync_directory(const char *path) {
    int directory, error = cc_file_open(&directory, path, O_RDONLY | O_DIRECTORY, 0);
    if (error != 0) return error;
    error = cc_file_sync(directory);
    int closed = cc_fd_close(directory);
    return error != 0 ? error : closed;
}

static int open_log(struct disk *d) {
    char path[PATH_SIZE];
    path_of(d, "log", path);
    int error = cc_file_open(&d->log, path, O_RDWR | O_CREAT, 0644);
    return error == 0 ? sync_directory(d->directory) : error;
}

/* Up to the first incomplete record: LOG-1. *end: where that is. */
static int parse_log(struct disk *d, const struct bytes *in, uint64_t *end) {
    struct view v = view_of(in);
    for (*end = 0; v.size > 0; *end = in->size - v.size) {
        uint64_t sum = view_number(&v);
        struct view body = view_piece(&v);
        if (v.failed || checksum(body.data, body.size) != sum) break;
        uint64_t index = view_number(&body), term = view_number(&body);
        if (index <= d->base) continue; /* LOG-2 */
        if (index != disk_last(d) + 1) break;
        int error = disk_add(d, term, body.data, body.size);
        if (error != 0) return error;
        d->entries[d->count - 1].end = in->size - v.size;
    }
    return 0;
}

/* Records that the snapshot covers cannot be removed in place: so the others are written to a new file. */
static int rewrite_log(struct disk *d) {
    struct bytes out = {0};
    for (size_t i = 0; i < d->count; i++) {
        add_record(&out, d->base + i + 1, &d->entries[i]);
        d->entries[i].end = out.size;
    }
    int error = replace_file(d, "log", &out, false);
    bytes_free(&out);
    if (error == 0 && d->log >= 0) error = cc_fd_close(d->log);
    d->log = -1;
    return error == 0 ? open_log(d) : error;
}

static int load_log(struct disk *d) {
    struct stat status;
    struct bytes in = {0};
    uint64_t end;
    size_t n;
    int error = open_log(d);
    if (error == 0) error = cc_file_stat(d->log, &status);
    if (error != 0) return error;
    char *data = malloc((size_t)status.st_size + 1);
    if (data == NULL) return ENOMEM;
    error = cc_file_read(d->log, data, (size_t)status.st_size, 0, &n);
    if (error == 0) bytes_add(&in, data, n);
    free(data);
    if (error == 0) error = in.failed ? ENOMEM : parse_log(d, &in, &end);
    if (error == 0) error = rewrite_log(d);
    bytes_free(&in);
    return error;
}

/* ---- snapshots ---- */

int disk_set_snapshot(struct disk *d, const void *data, size_t size, uint64_t index, uint64_t term) {
    struct bytes out = {0};
    bytes_add_number(&out, index);
    bytes_add_number(&out, term);
    bytes_add(&out, data, size);
    int error = replace_file(d, "snapshot", &out, true);
    bytes_free(&out);
    if (error != 0) return error;
    struct bytes copy = {0};
    bytes_add(&copy, data, size);
    if (copy.failed) return ENOMEM;
    bytes_free(&d->snapshot);
    d->snapshot = copy;
    bool matches = disk_term_of(d, index) == term;
    size_t covered = !matches || index >= disk_last(d) ? d->count : (size_t)(index - d->base);
    for (size_t i = 0; i < covered; i++) bytes_free(&d->entries[i].command);
    if (covered > 0) memmove(d->entries, d->entries + covered, (d->count - covered) * sizeof *d->entries);
    d->count -= covered;
    d->base = index;
    d->base_term = term;
    return rewrite_log(d);
}

static int load_snapshot(struct disk *d) {
    struct bytes in = {0};
    int error = read_file(d, "snapshot", &in);
    if (error == 0) {
        struct view v = view_of(&in);
        d->base = view_number(&v);
        d->base_term = view_number(&v);
        bytes_add(&d->snapshot, v.data, v.size);
        if (v.failed || d->snapshot.failed) error = v.failed ? EBADMSG : ENOMEM;
    }
    bytes_free(&in);
    return error == ENOENT ? 0 : error;
}

int disk_open(struct disk *d, const char *directory) {
    *d = (struct disk){.directory = directory, .log = -1};
    char parent[PATH_SIZE];
    path_of(d, "..", parent);
    int error = cc_path_mkdir(directory, 0755);
    if (error == 0) error = sync_directory(parent);
    if (error == EEXIST) error = 0;
    if (error == 0) error = load_vote(d);
    if (error == 0) error = load_snapshot(d);
    return error == 0 ? load_log(d) : error;
}

void disk_close(struct disk *d) {
    if (d->log >= 0) (void)cc_fd_close(d->log);
    forget_from(d, 0);
    free(d->entries);
    bytes_free(&d->snapshot);
}
