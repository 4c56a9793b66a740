/* cc_buf.h - buffered reading and writing of connections, within limits, and copying from one to another.
 *
 *   CCReader in;
 *   CCWriter out;
 *   char *line;
 *   size_t n;
 *   cc_reader_init(&in, conn, 4096);
 *   cc_writer_init(&out, conn, 0);
 *   while (cc_reader_line(&in, &line, &n) == 0) {
 *       cc_writer_print(&out, "you said %s\n", line);
 *       if (cc_reader_buffered(&in) == 0 && cc_writer_flush(&out) != 0) break;
 *   }
 *   cc_reader_free(&in);
 *   cc_writer_free(&out);
 *
 * A reader or writer is a small struct of the program's, which keeps it where it likes; the fields are private. Its
 * buffer is borrowed from a common pool, and only while there are bytes in it: one that waits for a silent peer holds
 * none. It never takes more memory than it was told.
 *
 * The calls wait as cc_read and cc_write do, and end at the connection's deadlines (cc_conn_deadline). After ETIMEDOUT,
 * ECANCELED or ENOMEM nothing is lost: the next call goes on where this one stopped. One fiber at a time uses a reader,
 * one a writer. Any context.
 */
#ifndef CCC_CC_BUF_H
#define CCC_CC_BUF_H

#include <ccc/cc_base.h>
#include <ccc/cc_net.h>

CC_BEGIN_DECLS

#define CC_BUF_DEFAULT ((size_t)16 * 1024)
#define CC_BUF_MAX ((size_t)1024 * 1024 * 1024)

/* ---- reading ---- */

typedef struct CCReader {
    CCConn *conn;
    unsigned char *bytes;
    size_t begin, end, size, most;
    uint64_t reserved[2];
} CCReader;

/* most: how many bytes may have to be in memory at a time, which is the longest line and the farthest peek; 0:
 * CC_BUF_DEFAULT. The connection stays the program's. EINVAL: NULL, or more than CC_BUF_MAX. Does not switch. */
CC_API int cc_reader_init(CCReader *reader, CCConn *conn, size_t most);
/* Gives the buffer back, and drops what is in it. NULL is allowed. Does not switch. */
CC_API void cc_reader_free(CCReader *reader);
/* How many bytes can be had without waiting, at least. Does not switch. */
CC_API size_t cc_reader_buffered(const CCReader *reader);

/* Looks at bytes without taking them: waits until there are `least`, and tells where they are and how many there are.
 * They stay there until the next call. EMSGSIZE: more than the reader may hold. ENODATA: the stream ends before; *have
 * tells how many there are (0: it has ended). Switches. */
CC_API CC_MUST_CHECK int cc_reader_peek(CCReader *reader, size_t least, const void **bytes, size_t *have);
/* Takes n bytes and drops them, also ones that have not come yet. ENODATA. Switches. */
CC_API CC_MUST_CHECK int cc_reader_skip(CCReader *reader, uint64_t n);
/* As cc_read and cc_read_full. */
CC_API CC_MUST_CHECK int cc_reader_read(CCReader *reader, void *buffer, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_reader_read_full(CCReader *reader, void *buffer, size_t size, size_t *n);
/* Takes everything up to and with the next `delimiter`; it stays where it is until the next call. EMSGSIZE: there is
 * none among as many bytes as the reader may hold; nothing is taken. ENODATA: the stream ends before; *n bytes are
 * left, and not taken. Switches. */
CC_API CC_MUST_CHECK int cc_reader_until(CCReader *reader, unsigned char delimiter, const void **bytes, size_t *n);
/* The same for lines: *line is the text without "\n" or "\r\n" and with a 0 at its end, *n its length; it stays
 * where it is until the next call, and may be changed. A 0 within it is the peer's. */
CC_API CC_MUST_CHECK int cc_reader_line(CCReader *reader, char **line, size_t *n);

/* ---- writing ---- */

typedef struct CCWriter {
    CCConn *conn;
    unsigned char *bytes;
    size_t used, size, most;
    uint64_t reserved[2];
} CCWriter;

/* most: the high-water mark, how many bytes may be kept before they have to go out; 0: CC_BUF_DEFAULT. The rest as
 * cc_reader_init. */
CC_API int cc_writer_init(CCWriter *writer, CCConn *conn, size_t most);
/* Gives the buffer back; what was not flushed is dropped. NULL is allowed. Does not switch. */
CC_API void cc_writer_free(CCWriter *writer);
/* How many bytes have not gone out. Does not switch. */
CC_API size_t cc_writer_buffered(const CCWriter *writer);

/* Keeps the bytes, or writes all that there is when it is more than the high-water mark: then it waits while the
 * peer does not read. n: may be NULL; how many of these bytes were kept or went out, also when it ends with an error.
 * Switches. */
CC_API CC_MUST_CHECK int cc_writer_write(CCWriter *writer, const void *bytes, size_t size, size_t *n);
/* The same for text as printf(3) makes it. After an error none of it was kept, unless a part has gone out. EINVAL: the
 * format is wrong. Switches. */
CC_API CC_MUST_CHECK int cc_writer_print(CCWriter *writer, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/* Writes what there is. Switches. */
CC_API CC_MUST_CHECK int cc_writer_flush(CCWriter *writer);

/* ---- copying ---- */

/* Moves bytes from one connection to another until the end of the stream, or until there were `most`; UINT64_MAX: all.
 * n: may be NULL; how many were written, also when it ends with an error: then bytes that were read may be lost. Much
 * at a time goes through a pipe, without being copied (splice(2)). Memory: one buffer or one pipe, while there are
 * bytes in it. The write side is not ended: cc_shutdown. Ends when the caller is cancelled and at the deadlines of the
 * connections, also while both peers are always ready. Switches. */
CC_API CC_MUST_CHECK int cc_copy(CCConn *to, CCConn *from, uint64_t most, uint64_t *n);

CC_END_DECLS

#endif
