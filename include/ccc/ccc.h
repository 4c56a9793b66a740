/* ccc.h - everything. */
#ifndef CCC_CCC_H
#define CCC_CCC_H

#include <ccc/cc_base.h>
#include <ccc/cc_blocking.h>
#include <ccc/cc_broadcast.h>
#include <ccc/cc_buf.h>
#include <ccc/cc_chan_handle.h>
#include <ccc/cc_channel.h>
#include <ccc/cc_diag.h>
#include <ccc/cc_dns.h>
#include <ccc/cc_fd.h>
#include <ccc/cc_file.h>
#include <ccc/cc_future.h>
#include <ccc/cc_island.h>
#include <ccc/cc_local.h>
#include <ccc/cc_net.h>
#include <ccc/cc_nursery.h>
#include <ccc/cc_panic.h>
#include <ccc/cc_parallel.h>
#include <ccc/cc_port.h>
#include <ccc/cc_process.h>
#include <ccc/cc_profile.h>
#include <ccc/cc_record.h>
#include <ccc/cc_sched.h>
#include <ccc/cc_select.h>
#include <ccc/cc_signal.h>
#include <ccc/cc_sim.h>
#include <ccc/cc_sync.h>
#include <ccc/cc_task.h>
#include <ccc/cc_time.h>
#include <ccc/cc_view.h>
#include <ccc/cc_wake_key.h>
#include <ccc/cc_when.h>

#endif
