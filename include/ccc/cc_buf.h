/* cc_buf.h - buffered reading and writing of connections, within limits, and copying from one to another.
 *
 *   CCReader in;
 *   CCWriter out;
 *   char *line;
 *   size_t n;
 *   cc_reader_init(&in, conn, 4096);
 *   cc_writer_init(&out, conn, 0);
 *   while (cc_reader_line(&in, &line, &n) == 0) {
 *       if (cc_writer_print(&out, "you said %s\n", line) != 0) break;
 *       if (cc_reader_buffered(&in) == 0 && cc_writer_flush(&out) != 0) break;
 *   }
 *   cc_reader_free(&in);
 *   cc_writer_free(&out);
 *
 * A reader or writer is a small struct in memory of the program; the fields are private. It borrows its buffer from a
 * shared pool, only while it holds bytes: a reader that waits for a silent peer has no buffer. It never uses more
 * memory than its limit.
 *
 * The calls wait as cc_read and cc_write do, and end at the connection's deadlines (cc_conn_deadline). After ETIMEDOUT,
 * ECANCELED or ENOMEM no data is lost, except by cc_reader_skip: the next call continues where this one stopped. Only
 * one fiber at a time may use a reader or a writer. Any context.
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

/* most: the buffer limit, and so the longest line and the longest peek; 0: CC_BUF_DEFAULT. The program still owns the
 * connection. EINVAL: NULL, or more than CC_BUF_MAX. Does not switch. */
CC_API int cc_reader_init(CCReader *reader, CCConn *conn, size_t most);
/* Returns the buffer and drops its content. NULL is allowed. Does not switch. */
CC_API void cc_reader_free(CCReader *reader);
/* A lower bound for the bytes that can be read without waiting. Does not switch. */
CC_API size_t cc_reader_buffered(const CCReader *reader);

/* Returns bytes without consuming them: waits until `least` are buffered, and sets *bytes and *have to all that are.
 * They stay valid until the next call. EMSGSIZE: more than the reader may hold. ENODATA: the stream ends before that;
 * *have is the number of bytes left (0: end of stream). Switches. */
CC_API CC_MUST_CHECK int cc_reader_peek(CCReader *reader, size_t least, const void **bytes, size_t *have);
/* Discards n bytes, waiting for those that have not arrived yet. ENODATA: the stream ends before that. After any error
 * some of them were discarded, and the call does not tell how many. Switches. */
CC_API CC_MUST_CHECK int cc_reader_skip(CCReader *reader, uint64_t n);
/* As cc_read and cc_read_full. */
CC_API CC_MUST_CHECK int cc_reader_read(CCReader *reader, void *buffer, size_t size, size_t *n);
CC_API CC_MUST_CHECK int cc_reader_read_full(CCReader *reader, void *buffer, size_t size, size_t *n);
/* Consumes everything up to and including the next `delimiter`; the bytes stay valid until the next call. EMSGSIZE: no
 * delimiter within the reader's limit; nothing is consumed. ENODATA: the stream ends before the delimiter; *n bytes are
 * left and not consumed. Switches. */
CC_API CC_MUST_CHECK int cc_reader_until(CCReader *reader, unsigned char delimiter, const void **bytes, size_t *n);
/* The same for lines: *line is the text without "\n" or "\r\n", terminated by a 0, *n its length; it stays valid until
 * the next call and may be modified. A 0 within the text was sent by the peer. */
CC_API CC_MUST_CHECK int cc_reader_line(CCReader *reader, char **line, size_t *n);

/* ---- writing ---- */

typedef struct CCWriter {
    CCConn *conn;
    unsigned char *bytes;
    size_t used, size, most;
    uint64_t reserved[2];
} CCWriter;

/* most: the high-water mark, the number of bytes that may be buffered before they are written; 0: CC_BUF_DEFAULT. The
 * rest as cc_reader_init. */
CC_API int cc_writer_init(CCWriter *writer, CCConn *conn, size_t most);
/* Returns the buffer; unflushed bytes are dropped. NULL is allowed. Does not switch. */
CC_API void cc_writer_free(CCWriter *writer);
/* The number of unflushed bytes. Does not switch. */
CC_API size_t cc_writer_buffered(const CCWriter *writer);

/* Buffers the bytes; above the high-water mark it writes everything, and waits while the peer does not read. n: may be
 * NULL; how many of these bytes were buffered or written, also after an error. Switches. */
CC_API CC_MUST_CHECK int cc_writer_write(CCWriter *writer, const void *bytes, size_t size, size_t *n);
/* The same for text formatted as by printf(3). After an error none of it is buffered, unless a part was written.
 * EINVAL: an invalid format. Switches. */
CC_API CC_MUST_CHECK int cc_writer_print(CCWriter *writer, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/* Writes what is buffered. Switches. */
CC_API CC_MUST_CHECK int cc_writer_flush(CCWriter *writer);

/* ---- copying ---- */

/* Copies bytes from one connection to another until the end of the stream or until `most` bytes; UINT64_MAX: all. n:
 * may be NULL; how many were written, also after an error: then bytes that were read may be lost. Bulk data goes
 * through a pipe, without a copy (splice(2)). Uses one buffer or one pipe, only while it holds bytes. Does not shut
 * down the write side: use cc_shutdown. Ends when the caller is cancelled and at the deadlines of the connections, also
 * while both peers are always ready. Switches. */
CC_API CC_MUST_CHECK int cc_copy(CCConn *to, CCConn *from, uint64_t most, uint64_t *n);

CC_END_DECLS

#endif
