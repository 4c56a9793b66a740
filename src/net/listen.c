/* listen.c - listeners: create, accept, close. */
#include "net/listen.h"

#include "base/mem.h"
#include "net/addr.h"
#include "net/where.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>

union any_addr {
    struct sockaddr any;
    struct sockaddr_storage storage;
    struct sockaddr_un un;
};

/* ---- create ---- */

/* Copies a path with its terminating 0; false: not in the file system. */
static bool path_of(const CCAddr *addr, char path[sizeof addr->bytes]) {
    if (addr->kind != CC_ADDR_UNIX || addr->length == 0 || addr->bytes[0] == 0) return false;
    memcpy(path, addr->bytes, addr->length);
    path[addr->length] = 0;
    return true;
}

/* Whether the existing socket file has no listener: a connect to it fails. */
static bool is_stale(const union any_addr *name, socklen_t length) {
    int fd = cc__os_socket(AF_UNIX, SOCK_STREAM);
    if (fd < 0) return false;
    int rc = cc__os_connect(fd, &name->any, length);
    (void)cc__os_close(fd);
    return rc == -ECONNREFUSED;
}

static int bind_to(int fd, const CCAddr *addr, const CCListenOptions *o) {
    union any_addr name;
    socklen_t length = sizeof name;
    char path[sizeof addr->bytes];
    struct os_file_id id;
    int error = cc_addr_to_sockaddr(addr, &name.any, &length);
    if (error != 0) return error;
    bool file = path_of(addr, path);
    int rc = file && o->mode != 0 ? cc__os_socket_mode(fd, o->mode) : 0;
    if (rc == 0) rc = cc__os_bind(fd, &name.any, length);
    if (rc == -EADDRINUSE && file && o->unlink && cc__os_socket_file(path, &id) == 0 && is_stale(&name, length)) {
        rc = cc__os_unlink(path);
        if (rc == 0) rc = cc__os_bind(fd, &name.any, length);
    }
    if (rc == 0 && file && o->mode != 0) {
        rc = cc__os_chmod_socket(path, o->mode);
        if (rc != 0) (void)cc__os_unlink(path);
    }
    return -rc;
}

static int prepare(int fd, const CCAddr *addr, const CCListenOptions *o, const CCConnOptions *conn) {
    bool ip = addr->kind != CC_ADDR_UNIX;
    int rc = ip ? cc__os_set(fd, OS_REUSEADDR, 1) : 0;
    if (rc == 0 && o->reuseport) rc = cc__os_set(fd, OS_REUSEPORT, 1);
    if (rc == 0 && addr->kind == CC_ADDR_IP6) rc = cc__os_set(fd, OS_V6ONLY, o->v6only);
    return rc != 0 ? -rc : ip ? cc__conn_set(fd, true, conn) : 0;
}

static void remove_file(const CCAddr *addr, const struct os_file_id *own) {
    char path[sizeof addr->bytes];
    struct os_file_id id;
    if (!path_of(addr, path) || cc__os_socket_file(path, &id) != 0) return;
    if (id.device == own->device && id.number == own->number) (void)cc__os_unlink(path);
}

static int own_addr(CCListener *l, int fd) {
    union any_addr name;
    socklen_t length = sizeof name;
    int rc = cc__os_name(fd, false, &name.any, &length);
    return rc < 0 ? -rc : cc_addr_from_sockaddr(&l->addr, &name.any, length);
}

static int open_at(CCListener *l, const CCAddr *addr, const CCListenOptions *o, const CCConnOptions *conn) {
    char path[sizeof addr->bytes];
    bool bound = false;
    int fd = cc__os_socket(cc__addr_family(addr), SOCK_STREAM);
    if (fd < 0) return -fd;
    int error = prepare(fd, addr, o, conn);
    if (error == 0) error = bind_to(fd, addr, o);
    if (error == 0 && path_of(addr, path)) {
        bound = cc__os_socket_file(path, &l->file) == 0;
        l->unlink = o->unlink && bound;
    }
    if (error == 0) error = -cc__os_listen(fd, o->backlog != 0 ? o->backlog : INT32_MAX);
    if (error == 0) error = own_addr(l, fd);
    if (error == 0) error = cc__fd_adopt(fd, true);
    if (error == 0) error = cc__fd_find(fd, &l->use);
    if (error != 0) {
        if (bound) remove_file(addr, &l->file);
        (void)cc__fd_close(fd);
    }
    return error;
}

static void finish(CCListener *l, const CCConnOptions *conn) {
    l->inherits = l->addr.kind != CC_ADDR_UNIX;
    l->conn = *conn;
    cc__set(&l->refs, 1);
}

int cc_listen(CCListener **listener, const char *where_text, const CCListenOptions *options) {
    struct where where = {0};
    CCAddr list[WHERE_ADDRS];
    size_t count = 0;
    if (listener == NULL) return EINVAL;
    *listener = NULL;
    if (options != NULL) {
        if (cc__reserved_used(options) || cc__reserved_used(&options->conn)) return EINVAL;
        where.listen = *options;
        where.conn = options->conn;
    }
    int error = cc__where_parse(&where, where_text, TRANSPORT_TCP | TRANSPORT_UNIX, USE_LISTEN);
    if (error == 0 && where.layer != NULL && where.layer->accepted == NULL) error = EOPNOTSUPP;
    if (error == 0) error = cc__where_addrs(&where, list, &count, CC_FOREVER);
    if (error != 0) return error;
    CCListener *l = cc__mem_alloc_small(sizeof *l);
    if (l == NULL) return ENOMEM;
    error = ENOENT;
    for (size_t i = 0; i < count && error != 0; i++) {
        int failed = open_at(l, &list[i], &where.listen, &where.conn);
        if (failed != EAFNOSUPPORT || i == 0)
            error = failed; /* no IPv6 on this system: less relevant than the error of
                                                               * another address */
    }
    if (error != 0) {
        cc__mem_free(l);
        return error;
    }
    finish(l, &where.conn);
    if (where.layer != NULL) {
        l->layer = *where.layer;
        l->layer.dropped = NULL;
    }
    *listener = l;
    return 0;
}

int cc_listener_from_fd(CCListener **listener, int fd, const CCConnOptions *options) {
    static const CCConnOptions none;
    if (listener == NULL) return EINVAL;
    *listener = NULL;
    if (options != NULL && cc__reserved_used(options)) return EINVAL;
    if (options == NULL) options = &none;
    int listens = cc__os_listens(fd);
    if (listens <= 0) return listens == 0 ? EINVAL : -listens;
    CCListener *l = cc__mem_alloc_small(sizeof *l);
    if (l == NULL) return ENOMEM;
    int error = own_addr(l, fd);
    if (error == 0 && l->addr.kind != CC_ADDR_UNIX) error = cc__conn_set(fd, true, options);
    if (error == 0) error = cc__fd_adopt(fd, false);
    if (error == 0) error = cc__fd_find(fd, &l->use);
    if (error != 0) {
        cc__mem_free(l);
        return error;
    }
    finish(l, options);
    *listener = l;
    return 0;
}

void cc__listener_keep(CCListener *l) {
    (void)cc__add(&l->refs, 1);
}
void cc__listener_drop(CCListener *l) {
    if (cc__sub(&l->refs, 1) != 1) return;
    if (l->layer.dropped != NULL) l->layer.dropped(l->layer.arg);
    cc__mem_free(l);
}

void cc__listener_stop(CCListener *l) {
    if (cc__swap(&l->closed, 1)) return;
    if (l->unlink) remove_file(&l->addr, &l->file);
    (void)cc__fd_close_used(&l->use);
    (void)cc_event_set(&l->stopped);
}

void cc_listener_close(CCListener *l) {
    if (l == NULL) return;
    cc__listener_stop(l);
    cc__listener_drop(l);
}

int cc_listener_addr(CCListener *l, CCAddr *addr) {
    if (l == NULL || addr == NULL) return EINVAL;
    *addr = l->addr;
    return 0;
}
int cc_listener_layer(CCListener *l, const CCConnLayer *layer) {
    if (l == NULL || layer == NULL || layer->accepted == NULL || cc__reserved_used(layer)) return EINVAL;
    if (l->layer.accepted != NULL) return EEXIST;
    l->layer = *layer;
    return 0;
}
int cc_listener_fd(CCListener *l) {
    return l == NULL || cc__get(&l->closed) ? -1 : l->use.fd->number;
}

/* ---- accept ---- */

/* Errors of accept(2) that concern a connection that is already gone, or its network. */
static bool passed_over(int error) {
    return error == ECONNABORTED || error == EPROTO || error == ENOPROTOOPT || error == ENETDOWN ||
           error == EHOSTDOWN || error == ENONET || error == EHOSTUNREACH || error == ENETUNREACH || error == EPERM;
}

static int add_layer(CCListener *l, CCConn **conn) {
    int error = l->layer.accepted(conn, l->layer.arg);
    if (error == 0) return 0;
    cc_close(*conn);
    *conn = NULL;
    return error;
}

int cc__listener_accept(CCListener *l, CCConn **conn, enum how how, CCDeadline deadline) {
    int fd = -1, error;
    if (conn == NULL) return EINVAL;
    *conn = NULL;
    if (l == NULL) return EINVAL;
    cc__listener_keep(l);
    do {
        struct io_use use = l->use;
        error = cc__call_accept(&use, &fd, NULL, NULL, how, deadline);
    } while (passed_over(error));
    if (error == 0) {
        error = l->inherits ? 0 : cc__conn_set(fd, false, &l->conn);
        if (error == 0) error = cc__conn_open(conn, fd, true);
        if (error != 0)
            (void)cc__fd_close(fd);
        else if (l->layer.accepted != NULL)
            error = add_layer(l, conn);
    }
    cc__listener_drop(l);
    return error;
}
int cc_accept(CCListener *listener, CCConn **conn) {
    return cc__listener_accept(listener, conn, HOW_WAIT, CC_FOREVER);
}
int cc_accept_try(CCListener *listener, CCConn **conn) {
    return cc__listener_accept(listener, conn, HOW_TRY, CC_FOREVER);
}
int cc_accept_until(CCListener *listener, CCConn **conn, CCDeadline deadline) {
    return cc__listener_accept(listener, conn, HOW_WAIT, deadline);
}
