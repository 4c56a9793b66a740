/* shutdown.c - examples/hangs/shutdown.c, with a timeout of an hour. */
#include <ccc/ccc.h>
#define cc_runtime_shutdown(ms) cc_runtime_shutdown((ms) == 200 ? 3600000 : (ms))
#include "../../examples/hangs/shutdown.c"
