/* leak.c - examples/hangs/leak.c, with an hour of work. */
#include <ccc/ccc.h>
#define cc_sleep_ms(ms) cc_sleep_ms((ms) == 600 ? 3600000 : (ms))
#include "../../examples/hangs/leak.c"
