/* disk.c - the files of a simulated host, in memory, and what a crash leaves of them.
 *
 * DISK-1  A file has its content, and the part of it that is on the disk: an image, and the writes since that image was
 *         made. A sync makes a new image. A crash draws which of the writes have reached the disk, whole or in part.
 * DISK-2  The same holds for names: those on the disk, and the changes since then, in order. A sync of a directory
 *         makes the changes in it durable, and all before a rename into it from another directory; a sync of a file
 *         does not. A crash draws how many of the changes have reached the disk, from the first on; of the first that
 *         has not, if it is a rename, perhaps the new name exists but the old one was not removed.
 * DISK-3  The list of writes is bounded also on a host that never syncs: beyond the limit the oldest are on the disk.
 */
#include "sim/system.h"

#include "base/mem.h"
#include "os/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 1024, UNSYNCED_MAX = 4 << 20, FILE_MAX = 1 << 30 };

struct image {
    char *bytes;
    size_t size, room;
};

/* A write, or a change of the file's size. */
struct change {
    struct change *next;
    bool truncates;
    size_t offset, size;
    char bytes[];
};

struct inode {
    uint64_t number;
    unsigned refs; /* names, names on the disk, open files, changes of names */
    bool is_directory;
    mode_t mode;
    uint64_t modified;
    struct image now, disk;
    struct change *first, *last; /* DISK-1 */
    size_t unsynced;
    unsigned shared;                /* locks */
    const struct open_file *holder; /* of an exclusive lock */
};

struct entry {
    struct entry *next;
    struct inode *inode;
    char path[];
};

enum rename_kind { NAME_LINK, NAME_UNLINK, NAME_RENAME };

struct name_change {
    struct name_change *next;
    enum rename_kind kind;
    struct inode *inode;
    char *from; /* stored after `path`; NAME_RENAME */
    char path[];
};

struct files {
    struct inode root;
    struct entry *names, *disk_names; /* DISK-2 */
    struct name_change *first, *last;
    uint64_t inodes;
};

struct open_file {
    struct inode *inode;
    int flags;
    size_t position;
    size_t cursor; /* of a directory */
    enum os_file_lock lock;
    struct files *files;
    char path[];
};

/* ---- content ---- */

static int image_resize(struct image *i, size_t size) {
    if (size > FILE_MAX) return -EFBIG;
    if (size > i->room) {
        size_t room = i->room * 2 > size ? i->room * 2 : size;
        char *more = cc__mem_alloc(room); /* zeroed */
        if (more == NULL) return -ENOSPC;
        if (i->size > 0) memcpy(more, i->bytes, i->size);
        cc__mem_free(i->bytes);
        i->bytes = more;
        i->room = room;
    }
    if (size < i->size) memset(i->bytes + size, 0, i->size - size);
    i->size = size;
    return 0;
}

static int image_write(struct image *i, size_t offset, const char *bytes, size_t size) {
    if (offset + size > i->size) {
        int rc = image_resize(i, offset + size);
        if (rc != 0) return rc;
    }
    if (size > 0) memcpy(i->bytes + offset, bytes, size);
    return 0;
}

static void image_free(struct image *i) {
    cc__mem_free(i->bytes);
    *i = (struct image){0};
}

static void apply(struct image *to, const struct change *c, size_t size) {
    if (c->truncates)
        (void)image_resize(to, c->offset);
    else
        (void)image_write(to, c->offset, c->bytes, size);
}

static struct change *take_change(struct inode *inode) {
    struct change *c = inode->first;
    inode->first = c->next;
    if (inode->first == NULL) inode->last = NULL;
    inode->unsynced -= c->size;
    return c;
}

static void write_back(struct inode *inode, size_t left) {
    while (inode->first != NULL && inode->unsynced >= left) {
        struct change *c = take_change(inode);
        apply(&inode->disk, c, c->size);
        cc__mem_free(c);
    }
}

/* The caller has applied the change to `now`. */
static void note_change(struct inode *inode, struct change *c) {
    c->next = NULL;
    *(inode->last != NULL ? &inode->last->next : &inode->first) = c;
    inode->last = c;
    inode->unsynced += c->size;
    inode->modified = cc__clock_now();
    if (inode->unsynced > UNSYNCED_MAX) write_back(inode, UNSYNCED_MAX); /* DISK-3 */
}

static void inode_drop(struct inode *inode) {
    if (--inode->refs > 0) return;
    while (inode->first != NULL) cc__mem_free(take_change(inode));
    image_free(&inode->now);
    image_free(&inode->disk);
    cc__mem_free(inode);
}

/* ---- names ---- */

static struct files *files_of(uint32_t host) {
    struct host *h = &cc__sys.hosts[host];
    if (h->files == NULL) {
        h->files = cc__mem_alloc_small(sizeof *h->files);
        if (h->files != NULL)
            h->files->root = (struct inode){.number = 1, .refs = 1, .is_directory = true, .mode = 0755};
        if (h->files != NULL) h->files->inodes = 1;
    }
    return h->files;
}

/* "/a/b" for "a//./b", "/" for ".". The working directory is the root. */
static int normalise(const char *path, char out[PATH_SIZE]) {
    size_t n = 0;
    if (*path == 0) return -ENOENT;
    while (*path != 0) {
        size_t length = strcspn(path, "/");
        if (length == 2 && memcmp(path, "..", 2) == 0) {
            while (n > 0 && out[--n] != '/') continue;
        } else if (length > 0 && !(length == 1 && *path == '.')) {
            if (length > NAME_MAX || n + length + 2 > PATH_SIZE) return -ENAMETOOLONG;
            out[n++] = '/';
            memcpy(out + n, path, length);
            n += length;
        }
        path += length + (path[length] == '/');
    }
    if (n == 0) out[n++] = '/';
    out[n] = 0;
    return 0;
}

/* "a/" and "a/." must name directories. */
static bool asks_for_directory(const char *path) {
    size_t n = strlen(path);
    return n > 0 && (path[n - 1] == '/' || (n > 1 && path[n - 1] == '.' && path[n - 2] == '/'));
}

static struct entry **find_in(struct entry **list, const char *path) {
    while (*list != NULL && strcmp((*list)->path, path) != 0) list = &(*list)->next;
    return list;
}

static struct inode *find(struct files *f, const char *path) {
    if (strcmp(path, "/") == 0) return &f->root;
    struct entry *e = *find_in(&f->names, path);
    return e != NULL ? e->inode : NULL;
}

static size_t parent_length(const char *path) {
    size_t n = (size_t)(strrchr(path, '/') - path);
    return n == 0 ? 1 : n;
}

static bool is_in(const char *path, const char *directory) {
    size_t n = parent_length(path);
    return strcmp(path, "/") != 0 && strlen(directory) == n && memcmp(path, directory, n) == 0;
}

/* Checks the directory of a name: 0, -ENOENT or -ENOTDIR. */
static int check_parent(struct files *f, const char *path) {
    char parent[PATH_SIZE];
    size_t n = parent_length(path);
    memcpy(parent, path, n);
    parent[n] = 0;
    const struct inode *inode = find(f, parent);
    return inode == NULL ? -ENOENT : !inode->is_directory ? -ENOTDIR : 0;
}

static int entry_set(struct entry **list, const char *path, struct inode *inode) {
    struct entry **at = find_in(list, path), *e = *at;
    if (e == NULL) {
        size_t length = strlen(path) + 1;
        e = cc__mem_alloc_small(sizeof *e + length);
        if (e == NULL) return -ENOSPC;
        memcpy(e->path, path, length);
        *at = e;
    } else {
        inode_drop(e->inode);
    }
    inode->refs++;
    e->inode = inode;
    return 0;
}

static void entry_remove(struct entry **list, const char *path) {
    struct entry **at = find_in(list, path), *e = *at;
    if (e == NULL) return;
    *at = e->next;
    inode_drop(e->inode);
    cc__mem_free(e);
}

static struct name_change *make_name_change(enum rename_kind kind, const char *path, const char *from) {
    size_t length = strlen(path) + 1, more = from != NULL ? strlen(from) + 1 : 0;
    struct name_change *c = cc__mem_alloc_small(sizeof *c + length + more);
    if (c == NULL) return NULL;
    c->kind = kind;
    memcpy(c->path, path, length);
    if (from != NULL) c->from = memcpy(c->path + length, from, more);
    return c;
}

static void note_name_change(struct files *f, struct name_change *c, struct inode *inode) {
    c->inode = inode;
    inode->refs++;
    *(f->last != NULL ? &f->last->next : &f->first) = c;
    f->last = c;
}

static void apply_name_change(struct files *f, const struct name_change *c, bool half) {
    if (c->kind == NAME_UNLINK)
        entry_remove(&f->disk_names, c->path);
    else
        (void)entry_set(&f->disk_names, c->path, c->inode);
    if (c->kind == NAME_RENAME && !half) entry_remove(&f->disk_names, c->from);
}

static void free_name_change(struct name_change *c) {
    inode_drop(c->inode);
    cc__mem_free(c);
}

/* The last rename into a directory from another one: changes before it may concern its old name, and must not become
 * durable after it. NULL: none. */
static const struct name_change *last_from_elsewhere(const struct files *f, const char *directory) {
    const struct name_change *last = NULL;
    for (const struct name_change *c = f->first; c != NULL; c = c->next)
        if (c->kind == NAME_RENAME && is_in(c->path, directory) && !is_in(c->from, directory)) last = c;
    return last;
}

/* Makes the changes in a directory durable. */
static void sync_directory(struct files *f, const char *directory) {
    struct name_change **at = &f->first, *kept = NULL;
    const struct name_change *last = last_from_elsewhere(f, directory);
    while (*at != NULL) {
        struct name_change *c = *at;
        if (last == NULL && !is_in(c->path, directory)) {
            kept = c;
            at = &c->next;
            continue;
        }
        if (c == last) last = NULL;
        *at = c->next;
        apply_name_change(f, c, false);
        free_name_change(c);
    }
    f->last = kept;
}

/* ---- a crash ---- */

/* DISK-1. */
static void crash_content(struct inode *inode) {
    enum { NOTHING, SOME_FIRST, ANY } mode = cc__sys_draw(3);
    bool over = mode == NOTHING;
    while (inode->first != NULL) {
        struct change *c = take_change(inode);
        uint32_t drawn = cc__sys_draw(4);
        bool lost = over || drawn == 0, torn = !lost && drawn == 1 && !c->truncates && c->size > 1;
        if (mode == SOME_FIRST && (lost || torn)) over = true;
        if (!lost) apply(&inode->disk, c, torn ? 1 + cc__sys_draw((uint32_t)c->size - 1) : c->size);
        cc__sys.stats.writes_lost += lost;
        cc__sys.stats.writes_torn += torn;
        cc__mem_free(c);
    }
    image_free(&inode->now);
    (void)image_write(&inode->now, 0, inode->disk.bytes, inode->disk.size);
    inode->shared = 0;
    inode->holder = NULL;
}

static void crash_names(struct files *f) { /* DISK-2 */
    uint32_t count = 0, n = 0;
    for (const struct name_change *c = f->first; c != NULL; c = c->next) count++;
    uint32_t kept = cc__sys_draw(count + 1);
    for (struct name_change *c = f->first, *next; c != NULL; c = next, n++) {
        next = c->next;
        bool half = n == kept && c->kind == NAME_RENAME && cc__sys_draw(2) == 0;
        if (n < kept || half) apply_name_change(f, c, half);
        if (n >= kept) cc__sys.stats.names_lost++;
        free_name_change(c);
    }
    f->first = f->last = NULL;
    while (f->names != NULL) entry_remove(&f->names, f->names->path);
    for (const struct entry *e = f->disk_names; e != NULL; e = e->next) (void)entry_set(&f->names, e->path, e->inode);
}

void cc__disk_crash(struct files *f) {
    crash_names(f);
    for (struct entry *e = f->names; e != NULL; e = e->next) crash_content(e->inode);
    /* A name whose directory did not survive is unreachable. */
    for (struct entry *e = f->names, *next; e != NULL; e = next) {
        next = e->next;
        if (check_parent(f, e->path) == 0) continue;
        entry_remove(&f->disk_names, e->path);
        entry_remove(&f->names, e->path);
        next = f->names; /* so are the names in it */
    }
}

void cc__disk_free(struct files *f) {
    for (struct name_change *c = f->first, *next; c != NULL; c = next) {
        next = c->next;
        free_name_change(c);
    }
    while (f->names != NULL) entry_remove(&f->names, f->names->path);
    while (f->disk_names != NULL) entry_remove(&f->disk_names, f->disk_names->path);
    cc__mem_free(f);
}

/* ---- open and close ---- */

static struct inode *make_inode(struct files *f, mode_t mode, bool is_directory) {
    struct inode *inode = cc__mem_alloc_small(sizeof *inode);
    if (inode == NULL) return NULL;
    *inode = (struct inode){.number = ++f->inodes, .mode = mode & 0777, .is_directory = is_directory};
    inode->modified = cc__clock_now();
    return inode;
}

/* Creates a file or directory, with a name. */
static int create(struct files *f, const char *path, mode_t mode, bool is_directory, struct inode **made) {
    int rc = check_parent(f, path);
    if (rc != 0) return rc;
    struct inode *inode = make_inode(f, mode, is_directory);
    struct name_change *c = inode != NULL ? make_name_change(NAME_LINK, path, NULL) : NULL;
    if (c == NULL || entry_set(&f->names, path, inode) != 0) {
        cc__mem_free(c);
        cc__mem_free(inode);
        return -ENOSPC;
    }
    note_name_change(f, c, inode);
    *made = inode;
    return 0;
}

/* Opens it: a descriptor or -errno. */
static int open_inode(struct files *f, struct inode *inode, const char *path, int flags) {
    struct sock *s;
    size_t length = strlen(path) + 1;
    struct open_file *file = cc__mem_alloc_small(sizeof *file + length);
    int rc = file == NULL ? -ENOMEM : cc__sys_open(SOCK_FILE, &s);
    if (rc != 0) {
        cc__mem_free(file);
        return rc;
    }
    file->inode = inode;
    file->flags = flags;
    file->files = f;
    memcpy(file->path, path, length);
    inode->refs++;
    s->file = file;
    return cc__sys_number(s);
}

static int set_size(struct inode *inode, size_t size) {
    struct change *c = cc__mem_alloc_small(sizeof *c);
    if (c == NULL) return -ENOSPC;
    int rc = image_resize(&inode->now, size);
    if (rc != 0) {
        cc__mem_free(c);
        return rc;
    }
    c->truncates = true;
    c->offset = size;
    note_change(inode, c);
    return 0;
}

int cc__disk_open(uint32_t host, const char *path, int flags, mode_t mode) {
    char name[PATH_SIZE];
    struct files *f = files_of(host);
    int rc = f == NULL ? -ENOMEM : normalise(path, name);
    if (rc != 0) return rc;
    struct inode *inode = find(f, name);
    bool writes = (flags & O_ACCMODE) != O_RDONLY, made = false;
    if (inode != NULL && (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) return -EEXIST;
    if (inode == NULL && (flags & O_CREAT) && asks_for_directory(path)) return -EISDIR;
    if (inode != NULL && !inode->is_directory && asks_for_directory(path)) return -ENOTDIR;
    if (inode == NULL) {
        rc = flags & O_CREAT              ? create(f, name, mode, false, &inode)
             : check_parent(f, name) != 0 ? check_parent(f, name)
                                          : -ENOENT;
        if (rc != 0) return rc;
        made = true;
    }
    if (inode->is_directory && (writes || (flags & O_CREAT))) return -EISDIR;
    if (!inode->is_directory && (flags & O_DIRECTORY)) return -ENOTDIR;
    if (!made && writes && (flags & O_TRUNC) && inode->now.size > 0) rc = set_size(inode, 0);
    return rc != 0 ? rc : open_inode(f, inode, name, flags);
}

int cc__disk_temp(uint32_t host, const char *directory) {
    char name[PATH_SIZE];
    struct files *f = files_of(host);
    int rc = f == NULL ? -ENOMEM : normalise(directory, name);
    if (rc != 0) return rc;
    const struct inode *parent = find(f, name);
    if (parent == NULL || !parent->is_directory) return parent == NULL ? -ENOENT : -ENOTDIR;
    struct inode *inode = make_inode(f, 0600, false);
    if (inode == NULL) return -ENOSPC;
    rc = open_inode(f, inode, name, O_RDWR);
    if (rc < 0) cc__mem_free(inode);
    return rc;
}

static void unlock(struct open_file *file) {
    if (file->lock == OS_SHARED) file->inode->shared--;
    if (file->inode->holder == file) file->inode->holder = NULL;
    file->lock = OS_UNLOCK;
}

void cc__disk_close(struct open_file *file) {
    unlock(file);
    inode_drop(file->inode);
    cc__mem_free(file);
}

int cc__disk_lock(struct sock *s, enum os_file_lock kind) {
    struct open_file *file = s->file;
    struct inode *inode = file->inode;
    int mode = file->flags & O_ACCMODE;
    if ((kind == OS_SHARED && mode == O_WRONLY) || (kind == OS_EXCLUSIVE && mode == O_RDONLY)) return -EBADF;
    unsigned others = inode->shared - (file->lock == OS_SHARED);
    bool held = inode->holder != NULL && inode->holder != file;
    if (kind != OS_UNLOCK && (held || (kind == OS_EXCLUSIVE && others > 0))) return -EAGAIN;
    unlock(file);
    file->lock = kind;
    if (kind == OS_SHARED) inode->shared++;
    if (kind == OS_EXCLUSIVE) inode->holder = file;
    return 0;
}

/* ---- bytes ---- */

ssize_t cc__disk_read(struct sock *s, const struct iovec *parts, size_t n, off_t offset) {
    struct open_file *file = s->file;
    const struct image *now = &file->inode->now;
    if (file->inode->is_directory) return -EISDIR;
    if ((file->flags & O_ACCMODE) == O_WRONLY) return -EBADF;
    size_t at = offset == OS_POSITION ? file->position : (size_t)offset, got = 0;
    for (size_t i = 0; i < n && at < now->size; i++) {
        size_t part = parts[i].iov_len < now->size - at ? parts[i].iov_len : now->size - at;
        if (part > 0) memcpy(parts[i].iov_base, now->bytes + at, part);
        at += part;
        got += part;
    }
    if (offset == OS_POSITION) file->position = at;
    return (ssize_t)got;
}

ssize_t cc__disk_write(struct sock *s, const struct iovec *parts, size_t n, off_t offset) {
    struct open_file *file = s->file;
    struct inode *inode = file->inode;
    if ((file->flags & O_ACCMODE) == O_RDONLY) return -EBADF;
    size_t size = 0, at = 0;
    for (size_t i = 0; i < n; i++) size += parts[i].iov_len;
    size_t to = file->flags & O_APPEND ? inode->now.size : offset == OS_POSITION ? file->position : (size_t)offset;
    if (size == 0) return 0;
    if (size > FILE_MAX || to > FILE_MAX - size) return -EFBIG;
    struct change *c = cc__mem_alloc_small(sizeof *c + size);
    if (c == NULL) return -ENOSPC;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].iov_len > 0) memcpy(c->bytes + at, parts[i].iov_base, parts[i].iov_len);
        at += parts[i].iov_len;
    }
    c->offset = to;
    c->size = size;
    int rc = image_write(&inode->now, to, c->bytes, size);
    if (rc != 0) {
        cc__mem_free(c);
        return rc;
    }
    note_change(inode, c);
    if (offset == OS_POSITION) file->position = to + size;
    return (ssize_t)size;
}

int cc__disk_sync(struct sock *s) {
    struct open_file *file = s->file;
    cc__sys.stats.syncs++;
    if (file->inode->is_directory)
        sync_directory(file->files, file->path);
    else
        write_back(file->inode, 0);
    return 0;
}

int cc__disk_truncate(struct sock *s, off_t size) {
    struct open_file *file = s->file;
    if (size < 0 || file->inode->is_directory || (file->flags & O_ACCMODE) == O_RDONLY) return -EINVAL;
    return size > FILE_MAX ? -EFBIG : set_size(file->inode, (size_t)size);
}

/* ---- status ---- */

static void status_of(const struct inode *inode, struct stat *status) {
    memset(status, 0, sizeof *status);
    status->st_ino = inode->number;
    status->st_mode = inode->mode | (inode->is_directory ? S_IFDIR : S_IFREG);
    status->st_nlink = 1;
    status->st_size = (off_t)inode->now.size;
    status->st_blksize = 4096;
    status->st_blocks = (blkcnt_t)((inode->now.size + 511) / 512);
    status->st_mtim.tv_sec = (time_t)(inode->modified / 1000000000);
    status->st_mtim.tv_nsec = (long)(inode->modified % 1000000000);
    status->st_atim = status->st_ctim = status->st_mtim;
}

int cc__disk_fstat(struct sock *s, struct stat *status) {
    status_of(s->file->inode, status);
    return 0;
}

int cc__disk_stat(uint32_t host, const char *path, struct stat *status) {
    char name[PATH_SIZE];
    struct files *f = files_of(host);
    int rc = f == NULL ? -ENOMEM : normalise(path, name);
    if (rc != 0) return rc;
    const struct inode *inode = find(f, name);
    if (inode == NULL) return check_parent(f, name) != 0 ? check_parent(f, name) : -ENOENT;
    if (!inode->is_directory && asks_for_directory(path)) return -ENOTDIR;
    status_of(inode, status);
    return 0;
}

/* ---- changing names ---- */

static bool is_empty(struct files *f, const char *directory) {
    for (const struct entry *e = f->names; e != NULL; e = e->next)
        if (is_in(e->path, directory)) return false;
    return true;
}

int cc__disk_rename(uint32_t host, const char *from, const char *to) {
    char old[PATH_SIZE], new[PATH_SIZE];
    struct files *f = files_of(host);
    int rc = f == NULL ? -ENOMEM : normalise(from, old);
    if (rc == 0) rc = normalise(to, new);
    if (rc != 0) return rc;
    struct inode *inode = find(f, old), *target = find(f, new);
    if (inode == NULL) return -ENOENT;
    if (inode->is_directory) return -EOPNOTSUPP; /* not simulated */
    if (asks_for_directory(from) || asks_for_directory(to)) return -ENOTDIR;
    if (target != NULL && target->is_directory) return -EISDIR;
    rc = check_parent(f, new);
    if (rc != 0 || inode == target) return rc;
    struct name_change *c = make_name_change(NAME_RENAME, new, old);
    if (c == NULL || entry_set(&f->names, new, inode) != 0) {
        cc__mem_free(c);
        return -ENOSPC;
    }
    note_name_change(f, c, inode);
    entry_remove(&f->names, old);
    return 0;
}

int cc__disk_unlink(uint32_t host, const char *path, bool directory) {
    char name[PATH_SIZE];
    struct files *f = files_of(host);
    int rc = f == NULL ? -ENOMEM : normalise(path, name);
    if (rc != 0) return rc;
    struct inode *inode = find(f, name);
    if (inode == NULL) return check_parent(f, name) != 0 ? check_parent(f, name) : -ENOENT;
    if (inode == &f->root) return -EBUSY;
    if (!inode->is_directory && (directory || asks_for_directory(path))) return -ENOTDIR;
    if (inode->is_directory != directory) return -EISDIR;
    if (directory && !is_empty(f, name)) return -ENOTEMPTY;
    struct name_change *c = make_name_change(NAME_UNLINK, name, NULL);
    if (c == NULL) return -ENOSPC;
    note_name_change(f, c, inode);
    entry_remove(&f->names, name);
    return 0;
}

int cc__disk_mkdir(uint32_t host, const char *path, mode_t mode) {
    char name[PATH_SIZE];
    struct inode *made;
    struct files *f = files_of(host);
    int rc = f == NULL ? -ENOMEM : normalise(path, name);
    if (rc != 0) return rc;
    return find(f, name) != NULL ? -EEXIST : create(f, name, mode, true, &made);
}

/* In the format of getdents64(2). */
ssize_t cc__disk_dir_read(struct sock *s, void *buffer, size_t size) {
    struct open_file *file = s->file;
    size_t at = 0, index = 0;
    if (!file->inode->is_directory) return -ENOTDIR;
    for (const struct entry *e = file->files->names; e != NULL; e = e->next) {
        if (!is_in(e->path, file->path) || index++ < file->cursor) continue;
        const char *name = strrchr(e->path, '/') + 1;
        size_t length = (19 + strlen(name) + 1 + 7) & ~(size_t)7;
        if (at + length > size) return at > 0 ? (ssize_t)at : -EINVAL;
        char *out = (char *)buffer + at;
        unsigned short record = (unsigned short)length;
        memset(out, 0, length);
        memcpy(out, &e->inode->number, 8);
        memcpy(out + 16, &record, sizeof record);
        out[18] = e->inode->is_directory ? DT_DIR : DT_REG;
        memcpy(out + 19, name, strlen(name));
        at += length;
        file->cursor++;
    }
    return (ssize_t)at;
}
