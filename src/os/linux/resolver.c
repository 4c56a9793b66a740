/* resolver.c - the system's resolver, by getaddrinfo(3). */
#include "os/resolver.h"

#include "base/error.h"

#include <errno.h>
#include <sys/socket.h>

static int error_of(int code) {
    switch (code) {
    case 0:
        return 0;
    case EAI_NONAME:
    case EAI_NODATA:
        return ENOENT;
    case EAI_AGAIN:
    case EAI_FAIL:
        return EREMOTEIO;
    case EAI_SERVICE:
        return EPROTONOSUPPORT;
    case EAI_FAMILY:
    case EAI_ADDRFAMILY:
        return EAFNOSUPPORT;
    case EAI_MEMORY:
        return ENOMEM;
    case EAI_SYSTEM:
        return cc__errno_get() != 0 ? cc__errno_get() : EIO;
    default:
        return EINVAL;
    }
}

/* The C library could open neither its files nor a socket, and reports an unknown name or service. */
static bool is_want_of_descriptors(int error) {
    return error == EMFILE || error == ENFILE;
}

int cc__os_resolve(const char *host, const char *service, int family, bool datagrams, struct addrinfo **found) {
    CC_KEEP_ERRNO;
    struct addrinfo hints = {.ai_family = family, .ai_socktype = datagrams ? SOCK_DGRAM : SOCK_STREAM};
    bool passive = host[0] == 0;
    if (passive) hints.ai_flags = AI_PASSIVE;
    *found = NULL;
    cc__errno_set(0);
    int code = getaddrinfo(passive ? NULL : host, service, &hints, found);
    if (code != 0 && is_want_of_descriptors(cc__errno_get())) return cc__errno_get();
    return error_of(code);
}

void cc__os_resolved_free(struct addrinfo *found) {
    CC_KEEP_ERRNO;
    if (found != NULL) freeaddrinfo(found);
}
