/* listen.h - a listener. */
#ifndef CC_NET_LISTEN_H
#define CC_NET_LISTEN_H

#include "net/conn.h"
#include "os/socket.h"

#include <ccc/cc_sync.h>

struct CCListener {
    struct io_use use;       /* never changed: calls take copies */
    _Atomic uint32_t refs;   /* the owner, calls in progress, servers: as CONN-1 */
    _Atomic uint32_t closed; /* a word: riscv64 cannot exchange bytes */
    CCEvent stopped;         /* set when it no longer listens, for waits on something else */
    bool inherits;           /* connections inherit the listener's options; else they are set for each */
    bool unlink;             /* remove `file` with the listener */
    struct os_file_id file;  /* of a Unix socket */
    CCConnOptions conn;
    CCConnLayer layer; /* {0}: none */
    CCAddr addr;
    struct serve_counts {
        _Atomic uint64_t accepted, open, most_open, failed, panicked, pauses, shed, cancelled;
    } counts;
};

int cc__listener_accept(CCListener *l, CCConn **conn, enum how how, CCDeadline deadline);
void cc__listener_keep(CCListener *l);
/* Stops listening; the owner still has to free it. */
void cc__listener_stop(CCListener *l);
void cc__listener_drop(CCListener *l);

#endif
