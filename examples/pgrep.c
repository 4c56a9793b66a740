/* A parallel grep: a fiber for every directory and file of a tree, on as many CPUs as there are. A file in the page
 * cache is read at once; one that is not blocks no worker.
 *
 *   pgrep TEXT DIRECTORY    lines that contain the text, sorted by file
 *   pgrep                   the same in a small tree that it creates
 */
#include <ccc/ccc.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *wanted;
static CCNursery *tree;
static CCSem open_files = {0};

/* ---- what was found ---- */

static CCMutex lock;
static char **found;
static size_t count, room;

static void keep(const char *path, int line, const char *text, size_t length) {
    char *entry = NULL;
    if (asprintf(&entry, "%s:%d: %.*s", path, line, (int)length, text) < 0) abort();
    if (cc_mutex_lock(&lock) != 0) abort();
    if (count == room) {
        room = room * 2 + 64;
        found = realloc(found, room * sizeof *found);
        if (found == NULL) abort();
    }
    found[count++] = entry;
    cc_mutex_unlock(&lock);
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- the search ---- */

static void search_text(const char *path, const char *text, size_t size) {
    int number = 1;
    for (const char *line = text, *end; line < text + size; line = end + 1, number++) {
        end = memchr(line, '\n', (size_t)(text + size - line));
        if (end == NULL) end = text + size;
        if (memmem(line, (size_t)(end - line), wanted, strlen(wanted)) != NULL)
            keep(path, number, line, (size_t)(end - line));
    }
}

static int search_file(const char *path) {
    struct stat status;
    size_t size = 0;
    int fd, rc = cc_file_open(&fd, path, O_RDONLY, 0);
    if (rc != 0) return rc;
    rc = cc_file_stat(fd, &status);
    char *text = rc == 0 ? malloc((size_t)status.st_size + 1) : NULL;
    if (text != NULL) rc = cc_file_read(fd, text, (size_t)status.st_size, 0, &size);
    if (text != NULL && rc == 0) search_text(path, text, size);
    free(text);
    cc_fd_close(fd);
    return rc;
}

CC_CHILD(grep_file, { char *path; }) {
    int rc = cc_sem_acquire(&open_files);
    if (rc == 0) {
        rc = search_file(self->path);
        cc_sem_release(&open_files, 1);
    }
    if (rc != 0) fprintf(stderr, "pgrep: %s: %s\n", self->path, strerror(rc));
    free(self->path);
    return 0;
}

CC_CHILD(grep_directory, { char *path; }) {
    CCDir *dir;
    CCDirEntry entry = {0};
    int rc = cc_dir_open(&dir, self->path);
    while (rc == 0 && (rc = cc_dir_next(dir, &entry)) == 0 && entry.name != NULL) {
        char *path;
        if (asprintf(&path, "%s/%s", self->path, entry.name) < 0) abort();
        if (entry.type == DT_DIR)
            rc = CC_GO_IN(tree, grep_directory, .path = path);
        else if (entry.type == DT_REG)
            rc = CC_GO_IN(tree, grep_file, .path = path);
        else
            free(path);
    }
    if (rc != 0) fprintf(stderr, "pgrep: %s: %s\n", self->path, strerror(rc));
    cc_dir_close(dir);
    free(self->path);
    return 0;
}

static int grep_tree(const char *root) {
    int rc = -1;
    char *path = strdup(root);
    if (path == NULL || cc_sem_release(&open_files, 64) != 0) abort();
    CC_NURSERY(n, .result = &rc) {
        tree = n;
        if (CC_GO_IN(n, grep_directory, .path = path) != 0) abort();
    }
    qsort(found, count, sizeof *found, compare);
    for (size_t i = 0; i < count; i++) {
        puts(found[i]);
        free(found[i]);
    }
    free(found);
    return rc;
}

/* ---- a tree to search ---- */

static void make_tree(void) {
    char path[32], text[64];
    for (int d = 0; d < 4; d++) {
        snprintf(path, sizeof path, "%d", d);
        if (cc_path_mkdir(path, 0700) != 0) abort();
        for (int f = 0; f < 10; f++) {
            int fd, size = snprintf(text, sizeof text, "a line\n%d and %d%s\n", d, f, d == f ? " are equal" : "");
            snprintf(path, sizeof path, "%d/%d.txt", d, f);
            if (cc_file_open(&fd, path, O_WRONLY | O_CREAT, 0600) != 0) abort();
            if (cc_file_write(fd, text, (size_t)size, 0, NULL) != 0) abort();
            cc_fd_close(fd);
        }
    }
}

int main(int argc, char **argv) {
    char directory[] = "/tmp/ccc-pgrep-XXXXXX", command[64];
    if (argc == 3) {
        wanted = argv[1];
        return grep_tree(argv[2]);
    }
    if (mkdtemp(directory) == NULL || chdir(directory) != 0) return 1;
    make_tree();
    wanted = "equal";
    int rc = grep_tree(".");
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command) != 0 || rc != 0;
}
