/* dir.c - directories, read a buffer at a time: one call of the pool for as many entries as fit. */
#include "base/mem.h"
#include "file/file.h"
#include "os/descriptor.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { DIR_BUFFER = 32 * 1024 };

struct CCDir {
    int fd;
    bool last; /* the buffer has the last entries */
    size_t at, end;
    _Alignas(8) char buffer[DIR_BUFFER];
};

int cc_dir_open(CCDir **dir, const char *path) {
    if (dir == NULL) return EINVAL;
    *dir = NULL;
    if (path == NULL) return EINVAL;
    CCDir *made = cc__mem_alloc(sizeof *made);
    if (made == NULL) return ENOMEM;
    int rc = cc_file_open(&made->fd, path, O_RDONLY | O_DIRECTORY, 0);
    if (rc != 0) {
        cc__mem_free(made);
        return rc;
    }
    *dir = made;
    return 0;
}

/* Until the directory ends or the buffer is full, which the system reports as EINVAL. */
static long fill(void *arg) {
    CCDir *dir = arg;
    ssize_t n;
    dir->at = dir->end = 0;
    while ((n = cc__os_dir_read(dir->fd, dir->buffer + dir->end, DIR_BUFFER - dir->end)) > 0) dir->end += (size_t)n;
    if (n == -ENOENT) n = 0; /* the directory was removed: it has no entries any more */
    dir->last = n == 0;
    return n == 0 || dir->end > 0 ? 0 : n; /* with entries, the next call reports the error */
}

int cc_dir_next(CCDir *dir, CCDirEntry *entry) {
    struct os_dir_entry found;
    if (dir == NULL || entry == NULL) return EINVAL;
    memset(entry, 0, sizeof *entry);
    for (;;) {
        while (dir->at < dir->end) {
            dir->at = cc__os_dir_entry(dir->buffer, dir->at, &found);
            if (strcmp(found.name, ".") == 0 || strcmp(found.name, "..") == 0) continue;
            *entry = (CCDirEntry){.name = found.name, .inode = found.inode, .type = found.type};
            return 0;
        }
        if (dir->last) return 0;
        long rc = cc__file_call("readdir", fill, dir);
        if (rc != 0) return (int)-rc;
    }
}

void cc_dir_close(CCDir *dir) {
    if (dir == NULL) return;
    (void)cc__os_close(dir->fd);
    cc__mem_free(dir);
}
