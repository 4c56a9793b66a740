/* ccc.h - everything. */
#ifndef CCC_CCC_H
#define CCC_CCC_H

#include <ccc/cc_base.h>
#include <ccc/cc_chan_handle.h>
#include <ccc/cc_channel.h>
#include <ccc/cc_diag.h>
#include <ccc/cc_fd.h>
#include <ccc/cc_local.h>
#include <ccc/cc_nursery.h>
#include <ccc/cc_panic.h>
#include <ccc/cc_sched.h>
#include <ccc/cc_select.h>
#include <ccc/cc_sim.h>
#include <ccc/cc_sync.h>
#include <ccc/cc_task.h>
#include <ccc/cc_time.h>

#endif
