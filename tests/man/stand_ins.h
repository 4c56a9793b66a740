/* stand_ins.h - declarations that the examples of the manual pages assume (check.py). */
#define _GNU_SOURCE
#include <ccc/cc_sim.h>
#include <ccc/cc_tls.h>
#include <ccc/ccc.h>

#include <assert.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Shared by many examples. */
void use();

#ifdef cc_blocking_3
typedef struct sqlite3 sqlite3;
extern sqlite3 *db;
extern void *row;
void *load_row(sqlite3 *from, int64_t key);
#endif

#ifdef cc_buf_3
extern CCConn *conn;
#endif

#ifdef cc_future_3
typedef struct Response {
    int status;
} Response;
Response ask(const char *host, int id);
#endif

#ifdef cc_nursery_3
extern const char **urls, *path;
void send_goodbye(void);
CC_TASK(download, { const char *url; }) {
    return (void *)self->url;
}
int transfer(const char *url);
#endif

#ifdef cc_panic_3
extern struct job {
    const char *name;
    long result;
} job;
FILE *open_or_panic(const char *name);
void close_file(void *file);
long read_number(FILE *file);
#endif

#ifdef cc_parallel_3
extern size_t n;
extern double *numbers;
#endif

#ifdef cc_process_3
extern const char *text;
#endif

#ifdef cc_record_3
extern int took_ms;
#endif

#ifdef cc_select_3
extern CCChan *in, *out, **channels;
extern CCCase *cases;
extern size_t n;
extern int w, value;
#endif

#ifdef cc_sim_3
void *test(void *arg);
void *store(void *arg);
void check(void);
#endif

#ifdef cc_task_3
typedef struct Image Image;
extern Image *photo;
void scale(Image *img, int width, int height);
#endif

#ifdef cc_time_3
extern CCTask first, second;
void measure(void);
#endif

#ifdef cc_tls_3
int handler(CCConn *conn, void *context);
#endif

#ifdef cc_wake_key_3
extern int rc;
void library_start(void (*done)(int result, void *context), void *context);
void *copy_of(CCWakeKey key);
#endif

#ifdef cc_when_3
extern CCChan *in;
extern CCTask task;
extern int v;
extern void *res;
void done(void *result);
#endif
