/* cc_dns.h - name resolution by the system's resolver (files, DNS, as configured in nsswitch.conf(5)) or another one.
 *
 * A lookup runs on a thread of the pool for slow calls, so it blocks no worker; concurrent identical lookups are
 * coalesced, and results are cached for a few seconds. When the deadline passes or the caller is cancelled, the call
 * returns; the lookup continues, and its result serves the next caller. Numeric addresses are answered at once.
 */
#ifndef CCC_CC_DNS_H
#define CCC_CC_DNS_H

#include <ccc/cc_base.h>
#include <ccc/cc_net.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* A field that is 0 means the default. */
typedef struct CCResolveHints {
    int kind CC__ZERO;             /* CC_ADDR_IP4 or CC_ADDR_IP6: only those; default: both, in the system's order */
    bool datagrams CC__ZERO;       /* for UDP; default: TCP. Matters for service names */
    bool fresh CC__ZERO;           /* bypasses the cache */
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCResolveHints;

/* Looks up the addresses of a host. host: "" or NULL: the wildcard addresses to listen on, [::] before 0.0.0.0.
 * service: the port, a number or a name of services(5); NULL: port 0. hints: may be NULL. *count: on entry the capacity
 * of `list`, on success the number of addresses; those that do not fit are omitted. ENOENT: no such name, or it has no
 * such addresses. EREMOTEIO: no name server answered. EPROTONOSUPPORT: no such service. EMFILE, ENFILE: no descriptor
 * for the query. ETIMEDOUT, ECANCELED, EINVAL, ENOMEM; EAGAIN: no thread. In a simulation the names are those of the
 * simulated hosts. Any context; switches. */
CC_API CC_MUST_CHECK int cc_resolve(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list,
                                    size_t *count);
CC_API CC_MUST_CHECK int cc_resolve_until(const char *host, const char *service, const CCResolveHints *hints,
                                          CCAddr *list, size_t *count, CCDeadline deadline);

/* For tests: fn replaces the system's resolver. It runs on the pool thread, where it may block; in a simulation on the
 * calling fiber. It returns 0 or an errno value; *count: as above. Clears the cache. NULL restores the system's
 * resolver. Lookups in progress finish with the resolver that they started with. Any context; does not switch. */
typedef int (*CCResolveFn)(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list,
                           size_t *count, void *arg);
CC_API void cc_resolve_hook(CCResolveFn fn, void *arg);

/* Replaces the system's resolver by one that needs no thread (examples/recipes/cares.c). fn is called by the first of
 * several identical callers, on its fiber or OS thread, and waits with calls of this library (cc_poll). It returns
 * ETIMEDOUT at the deadline, and ECANCELED when its caller is cancelled; the other callers then ask again. The rest as
 * cc_resolve_hook; the later of the two calls takes effect. Not used in a simulation. */
typedef int (*CCResolveUntilFn)(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list,
                                size_t *count, CCDeadline deadline, void *arg);
CC_API void cc_resolve_by(CCResolveUntilFn fn, void *arg);

CC_END_DECLS

#endif
