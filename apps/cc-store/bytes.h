/* bytes.h - messages and files: numbers and pieces of memory, one after another; and messages over a connection. */
#ifndef CC_STORE_BYTES_H
#define CC_STORE_BYTES_H

#include <ccc/ccc.h>

/* A message that is written; {0} is empty. A failed allocation sets `failed`, and further calls do nothing. */
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

/* A message that is read. A read beyond the end, or of a piece that is too long, returns 0 and sets `failed`. */
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

/* Messages are preceded by their size. 0 or an errno value; EBADMSG: not a message. */
int message_send(CCConn *conn, const struct bytes *message, CCDeadline deadline);
int message_receive(CCConn *conn, struct bytes *message, CCDeadline deadline);

#endif
