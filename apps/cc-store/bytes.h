/* bytes.h - messages and files: numbers and pieces of memory, one after another; and messages over a connection. */
#ifndef CC_STORE_BYTES_H
#define CC_STORE_BYTES_H

#include <ccc/ccc.h>

/* What is written; {0} is empty. An allocation that fails sets `failed`, and the rest does nothing. */
struct bytes {
    unsigned char *data;
    size_t size, room;
    bool failed;
};

void bytes_free(struct bytes *b);
void bytes_clear(struct bytes *b);
void bytes_add(struct bytes *b, const void *data, size_t size);
void bytes_add_number(struct bytes *b, uint64_t number);
/* Its size, then itself. */
void bytes_add_piece(struct bytes *b, const void *data, size_t size);

/* What is read. Whoever reads beyond the end, or a piece that is too long, gets 0, and `failed`. */
struct view {
    const unsigned char *data;
    size_t size;
    bool failed;
};

struct view view_of(const struct bytes *b);
uint64_t view_number(struct view *v);
struct view view_piece(struct view *v);

uint32_t checksum(const void *data, size_t size);

enum { MESSAGE_MAX = 16 << 20 };

/* Their size first. 0 or an errno value; EBADMSG: what comes is no message. */
int message_send(CCConn *conn, const struct bytes *message, CCDeadline deadline);
int message_receive(CCConn *conn, struct bytes *message, CCDeadline deadline);

#endif
