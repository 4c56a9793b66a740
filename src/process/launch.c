/* launch.c - converts the options of a start into the arguments of the system calls. */
#include "process/launch.h"

#include "base/mem.h"
#include "nursery/nursery.h"
#include "os/descriptor.h"

#include <ccc/cc_fd.h>
#include <errno.h>
#include <string.h>

enum { FD_MAX = 1023, DEFAULT_COUNT = 64 };

/* Where execvp searches without PATH. */
#define DEFAULT_PATH "/bin:/usr/bin"

/* ---- validation ---- */

static bool bad_stream(const CCProcessStream *s, bool is_err) {
    switch (s->kind) {
    case CC_PROCESS_INHERIT:
    case CC_PROCESS_NULL:
    case CC_PROCESS_PIPE:
        return false;
    case CC_PROCESS_FD:
        return s->fd < 0;
    case CC_PROCESS_STDOUT:
        return !is_err;
    default:
        return true;
    }
}

static bool bad_lists(const CCProcessOptions *o) {
    if ((o->fds == NULL && o->fd_count != 0) || (o->limits == NULL && o->limit_count != 0)) return true;
    if (o->fd_count > FD_MAX || o->limit_count > DEFAULT_COUNT) return true;
    uint64_t taken[FD_MAX / 64 + 1] = {0};
    for (size_t i = 0; i < o->fd_count; i++) {
        int to = o->fds[i].to;
        if (o->fds[i].from < 0 || to < 3 || to > FD_MAX) return true;
        uint64_t bit = UINT64_C(1) << (to % 64);
        if (taken[to / 64] & bit) return true;
        taken[to / 64] |= bit;
    }
    return false;
}

int cc__launch_check(const CCProcessOptions *o) {
    if (o == NULL || o->argv == NULL || o->argv[0] == NULL || cc__reserved_used(o)) return EINVAL;
    if (o->program != NULL && o->program[0] == '\0') return ENOENT;
    if (o->program == NULL && o->argv[0][0] == '\0') return ENOENT;
    if (bad_stream(&o->in, false) || bad_stream(&o->out, false) || bad_stream(&o->err, true) || bad_lists(o))
        return EINVAL;
    if (o->group != CC_PROCESS_GROUP_OWN && o->group != CC_PROCESS_GROUP_SAME && o->group != CC_PROCESS_GROUP_SESSION)
        return EINVAL;
    return o->nursery != NULL && o->root ? EINVAL : 0;
}

/* Before there are pipes: one of them could have the number of a descriptor that is not open. */
static int check_open(const CCProcessOptions *o) {
    const CCProcessStream *streams[] = {&o->in, &o->out, &o->err};
    int error = 0;
    for (int i = 0; i < 3 && error == 0; i++)
        if (streams[i]->kind == CC_PROCESS_FD) error = cc__os_valid(streams[i]->fd);
    if (error == 0 && o->err.kind == CC_PROCESS_STDOUT && o->out.kind == CC_PROCESS_INHERIT) error = cc__os_valid(1);
    for (size_t i = 0; i < o->fd_count && error == 0; i++) error = cc__os_valid(o->fds[i].from);
    return error;
}

/* ---- candidate paths of the program ---- */

static const char *path_of(char *const *envp) {
    for (; envp != NULL && *envp != NULL; envp++)
        if (strncmp(*envp, "PATH=", 5) == 0) return *envp + 5;
    return DEFAULT_PATH;
}

static size_t count_folders(const char *path) {
    size_t n = 1;
    for (; *path != '\0'; path++) n += *path == ':';
    return n;
}

/* An empty folder means the working directory. */
static char *put_path(char *text, const char *folder, size_t length, const char *program) {
    memcpy(text, folder, length);
    text += length;
    if (length > 0) *text++ = '/';
    size_t size = strlen(program) + 1;
    memcpy(text, program, size);
    return text + size;
}

static void list_paths(const char **paths, char *text, const char *path, const char *program) {
    for (;; path++) {
        size_t length = strcspn(path, ":");
        *paths++ = text;
        text = put_path(text, path, length, program);
        path += length;
        if (*path == '\0') break;
    }
    *paths = NULL;
}

/* ---- descriptors ---- */

/* The child's end is closed later; the program owns the other one. */
static int make_pipe(struct launch *l, int stream, int *from) {
    int ends[2];
    int error = cc__process_pipe(ends);
    if (error != 0) return error;
    int own = stream == 0 ? 1 : 0;
    l->to_close[stream] = *from = ends[1 - own];
    error = cc_fd_adopt(ends[own]);
    if (error != 0)
        (void)cc__os_close(ends[own]);
    else
        cc__set(&l->process->streams[stream], ends[own]);
    return error;
}

/* The caller's descriptor for the stream; -1: inherited unchanged. */
static int open_stream(struct launch *l, int stream, const CCProcessStream *s, int *from) {
    int error = 0;
    *from = s->kind == CC_PROCESS_FD ? s->fd : -1;
    if (s->kind == CC_PROCESS_PIPE) error = make_pipe(l, stream, from);
    if (s->kind == CC_PROCESS_NULL) {
        error = cc__process_null(from);
        if (error == 0) l->to_close[stream] = *from;
    }
    return error;
}

static int open_streams(struct launch *l, const CCProcessOptions *o) {
    const CCProcessStream *streams[] = {&o->in, &o->out, &o->err};
    struct os_start *s = &l->start;
    int from[3], error = 0;
    for (int i = 0; i < 3 && error == 0; i++) {
        error = open_stream(l, i, streams[i], &from[i]);
        if (streams[i]->kind == CC_PROCESS_STDOUT) from[i] = from[1] >= 0 ? from[1] : 1;
        if (error == 0 && from[i] >= 0) s->moves[s->move_count++] = (struct os_fd_move){.from = from[i], .to = i};
    }
    for (size_t i = 0; i < o->fd_count; i++)
        s->moves[s->move_count++] = (struct os_fd_move){.from = o->fds[i].from, .to = o->fds[i].to};
    return error;
}

/* ---- all of it ---- */

static CCNursery *nursery_of(const CCProcessOptions *o) {
    if (o->nursery != NULL || o->root) return o->nursery;
    struct scope *s = cc__scope_current();
    while (s != NULL && !s->nursery) s = s->parent;
    return (CCNursery *)s;
}

static const char *base_of(const char *program) {
    const char *slash = strrchr(program, '/');
    return slash != NULL ? slash + 1 : program;
}

static int make_tables(struct launch *l, const CCProcessOptions *o, const char *program) {
    struct os_start *s = &l->start;
    bool searched = strchr(program, '/') == NULL;
    const char *path = searched ? path_of(s->envp) : "";
    size_t folders = searched ? count_folders(path) : 1;
    size_t moves = (3 + o->fd_count) * sizeof *s->moves, limits = o->limit_count * sizeof *s->limits;
    size_t text = strlen(path) + folders * (strlen(program) + 2);
    char *memory = cc__mem_alloc(limits + (folders + 1) * sizeof *s->paths + moves + text);
    if (memory == NULL) return ENOMEM;
    l->tables = memory;
    struct os_limit *limit = (struct os_limit *)(void *)memory;
    for (size_t i = 0; i < o->limit_count; i++)
        limit[i] = (struct os_limit){o->limits[i].resource, o->limits[i].soft, o->limits[i].hard};
    const char **paths = (const char **)(void *)(memory + limits);
    s->moves = (struct os_fd_move *)(void *)(paths + folders + 1);
    list_paths(paths, (char *)s->moves + moves, path, program);
    s->paths = paths;
    s->limits = limit;
    s->limit_count = o->limit_count;
    return 0;
}

int cc__launch_prepare(struct launch *l, CCProcess *p, const CCProcessOptions *o) {
    static const enum os_group groups[] = {[CC_PROCESS_GROUP_OWN] = OS_GROUP_OWN,
                                           [CC_PROCESS_GROUP_SAME] = OS_GROUP_SAME,
                                           [CC_PROCESS_GROUP_SESSION] = OS_GROUP_SESSION};
    const char *program = o->program != NULL ? o->program : o->argv[0];
    *l = (struct launch){.process = p, .nursery = nursery_of(o)};
    for (size_t i = 0; i < array_len(l->to_close); i++) l->to_close[i] = -1;
    l->start.argv = (char *const *)(uintptr_t)o->argv;
    l->start.envp = o->env != NULL ? (char *const *)(uintptr_t)o->env : cc__process_environment();
    l->start.dir = o->dir;
    l->start.group = groups[o->group];
    strncpy(p->name, base_of(program), sizeof p->name - 1);
    int error = check_open(o);
    if (error == 0) error = make_tables(l, o, program);
    return error != 0 ? error : open_streams(l, o);
}

void cc__launch_end(struct launch *l) {
    for (size_t i = 0; i < array_len(l->to_close); i++)
        if (l->to_close[i] >= 0) (void)cc__os_close(l->to_close[i]);
    cc__mem_free(l->tables);
}
