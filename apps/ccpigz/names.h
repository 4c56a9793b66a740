/* names.h - which name a file gets: suffixes that come and go. */
#ifndef CCPIGZ_NAMES_H
#define CCPIGZ_NAMES_H

#include "options.h"

/* Whether the name looks compressed already. */
bool names_is_packed(const char *name, const struct options *options);
/* The name with the suffix; to be freed. NULL: no memory. */
char *names_pack(const char *name, const struct options *options);
/* The name without its suffix (.tgz becomes .tar); to be freed. NULL: it has none that we know. */
char *names_unpack(const char *name, const struct options *options);
/* The name from a header in the directory of `beside`, of which only the last part counts; to be freed. NULL: no
 * use. */
char *names_restore(const char *from_header, const char *beside);

#endif
