/* live.h - the live page: for rt, which starts and ends it, and between the files of this room. */
#ifndef CC_LIVE_LIVE_H
#define CC_LIVE_LIVE_H

#include "diag/dump.h"

#include <ccc/cc_view.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- for rt ---- */

/* CC_VIEW: at the runtime's start. Failures are said on stderr, and the runtime starts all the same. */
void cc__live_begin(const CCViewConfig *config);
/* Where sockets lie whose name nobody says: made if it is not there. A string that stays; NULL: none is. */
void cc__live_folder(const char *folder);
/* A shutdown waits for tasks, which the page says, and jobs end early; false: it has given up. */
void cc__live_ending(bool on);
/* The runtime is about to go: the page ends. */
void cc__live_end(void);
/* The program exits without a shutdown: the socket's name goes. */
void cc__live_exit(void);
/* In a forked child: there is no page, and nothing of it is open. */
void cc__live_forget(void);

/* How many ms a client has for its request, and to end after the answer (2000), and a report of somebody else before it
 * is given up (5000). For tests; any thread. */
void cc__live_set_pace(unsigned request, unsigned patience);

/* ---- requests (request.c) ---- */

enum { REQUEST_MAX = 8192, TOKEN_LENGTH = 32 };

struct request {
    const char *path, *query; /* decoded by nobody: what we ask for needs no escapes */
};

/* What is asked for, and whether it may be: 200, or the status of the refusal. The text is a whole head, ended by 0,
 * and is taken apart. port: 0, Host and token do not count. */
int cc__request_read(char *text, unsigned port, const char *token, struct request *request);

/* The value of a key in the query, up to size - 1 bytes; false: it is not there, or too long. */
bool cc__request_value(const struct request *request, const char *key, char *value, size_t size);
/* The same as a whole number; `otherwise`: it is not there, or not from 0 to max. */
unsigned cc__request_number(const struct request *request, const char *key, unsigned max, unsigned otherwise);

/* ---- responses (response.c) ---- */

struct response {
    FILE *body;           /* a file in memory, or what writes `text`; NULL: none */
    char *text;           /* of open_memstream */
    size_t text_size;     /* the same */
    const char *constant; /* `text`, or a sentence */
    bool bounded;
    off_t body_sent, body_size;
    size_t length, sent; /* of the head */
    char head[1024];
};

/* Makes `body`, to be written to; bounded: what is written is not much. False: no memory, or no descriptor. */
bool cc__response_open(struct response *response, bool bounded);
/* The body is complete; false: it is not. */
bool cc__response_close(struct response *response);
/* Makes the head; of another status than 200 the body says what that means. nonce: that scripts of the page have, or
 * NULL. */
void cc__response_begin(struct response *response, int status, const char *type, const char *nonce);
/* Sends as much as there is room for: > 0, all is sent; else an error of the system, or -EAGAIN. */
ssize_t cc__response_send(struct response *response, int fd);
void cc__response_free(struct response *response);

/* ---- what is answered (answers.c, metrics.c): 200 or another status. Inside the runtime, one report at a time ---- */

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

/* A channel that somebody waits for. */
enum { CHANNELS_MAX = 100 };
struct channel_seen {
    const void *at;
    char name[CC_CHAN_NAME_MAX];
    uint64_t capacity, count, senders, receivers, selects;
    bool closed;
};
/* Up to CHANNELS_MAX of them, those that were found first; returns how many. */
unsigned cc__channels_list(struct channel_seen *seen, bool named);

/* How long a worker has been in its turn, at least about that; 0: it is in none, or gets on. */
uint64_t cc__turn_age(struct worker *w, uint64_t now);

/* ---- the page, which CMakeLists.txt makes of page.html; builds of the sources alone have none ---- */

#ifdef CC_LIVE_PAGE
extern const unsigned char cc__page[];
extern const size_t cc__page_size;
#else
static const unsigned char cc__page[1] CC_UNUSED;
static const size_t cc__page_size CC_UNUSED;
#endif
/* Stands in it where each answer has a number of its own. */
#define PAGE_NONCE "NONCENONCENONCENONCENONCENONCENO"

#endif
