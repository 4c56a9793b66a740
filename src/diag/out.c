/* out.c - buffers the output of reports. */
#include "diag/dump.h"

#include "base/fatal.h"
#include "base/utf8.h"

#include <stdarg.h>

void cc__out_flush(struct out *out) {
    if (out->file != NULL)
        (void)fwrite(out->text, 1, out->len, out->file);
    else
        cc__stderr_write(out->text, out->len);
    out->len = 0;
}

void cc__out(struct out *out, const char *fmt, ...) {
    for (int tries = 0; tries < 2; tries++) {
        va_list args;
        va_start(args, fmt);
        int n = vsnprintf(out->text + out->len, sizeof out->text - out->len, fmt, args);
        va_end(args);
        if (n < 0) return;
        if ((size_t)n < sizeof out->text - out->len) {
            out->len += (size_t)n;
            return;
        }
        if (out->len == 0) { /* longer than the buffer: truncated */
            out->len = sizeof out->text - 1;
            return;
        }
        cc__out_flush(out);
    }
}

void cc__out_quoted(struct out *out, const char *text) {
    cc__out(out, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
        unsigned n = cc__utf8_shown((const char *)c);
        if (*c == '"' || *c == '\\')
            cc__out(out, "\\%c", *c);
        else if (n > 0)
            cc__out(out, "%.*s", (int)n, (const char *)c);
        else /* a byte: valid JSON whatever the encoding */
            cc__out(out, "\\u%04x", *c);
        c += n > 0 ? n : 1;
    }
    cc__out(out, "\"");
}
