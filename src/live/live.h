/* live.h - the live page: for rt, which starts and stops it, and between the files of this room. */
#ifndef CC_LIVE_LIVE_H
#define CC_LIVE_LIVE_H

#include "diag/dump.h"

#include <ccc/cc_view.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- for rt ---- */

/* CC_VIEW: at the runtime's start. Failures are reported on stderr, and the runtime starts anyway. */
void cc__live_begin(const CCViewConfig *config);
/* The default directory of sockets, created if it does not exist. A string that stays valid; NULL: none. */
void cc__live_folder(const char *folder);
/* A shutdown waits for tasks: the page shows it, and jobs end early; false: it has given up. */
void cc__live_ending(bool on);
/* The runtime is about to stop: stops the page. */
void cc__live_end(void);
/* The program exits without a shutdown: unlinks the socket. */
void cc__live_exit(void);
/* In a forked child: there is no page, and its descriptors are closed. */
void cc__live_forget(void);

/* Timeouts in ms, for tests: of a request, and of the peer's end after the response (2000); of the wait for another
 * report (5000). Any thread. */
void cc__live_set_pace(unsigned request, unsigned patience);

/* ---- requests (request.c) ---- */

enum { REQUEST_MAX = 8192, TOKEN_LENGTH = 32 };

struct request {
    const char *path, *query; /* not decoded: our requests need no escapes */
};

/* Parses a complete, 0-terminated head in place and checks access: 200, or the status of the rejection. port: 0: Host
 * and token are not checked. */
int cc__request_read(char *text, unsigned port, const char *token, struct request *request);

/* The value of a key in the query, up to size - 1 bytes; false: missing, or too long. */
bool cc__request_value(const struct request *request, const char *key, char *value, size_t size);
/* The same as a number from 0 to max; `otherwise` if it is missing or invalid. */
unsigned cc__request_number(const struct request *request, const char *key, unsigned max, unsigned otherwise);

/* ---- responses (response.c) ---- */

struct response {
    FILE *body;           /* a memfd, or the stream of `text`; NULL: none */
    char *text;           /* of open_memstream */
    size_t text_size;     /* the same */
    const char *constant; /* `text`, or a sentence */
    bool bounded;
    off_t body_sent, body_size;
    size_t length, sent; /* of the head */
    char head[1024];
};

/* Creates `body` for writing; bounded: it will be small. False: no memory, or no descriptor. */
bool cc__response_open(struct response *response, bool bounded);
/* Finishes the body; false: a write has failed. */
bool cc__response_close(struct response *response);
/* Creates the head; if status is not 200, the body explains it. nonce: of the page's scripts, or NULL. */
void cc__response_begin(struct response *response, int status, const char *type, const char *nonce);
/* Sends as much as the socket takes: > 0: all is sent; else a negative errno, or -EAGAIN. */
ssize_t cc__response_send(struct response *response, int fd);
void cc__response_free(struct response *response);

/* ---- contents (answers.c, metrics.c): 200 or another status. Inside the runtime, one report at a time ---- */

int cc__answer_stats(struct out *out, const struct request *request);
int cc__answer_groups(struct out *out, const struct request *request);
int cc__answer_fibers(struct out *out, const struct request *request);
int cc__answer_fiber(struct out *out, const struct request *request);
int cc__answer_scopes(struct out *out, const struct request *request);
int cc__answer_channels(struct out *out, const struct request *request);
int cc__answer_wrong(struct out *out, const struct request *request);
int cc__answer_unreachable(struct out *out, const struct request *request);
int cc__answer_metrics(struct out *out, const struct request *request);

/* Whether a shutdown waits for tasks. */
bool cc__live_is_ending(void);

/* A channel with waiters. */
enum { CHANNELS_MAX = 100 };
struct channel_seen {
    const void *at;
    char name[CC_CHAN_NAME_MAX];
    uint64_t capacity, count, senders, receivers, selects;
    bool closed;
};
/* The first CHANNELS_MAX of them; returns how many. */
unsigned cc__channels_list(struct channel_seen *seen, bool named);

/* How long a worker has been in its turn, up to a poll interval too long; 0: it is in none, or has just begun one. */
uint64_t cc__turn_age(struct worker *w, uint64_t now);

/* ---- the page, which CMakeLists.txt generates from page.html; builds of the sources alone have none ---- */

#ifdef CC_LIVE_PAGE
extern const unsigned char cc__page[];
extern const size_t cc__page_size;
#else
static const unsigned char cc__page[1] CC_UNUSED;
static const size_t cc__page_size CC_UNUSED;
#endif
/* Its placeholder for the nonce, which is new in each response. */
#define PAGE_NONCE "NONCENONCENONCENONCENONCENONCENO"

#endif
