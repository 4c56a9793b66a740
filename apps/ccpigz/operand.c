/* operand.c - turns a name into a job: checks the file, decides what to do, replaces it.
 *
 * OPERAND-1  An input is removed only after its output has its name, its mode and its times, and only then.
 * OPERAND-2  A file that may not be what the user meant (link, other links, device, existing output) is left alone with
 *            a warning, unless -f says otherwise.
 */
#include "operand.h"
#include "job.h"
#include "list.h"
#include "names.h"
#include "output.h"
#include "progress.h"
#include "say.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A job on a file. */
struct task {
    struct job job; /* first: the job's hook finds the rest */
    const struct options *options;
    struct stat info;
    struct output output;
    char *target; /* NULL: standard output, or none */
    bool replace;
};

/* Whether standard output is used, or nothing is written at all. */
static bool writes_files(const struct options *o) {
    return !o->to_stdout && (o->action == ACTION_COMPRESS || o->action == ACTION_DECOMPRESS);
}

/* ---- the output ---- */

/* An existing target: -f replaces it; at a terminal the user is asked. */
static int may_replace(struct task *t) {
    struct stat there;
    if (lstat(t->target, &there) != 0) return 0;
    t->replace = t->options->force;
    if (!t->replace && isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {
        int answer, c;
        fprintf(stderr, "ccpigz: %s already exists; overwrite (y or n)? ", t->target);
        answer = c = getchar();
        while (c != '\n' && c != EOF) c = getchar();
        t->replace = answer == 'y' || answer == 'Y';
    }
    if (t->replace) return 0;
    say_warning(t->target, "already exists; not overwritten");
    return -1;
}

static int open_target(struct task *t) {
    if (may_replace(t) != 0) return -1;
    int error = output_create(&t->output, t->target);
    if (error != 0) {
        say_error(t->target, "cannot create: %s", strerror(error));
        return -1;
    }
    t->job.out = &t->output;
    return 0;
}

/* The first header is known: with -N it decides on the name and the time. */
static int begin_unpacking(struct job *job, const struct wrapper *first) {
    struct task *t = (struct task *)job;
    if (t->target == NULL) return 0;
    if (t->options->keep_name && first->name[0] != '\0') {
        char *restored = names_restore(first->name, t->target);
        if (restored != NULL) {
            free(t->target);
            t->target = restored;
        }
    }
    struct stat there;
    if (stat(t->target, &there) == 0 && there.st_dev == t->info.st_dev && there.st_ino == t->info.st_ino) {
        say_error(t->job.name, "its stored name is its own; without -N another one is used");
        return -1;
    }
    if (t->options->keep_time && first->time != 0) {
        t->info.st_mtim = (struct timespec){.tv_sec = (time_t)first->time};
    }
    return open_target(t);
}

/* ---- a file ---- */

static void say_done(const struct task *t) {
    const struct options *o = t->options;
    double in = (double)atomic_load(&t->job.bytes_in), out = (double)atomic_load(&t->job.bytes_out);
    double plain = o->action == ACTION_COMPRESS ? in : out, packed = o->action == ACTION_COMPRESS ? out : in;
    if (o->verbose == 0 || o->action == ACTION_LIST) return;
    if (o->action == ACTION_TEST) {
        say_line("%s: OK", t->job.name);
    } else {
        say_line("%s: %.1f%%%s%s", t->job.name, plain > 0 ? 100 * (plain - packed) / plain : 0.0,
                 t->target == NULL ? ""
                 : o->keep         ? " -- created "
                                   : " -- replaced with ",
                 t->target == NULL ? "" : t->target);
    }
}

static int run_job(struct task *t) {
    struct progress progress;
    progress_start(&progress, &t->job);
    int status = t->options->action == ACTION_COMPRESS ? pack_run(&t->job) : unpack_run(&t->job);
    progress_stop(&progress);
    return status;
}

/* Puts the output in the input's place. */
static int finish(struct task *t) { /* OPERAND-1 */
    if (t->job.out != &t->output || !t->output.is_file) return 0;
    int error = output_commit(&t->output, &t->info, t->replace, t->options->synchronous);
    if (error == EEXIST) {
        say_warning(t->target, "already exists; not overwritten");
        return -1;
    }
    if (error != 0) {
        say_error(t->target, "cannot write: %s", strerror(error));
        return -1;
    }
    if (!t->options->keep && unlink(t->job.name) != 0) {
        say_error(t->job.name, "cannot remove: %s", strerror(errno));
        return -1;
    }
    return 0;
}

static void run_task(struct task *t) {
    const struct options *o = t->options;
    const char *base = strrchr(t->job.name, '/');
    t->job.options = o;
    t->job.begin = begin_unpacking;
    int status = 0;
    if (o->action == ACTION_COMPRESS) {
        t->job.wrapper = (struct wrapper){.format = o->format, .level = o->level};
        if (o->keep_time && S_ISREG(t->info.st_mode) && t->info.st_mtim.tv_sec > 0 &&
            t->info.st_mtim.tv_sec <= (time_t)UINT32_MAX) {
            t->job.wrapper.time = (uint32_t)t->info.st_mtim.tv_sec;
        }
        if (o->keep_name && t->job.in != STDIN_FILENO) {
            snprintf(t->job.wrapper.name, sizeof t->job.wrapper.name, "%s", base != NULL ? base + 1 : t->job.name);
        }
        if (t->target != NULL) status = open_target(t);
    }
    if (t->target == NULL && (o->action == ACTION_COMPRESS || o->action == ACTION_DECOMPRESS)) {
        output_stdout(&t->output);
        t->job.out = &t->output;
    }
    if (status == 0) status = run_job(t);
    if (status == 0)
        status = finish(t);
    else
        output_discard(&t->output);
    if (status != 0) return;
    if (o->action == ACTION_LIST) list_show(&t->job, t->info.st_mtim.tv_sec);
    say_done(t);
}

static void run_stdin(const struct options *o) {
    struct task t = {.options = o, .job = {.name = "stdin", .in = STDIN_FILENO}, .output = {.fd = -1}};
    if (o->action == ACTION_COMPRESS && !o->force && isatty(STDOUT_FILENO)) {
        say_error(NULL, "compressed data are not written to a terminal; -f forces it, -h helps");
        return;
    }
    if (o->action != ACTION_COMPRESS && !o->force && isatty(STDIN_FILENO)) {
        say_error(NULL, "compressed data are not read from a terminal; -f forces it, -h helps");
        return;
    }
    if (fstat(STDIN_FILENO, &t.info) != 0) {
        say_error("stdin", "cannot read: %s", strerror(errno));
        return;
    }
    t.job.in_may_block = !S_ISREG(t.info.st_mode);
    if (S_ISREG(t.info.st_mode)) t.job.in_size = (uint64_t)t.info.st_size;
    run_task(&t);
}

/* Whether a file is to be processed; if not, prints why. */
static bool is_wanted(const struct options *o, const char *name, const struct stat *info) { /* OPERAND-2 */
    if (!S_ISREG(info->st_mode) && (writes_files(o) || S_ISDIR(info->st_mode))) {
        say_warning(name, "is not a directory or a regular file; ignored");
        return false;
    }
    if (writes_files(o) && !o->keep && !o->force && info->st_nlink > 1) {
        say_warning(name, "has %lu other link%s; unchanged", (unsigned long)info->st_nlink - 1,
                    info->st_nlink > 2 ? "s" : "");
        return false;
    }
    if (o->action == ACTION_COMPRESS && o->to_stdout && !o->force && isatty(STDOUT_FILENO)) {
        say_error(NULL, "compressed data are not written to a terminal; -f forces it, -h helps");
        return false;
    }
    return true;
}

static void run_file(const struct options *o, const char *name) {
    struct task t = {.options = o, .job = {.name = name}, .output = {.fd = -1}};
    if (writes_files(o)) {
        if (o->action == ACTION_COMPRESS && !o->force && names_is_packed(name, o)) {
            if (!o->recursive) say_warning(name, "has a suffix of compressed files already; unchanged");
            return;
        }
        t.target = o->action == ACTION_COMPRESS ? names_pack(name, o) : names_unpack(name, o);
        if (t.target == NULL) {
            if (!o->recursive) say_warning(name, "unknown suffix; ignored");
            return;
        }
    }
    t.job.in =
        open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (writes_files(o) && !o->force ? O_NOFOLLOW : 0));
    if (t.job.in < 0) {
        if (errno == ELOOP)
            say_warning(name, "is a symbolic link; skipped");
        else
            say_error(name, "%s", strerror(errno));
    } else if (fstat(t.job.in, &t.info) != 0) {
        say_error(name, "%s", strerror(errno));
    } else if (is_wanted(o, name, &t.info)) {
        t.job.in_may_block = !S_ISREG(t.info.st_mode);
        if (S_ISREG(t.info.st_mode)) t.job.in_size = (uint64_t)t.info.st_size;
        run_task(&t);
    }
    if (t.job.in >= 0) close(t.job.in);
    free(t.target);
}

/* ---- directories ---- */

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The list is read before anything in it changes. */
static void run_directory(const struct options *o, const char *name) {
    struct dirent **entries;
    int count = scandir(name, &entries, NULL, by_name);
    if (count < 0) {
        say_error(name, "cannot read: %s", strerror(errno));
        return;
    }
    for (int i = 0; i < count; i++) {
        const char *entry = entries[i]->d_name;
        char *path;
        if (strcmp(entry, ".") != 0 && strcmp(entry, "..") != 0 && strncmp(entry, ".ccpigz-", 8) != 0) {
            if (asprintf(&path, "%s%s%s", name, name[strlen(name) - 1] == '/' ? "" : "/", entry) < 0) {
                say_error(name, "%s", strerror(ENOMEM));
            } else {
                operand_run(o, path);
                free(path);
            }
        }
        free(entries[i]);
    }
    free(entries);
}

void operand_run(const struct options *o, const char *name) {
    struct stat info;
    if (strcmp(name, "-") == 0) {
        run_stdin(o);
        return;
    }
    char *with_suffix = NULL;
    if (lstat(name, &info) != 0) {
        /* "x" may mean "x.gz", if there is no x. */
        if (errno == ENOENT && o->action != ACTION_COMPRESS) with_suffix = names_pack(name, o);
        if (with_suffix == NULL || lstat(with_suffix, &info) != 0) {
            say_error(name, "%s", strerror(ENOENT == errno ? ENOENT : errno));
            free(with_suffix);
            return;
        }
        name = with_suffix;
    }
    if (S_ISDIR(info.st_mode)) {
        if (o->recursive)
            run_directory(o, name);
        else
            say_warning(name, "is a directory; ignored");
    } else {
        run_file(o, name);
    }
    free(with_suffix);
}
