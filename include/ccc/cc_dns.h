/* cc_dns.h - the addresses of a name, by the system's resolver (files, DNS, whatever nsswitch.conf(5) says) or another.
 *
 * A lookup runs on an OS thread of its own kind, so that it stops no worker, and equal lookups that are under way at
 * the same time are one. What was found is kept for a few seconds. A caller whose deadline passes, or who is cancelled,
 * leaves; the lookup goes on and is found by the next one who asks. Addresses in numbers are answered at once.
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
    bool datagrams CC__ZERO;       /* for UDP; default: TCP. Matters to services by name */
    bool fresh CC__ZERO;           /* asks again, whatever was found a moment ago */
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h */
} CCResolveHints;

/* The addresses of a host. host: "" or NULL: the addresses to listen at, [::] before 0.0.0.0. service: the port, a
 * number or a name of services(5); NULL: port 0. hints: may be NULL. *count: the room in `list`, then how many there
 * are; what does not fit is left out. ENOENT: there is no such name, or it has no such addresses. EREMOTEIO: no name
 * server gave an answer. EPROTONOSUPPORT: no such service. EMFILE, ENFILE: there was no descriptor to ask with.
 * ETIMEDOUT, ECANCELED, EINVAL, ENOMEM; EAGAIN: no thread. In a simulation the names are those of the simulated hosts.
 * Any context; switches. */
CC_API CC_MUST_CHECK int cc_resolve(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list,
                                    size_t *count);
CC_API CC_MUST_CHECK int cc_resolve_until(const char *host, const char *service, const CCResolveHints *hints,
                                          CCAddr *list, size_t *count, CCDeadline deadline);

/* For tests: fn answers in place of the system's resolver, on the thread where that would run, where it may block; in a
 * simulation it is called by the fiber itself. It returns 0 or an errno value; *count: as above. Everything that was
 * found before is forgotten. NULL: the system's again. Lookups that are under way end as they began. Any context; does
 * not switch. */
typedef int (*CCResolveFn)(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list,
                           size_t *count, void *arg);
CC_API void cc_resolve_hook(CCResolveFn fn, void *arg);

/* Another resolver in place of the system's, for good: one that needs no thread (examples/recipes/cares.c). fn is
 * called by whoever asks first, on its fiber or OS thread, and waits as the calls of this library do (cc_poll). At the
 * deadline it returns ETIMEDOUT, and when its caller is cancelled ECANCELED; whoever waits for the same answer asks
 * again then. The rest as cc_resolve_hook; the later one of the two calls holds. Not used in a simulation. */
typedef int (*CCResolveUntilFn)(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list,
                                size_t *count, CCDeadline deadline, void *arg);
CC_API void cc_resolve_by(CCResolveUntilFn fn, void *arg);

CC_END_DECLS

#endif
