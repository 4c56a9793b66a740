/* v0_1.h - the public structs and some functions of version 0.1, as a program that was compiled with it sees them.
 *
 * Never changed after the release, except for additions. tests/unit/rt/layout.c compares it with today's headers;
 * tests/programs/abi.c is a program that uses only this file.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CCDeadline {
    uint64_t ns;
} CCDeadline;

typedef struct CCTask {
    uint64_t id;
} CCTask;

/* ---- what a program fills in ---- */

typedef struct CCRuntimeConfig {
    unsigned workers;
    size_t stack_size;
    size_t queue_slots;
    unsigned max_workers;
    bool no_membarrier;
    unsigned deadlock_status;
    uint64_t reserved[4];
} CCRuntimeConfig;

typedef struct CCSpawnOptions {
    const char *name;
    size_t stack_size;
    size_t arg_size;
    uint64_t reserved[4];
} CCSpawnOptions;

typedef struct CCChanConfig {
    size_t elem_size;
    size_t capacity;
    int mode;
    int (*on_create)(void *item, void *context);
    void (*on_reset)(void *item, void *context);
    void (*on_destroy)(void *item, void *context);
    void *context;
    bool ordered;
    const char *name;
    uint64_t reserved[4];
} CCChanConfig;

typedef struct CCNurseryConfig {
    int *result;
    struct CCNursery *parent;
    bool root;
    int mode;
    CCDeadline deadline;
    uint64_t grace_ms;
    const char *name;
    uint64_t reserved[4];
} CCNurseryConfig;

typedef struct CCCase {
    int kind;
    struct CCChan *ch;
    void *value;
    size_t size;
    CCTask *task;
    CCDeadline deadline;
    int error;
    int *status;
} CCCase;

/* ---- what the library fills in ---- */

typedef struct CCError {
    int code;
    uint64_t who;
    char name[32];
    char text[160];
    uint64_t reserved[4];
} CCError;

typedef struct CCPanic {
    uint64_t generation;
    uint64_t fiber;
    char name[32];
    char message[256];
    unsigned frame_count;
    unsigned frames_guessed;
    const void *frames[32];
    uint64_t reserved[4];
} CCPanic;

/* ---- the network ---- */

struct CCConn;
struct iovec;

typedef struct CCAddr {
    uint8_t kind;
    uint8_t length;
    uint16_t port;
    uint32_t zone;
    unsigned char bytes[112];
    uint64_t reserved[1];
} CCAddr;

typedef struct CCConnOptions {
    bool delay;
    unsigned keepalive;
    unsigned user_timeout_ms;
    unsigned send_buffer;
    unsigned receive_buffer;
    uint64_t reserved[4];
} CCConnOptions;

typedef struct CCListenOptions {
    unsigned backlog;
    bool reuseport;
    bool v6only;
    bool unlink;
    unsigned mode;
    CCConnOptions conn;
    uint64_t reserved[4];
} CCListenOptions;

typedef struct CCDialOptions {
    CCAddr local;
    unsigned fallback_ms;
    CCConnOptions conn;
    uint64_t reserved[4];
} CCDialOptions;

typedef struct CCConnOps {
    int (*read)(void *state, const struct iovec *parts, int count, size_t *n, bool wait, CCDeadline deadline);
    int (*write)(void *state, const struct iovec *parts, int count, size_t *n, bool wait, CCDeadline deadline);
    int (*await)(void *state, bool drained, CCDeadline deadline);
    int (*shutdown)(void *state, bool read, bool write);
    int (*alive)(void *state);
    int (*name)(void *state, bool peer, CCAddr *addr);
    int (*fd)(void *state);
    void (*close)(void *state, bool abort);
    void (*free)(void *state);
    uint64_t reserved[4];
} CCConnOps;

typedef struct CCConnLayer {
    int (*dialled)(struct CCConn **conn, const char *host, CCDeadline deadline, void *arg);
    int (*accepted)(struct CCConn **conn, void *arg);
    void (*dropped)(void *arg);
    void *arg;
    uint64_t reserved[4];
} CCConnLayer;

typedef struct CCCredentials {
    int64_t pid;
    uint32_t uid, gid;
    uint64_t reserved[2];
} CCCredentials;

typedef struct CCServeOptions {
    unsigned max_conns;
    uint64_t grace_ms;
    unsigned backoff_ms;
    void (*failed)(struct CCConn *conn, int code, void *arg);
    bool grace_for_shields;
    uint64_t reserved[4];
} CCServeOptions;

typedef struct CCServeStats {
    uint64_t accepted;
    uint64_t open;
    uint64_t most_open;
    uint64_t failed;
    uint64_t panicked;
    uint64_t pauses;
    uint64_t shed;
    uint64_t cancelled;
    uint64_t reserved[4];
} CCServeStats;

typedef struct CCUdpOptions {
    bool reuseport;
    bool v6only;
    bool gro;
    unsigned send_buffer;
    unsigned receive_buffer;
    CCAddr local;
    uint64_t reserved[4];
} CCUdpOptions;

typedef struct CCDatagram {
    void *bytes;
    size_t size;
    size_t length;
    size_t segment;
    CCAddr addr;
    uint64_t reserved[2];
} CCDatagram;

typedef struct CCReader {
    struct CCConn *conn;
    unsigned char *bytes;
    size_t begin, end, size, most;
    uint64_t reserved[2];
} CCReader;

typedef struct CCWriter {
    struct CCConn *conn;
    unsigned char *bytes;
    size_t used, size, most;
    uint64_t reserved[2];
} CCWriter;

typedef struct CCTlsCert {
    const char *cert;
    const char *key;
} CCTlsCert;

typedef struct CCTlsOptions {
    const char *cert;
    const char *key;
    const CCTlsCert *more;
    size_t more_count;
    const char *ca;
    int verify;
    const char *alpn;
    unsigned min_version;
    unsigned max_version;
    const char *ciphers;
    const char *ciphersuites;
    unsigned handshake_ms;
    unsigned max_handshakes;
    bool no_tickets;
    uint64_t reserved[6];
} CCTlsOptions;

typedef struct CCTlsInfo {
    unsigned version;
    bool resumed;
    bool verified;
    char alpn[64];
    char cipher[64];
    char host[256];
    char peer[256];
    unsigned char fingerprint[32];
    uint64_t reserved[8];
} CCTlsInfo;

/* ---- storage in the program's frames and objects ---- */

typedef struct CCDefer {
    struct CCDefer *next;
    void (*fn)(void *arg);
    void *arg;
    struct CCDefer **list;
} CCDefer;

typedef struct CCDeadlineScope {
    CCDefer deferred;
    void *scope;
    uint64_t reserved[2];
} CCDeadlineScope;

typedef struct CCShield {
    CCDefer deferred;
    bool begun;
    uint64_t reserved[2];
} CCShield;

enum { V0_1_MUTEX = 16, V0_1_RWLOCK = 24, V0_1_COND = 16, V0_1_SEM = 16, V0_1_WAIT_GROUP = 16 };
enum { V0_1_ONCE = 24, V0_1_EVENT = 16, V0_1_BARRIER = 24 };
