/* hiredis.c - the Redis client on fibers: its non-blocking calls, and cc_fd_wait where they would wait.
 *
 *   hiredis /run/redis.sock      or      hiredis 127.0.0.1
 */
#include "recipe.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <string.h>

static const char *where;

/* As redisConnect and redisConnectUnix. */
static redisContext *redis_connect(const char *host) {
    redisContext *c = host[0] == '/' ? redisConnectUnixNonBlock(host) : redisConnectNonBlock(host, 6379);
    if (c != NULL && c->err == 0 && cc_fd_wait(c->fd, CC_WRITABLE, NULL) == 0) return c;
    fprintf(stderr, "hiredis: %s\n", c == NULL ? "out of memory" : c->err != 0 ? c->errstr : "cancelled");
    if (c != NULL) redisFree(c);
    return NULL;
}

/* As redisCommand. NULL: c->err says why; 0: the wait was cancelled, and the connection is to be freed. */
static redisReply *redis_command(redisContext *c, const char *format, ...) {
    void *reply = NULL;
    int done = 0;
    va_list list;
    va_start(list, format);
    int rc = redisvAppendCommand(c, format, list);
    va_end(list);
    while (rc == REDIS_OK && (rc = redisBufferWrite(c, &done)) == REDIS_OK && !done)
        if (cc_fd_wait(c->fd, CC_WRITABLE, NULL) != 0) return NULL;
    while (rc == REDIS_OK && (rc = redisGetReplyFromReader(c, &reply)) == REDIS_OK && reply == NULL) {
        if (cc_fd_wait(c->fd, CC_READABLE, NULL) != 0) return NULL;
        rc = redisBufferRead(c);
    }
    return rc == REDIS_OK ? reply : NULL;
}

static bool ask(int i) {
    redisContext *c = redis_connect(where);
    if (c == NULL) return false;
    redisReply *pause = redis_command(c, "BLPOP nothing:%d 0.05", i); /* the server answers after 50 ms */
    redisReply *set = redis_command(c, "SET key:%d %d", i, i * i), *get = redis_command(c, "GET key:%d", i);
    bool good =
        pause != NULL && set != NULL && get != NULL && get->type == REDIS_REPLY_STRING && atoi(get->str) == i * i;
    if (!good) fprintf(stderr, "hiredis: %s\n", c->err != 0 ? c->errstr : "a wrong answer");
    if (pause != NULL) freeReplyObject(pause);
    if (set != NULL) freeReplyObject(set);
    if (get != NULL) freeReplyObject(get);
    redisFree(c);
    return good;
}

int main(int argc, char **argv) {
    where = argc > 1 ? argv[1] : "127.0.0.1";
    return recipe_run(ask);
}
