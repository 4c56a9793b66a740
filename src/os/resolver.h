/* resolver.h - the system's resolver. */
#ifndef CC_OS_RESOLVER_H
#define CC_OS_RESOLVER_H

#include <netdb.h>
#include <stdbool.h>

/* Blocks the thread. host "": addresses to listen at. family: AF_UNSPEC, AF_INET or AF_INET6. 0 and *found, to be freed
 * by cc__os_resolved_free; or an errno value: ENOENT, EREMOTEIO, EPROTONOSUPPORT, EAFNOSUPPORT, ENOMEM, … */
int cc__os_resolve(const char *host, const char *service, int family, bool datagrams, struct addrinfo **found);
void cc__os_resolved_free(struct addrinfo *found);

#endif
