/* layout.c - the public structs have the layout that programs of version 0.1 were compiled with. */
#define CCDeadline V01Deadline
#define CCTask V01Task
#define CCRuntimeConfig V01RuntimeConfig
#define CCSpawnOptions V01SpawnOptions
#define CCChanConfig V01ChanConfig
#define CCNurseryConfig V01NurseryConfig
#define CCCase V01Case
#define CCError V01Error
#define CCPanic V01Panic
#define CCDefer V01Defer
#define CCDeadlineScope V01DeadlineScope
#define CCShield V01Shield
#define CCAddr V01Addr
#define CCConnOptions V01ConnOptions
#define CCListenOptions V01ListenOptions
#define CCDialOptions V01DialOptions
#define CCConnOps V01ConnOps
#define CCConnLayer V01ConnLayer
#define CCCredentials V01Credentials
#define CCServeOptions V01ServeOptions
#define CCServeStats V01ServeStats
#define CCUdpOptions V01UdpOptions
#define CCDatagram V01Datagram
#define CCReader V01Reader
#define CCWriter V01Writer
#define CCTlsCert V01TlsCert
#define CCTlsOptions V01TlsOptions
#define CCTlsInfo V01TlsInfo
#include "../../abi/v0_1.h"
#undef CCDeadline
#undef CCTask
#undef CCRuntimeConfig
#undef CCSpawnOptions
#undef CCChanConfig
#undef CCNurseryConfig
#undef CCCase
#undef CCError
#undef CCPanic
#undef CCDefer
#undef CCDeadlineScope
#undef CCShield
#undef CCAddr
#undef CCConnOptions
#undef CCListenOptions
#undef CCDialOptions
#undef CCConnOps
#undef CCConnLayer
#undef CCCredentials
#undef CCServeOptions
#undef CCServeStats
#undef CCUdpOptions
#undef CCDatagram
#undef CCReader
#undef CCWriter
#undef CCTlsCert
#undef CCTlsOptions
#undef CCTlsInfo

#include "harness.h"

#include <ccc/cc_tls.h>
#include <ccc/ccc.h>

#define SIZE(name) _Static_assert(sizeof(CC##name) == sizeof(V01##name), "the size of CC" #name)
#define FIELD(name, field)                                                          \
    _Static_assert(offsetof(CC##name, field) == offsetof(V01##name, field) &&       \
                       sizeof((CC##name){0}.field) == sizeof((V01##name){0}.field), \
                   #name "." #field)

SIZE(RuntimeConfig);
FIELD(RuntimeConfig, workers);
FIELD(RuntimeConfig, stack_size);
FIELD(RuntimeConfig, queue_slots);
FIELD(RuntimeConfig, max_workers);
FIELD(RuntimeConfig, no_membarrier);
FIELD(RuntimeConfig, deadlock_status);
_Static_assert(offsetof(CCRuntimeConfig, blocking_max) == offsetof(V01RuntimeConfig, reserved), "in a reserved word");

SIZE(SpawnOptions);
FIELD(SpawnOptions, name);
FIELD(SpawnOptions, stack_size);
FIELD(SpawnOptions, arg_size);

SIZE(ChanConfig);
FIELD(ChanConfig, elem_size);
FIELD(ChanConfig, capacity);
FIELD(ChanConfig, mode);
FIELD(ChanConfig, on_create);
FIELD(ChanConfig, on_reset);
FIELD(ChanConfig, on_destroy);
FIELD(ChanConfig, context);
FIELD(ChanConfig, ordered);
FIELD(ChanConfig, name);

SIZE(NurseryConfig);
FIELD(NurseryConfig, parent);
FIELD(NurseryConfig, root);
FIELD(NurseryConfig, mode);
FIELD(NurseryConfig, deadline);
FIELD(NurseryConfig, grace_ms);
FIELD(NurseryConfig, name);
FIELD(NurseryConfig, result);

SIZE(Case);
FIELD(Case, kind);
FIELD(Case, ch);
FIELD(Case, value);
FIELD(Case, size);
FIELD(Case, task);
FIELD(Case, deadline);
FIELD(Case, error);
FIELD(Case, status);

SIZE(Error);
FIELD(Error, code);
FIELD(Error, who);
FIELD(Error, name);
FIELD(Error, text);

SIZE(Panic);
FIELD(Panic, generation);
FIELD(Panic, fiber);
FIELD(Panic, name);
FIELD(Panic, message);
FIELD(Panic, frame_count);
FIELD(Panic, frames_guessed);
FIELD(Panic, frames);

SIZE(Addr);
FIELD(Addr, kind);
FIELD(Addr, length);
FIELD(Addr, port);
FIELD(Addr, zone);
FIELD(Addr, bytes);
FIELD(Addr, reserved);

SIZE(ConnOptions);
FIELD(ConnOptions, delay);
FIELD(ConnOptions, keepalive);
FIELD(ConnOptions, user_timeout_ms);
FIELD(ConnOptions, send_buffer);
FIELD(ConnOptions, receive_buffer);
FIELD(ConnOptions, reserved);

SIZE(ListenOptions);
FIELD(ListenOptions, backlog);
FIELD(ListenOptions, reuseport);
FIELD(ListenOptions, v6only);
FIELD(ListenOptions, unlink);
FIELD(ListenOptions, mode);
FIELD(ListenOptions, conn);
FIELD(ListenOptions, reserved);

SIZE(DialOptions);
FIELD(DialOptions, local);
FIELD(DialOptions, fallback_ms);
FIELD(DialOptions, conn);
FIELD(DialOptions, reserved);

SIZE(ConnOps);
FIELD(ConnOps, read);
FIELD(ConnOps, write);
FIELD(ConnOps, await);
FIELD(ConnOps, shutdown);
FIELD(ConnOps, alive);
FIELD(ConnOps, name);
FIELD(ConnOps, fd);
FIELD(ConnOps, close);
FIELD(ConnOps, free);
_Static_assert(offsetof(CCConnOps, splice) == offsetof(V01ConnOps, reserved), "in a reserved word");

SIZE(ConnLayer);
FIELD(ConnLayer, dialled);
FIELD(ConnLayer, accepted);
FIELD(ConnLayer, dropped);
FIELD(ConnLayer, arg);
FIELD(ConnLayer, reserved);

SIZE(Credentials);
FIELD(Credentials, pid);
FIELD(Credentials, uid);
FIELD(Credentials, gid);
FIELD(Credentials, reserved);

SIZE(ServeOptions);
FIELD(ServeOptions, max_conns);
FIELD(ServeOptions, grace_ms);
FIELD(ServeOptions, backoff_ms);
FIELD(ServeOptions, failed);
FIELD(ServeOptions, grace_for_shields);
FIELD(ServeOptions, reserved);

SIZE(ServeStats);
FIELD(ServeStats, accepted);
FIELD(ServeStats, open);
FIELD(ServeStats, most_open);
FIELD(ServeStats, failed);
FIELD(ServeStats, panicked);
FIELD(ServeStats, pauses);
FIELD(ServeStats, shed);
FIELD(ServeStats, cancelled);
FIELD(ServeStats, reserved);

SIZE(UdpOptions);
FIELD(UdpOptions, reuseport);
FIELD(UdpOptions, v6only);
FIELD(UdpOptions, gro);
FIELD(UdpOptions, send_buffer);
FIELD(UdpOptions, receive_buffer);
FIELD(UdpOptions, local);
FIELD(UdpOptions, reserved);

SIZE(Datagram);
FIELD(Datagram, bytes);
FIELD(Datagram, size);
FIELD(Datagram, length);
FIELD(Datagram, segment);
FIELD(Datagram, addr);
FIELD(Datagram, reserved);

SIZE(Reader);
FIELD(Reader, conn);
FIELD(Reader, bytes);
FIELD(Reader, begin);
FIELD(Reader, end);
FIELD(Reader, size);
FIELD(Reader, most);
FIELD(Reader, reserved);

SIZE(Writer);
FIELD(Writer, conn);
FIELD(Writer, bytes);
FIELD(Writer, used);
FIELD(Writer, size);
FIELD(Writer, most);
FIELD(Writer, reserved);

SIZE(TlsCert);
FIELD(TlsCert, cert);
FIELD(TlsCert, key);

SIZE(TlsOptions);
FIELD(TlsOptions, cert);
FIELD(TlsOptions, key);
FIELD(TlsOptions, more);
FIELD(TlsOptions, more_count);
FIELD(TlsOptions, ca);
FIELD(TlsOptions, verify);
FIELD(TlsOptions, alpn);
FIELD(TlsOptions, min_version);
FIELD(TlsOptions, max_version);
FIELD(TlsOptions, ciphers);
FIELD(TlsOptions, ciphersuites);
FIELD(TlsOptions, handshake_ms);
FIELD(TlsOptions, max_handshakes);
FIELD(TlsOptions, no_tickets);
_Static_assert(offsetof(CCTlsOptions, ktls) == offsetof(V01TlsOptions, reserved), "in a reserved word");

SIZE(TlsInfo);
FIELD(TlsInfo, version);
FIELD(TlsInfo, resumed);
FIELD(TlsInfo, verified);
FIELD(TlsInfo, alpn);
FIELD(TlsInfo, cipher);
FIELD(TlsInfo, host);
FIELD(TlsInfo, peer);
FIELD(TlsInfo, fingerprint);
_Static_assert(offsetof(CCTlsInfo, ktls) == offsetof(V01TlsInfo, reserved), "in a reserved word");

SIZE(Deadline);
SIZE(Task);
SIZE(Defer);
SIZE(DeadlineScope);
SIZE(Shield);

_Static_assert(sizeof(CCMutex) == V0_1_MUTEX && sizeof(CCRWLock) == V0_1_RWLOCK && sizeof(CCCond) == V0_1_COND,
               "locks");
_Static_assert(sizeof(CCSem) == V0_1_SEM && sizeof(CCWaitGroup) == V0_1_WAIT_GROUP, "counts");
_Static_assert(sizeof(CCOnce) == V0_1_ONCE && sizeof(CCEvent) == V0_1_EVENT && sizeof(CCBarrier) == V0_1_BARRIER,
               "signals");

/* What the compiler has checked above. The counters have no fixed size: their calls take it. */
TEST(layout) {
    CHECK(sizeof(CCStats) % sizeof(uint64_t) == 0 && sizeof(CCStackStats) % sizeof(uint64_t) == 0);
}
