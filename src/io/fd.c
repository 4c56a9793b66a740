/* fd.c - the state of descriptors, in a table by number that only grows. */
#include "io/fd.h"

#include "base/mem.h"
#include "io/io.h"
#include "os/descriptor.h"
#include "sim/sim.h"
#include "sync/backoff.h"

#include <errno.h>

enum { CHUNK = 256, CHUNKS = 1 << 16 };

static struct io_fd *_Atomic chunks[CHUNKS];
static struct lock table_lock;
static unsigned chunks_end;      /* there is none at or beyond it; table_lock */
static _Atomic uint32_t waiting; /* arms that are linked */

uint32_t cc__fd_waiting(void) {
    return cc__get(&waiting);
}

/* ---- table ---- */

static struct io_fd *make_chunk(unsigned index) {
    struct io_fd *chunk = cc__mem_alloc(CHUNK * sizeof *chunk);
    if (chunk == NULL) return NULL;
    for (unsigned i = 0; i < CHUNK; i++) {
        chunk[i].number = (int)(index * CHUNK + i);
        for (int side = 0; side < IO_SIDES; side++) cc__list_init(&chunk[i].side[side].waiters);
    }
    cc__lock_take(&table_lock);
    struct io_fd *first = cc__get(&chunks[index]);
    if (index >= chunks_end) chunks_end = index + 1;
    if (first == NULL) cc__set_release(&chunks[index], chunk); /* pairs with at() */
    cc__lock_release(&table_lock);
    if (first != NULL) cc__mem_free(chunk);
    return first != NULL ? first : chunk;
}

static struct io_fd *at(int number) {
    if (number < 0 || number >= CHUNK * CHUNKS) return NULL;
    struct io_fd *chunk = cc__get_acquire(&chunks[number / CHUNK]); /* pairs with make_chunk */
    return chunk != NULL ? &chunk[number % CHUNK] : NULL;
}

int cc__fd_find(int number, struct io_use *use) {
    if (unlikely(number < 0 || number >= CHUNK * CHUNKS)) return EBADF;
    use->fd = at(number);
    if (unlikely(use->fd == NULL)) {
        struct io_fd *chunk = make_chunk((unsigned)number / CHUNK);
        if (chunk == NULL) return ENOMEM;
        use->fd = &chunk[number % CHUNK];
    }
    struct backoff backoff = {0};
    while (unlikely((use->word = cc__get_acquire(&use->fd->word)) & FD_FINISHING))
        cc__backoff(&backoff); /* finish_close */
    return unlikely(use->word & FD_CLOSING) ? EBADF : 0;
}

/* What its events carry. */
static uint64_t data_of(struct io_fd *fd, uint64_t word) {
    return (uint64_t)fd_generation(word) << 32 | (uint32_t)fd->number;
}

/* ---- users, close ---- */

static bool is_current(struct io_use *use, uint64_t word) {
    return !(word & FD_CLOSING) && fd_generation(word) == fd_generation(use->word);
}

int cc__fd_enter(struct io_use *use) {
    uint64_t word = cc__get(&use->fd->word);
    do {
        if (unlikely(!is_current(use, word))) return EBADF;
    } while (!cc__cas(&use->fd->word, &word, word + 1));
    use->word = word;
    return 0;
}

/* FD-4: no user is left, and none comes. The generation changes before the number is free: as soon as it is, another
 * thread may get it. Whoever comes between the two would wait for a descriptor that is about to go: so it waits until
 * it has gone. */
static void finish_close(struct io_fd *fd, uint64_t word) {
    cc__lock_take(&fd->lock);
    bool registered = cc__get(&fd->registered) != 0;
    cc__set(&fd->registered, 0);
    for (int side = 0; side < IO_SIDES; side++) {
        fd->side[side].ready = false;
        cc__set(&fd->side[side].drained, 0);
    }
    cc__set(&fd->no_skip, false);
    cc__set(&fd->word, (uint64_t)(fd_generation(word) + 1) << 32 | FD_FINISHING);
    if (registered) cc__poller_remove(fd->number);
    cc__lock_release(&fd->lock);
    cc__os_close(fd->number);
    (void)cc__and(&fd->word, ~FD_FINISHING); /* pairs with cc__fd_find */
}

void cc__fd_leave(struct io_use *use) {
    uint64_t word = cc__sub(&use->fd->word, 1) - 1;
    if (unlikely((word & FD_CLOSING) && (word & FD_USERS) == 0)) finish_close(use->fd, word);
}

/* A close that a thread of the parent had begun is not finished here: the number stays open, with the next
 * generation. */
static void forget(struct io_fd *fd) {
    uint64_t word = cc__get(&fd->word);
    bool closing = (word & (FD_CLOSING | FD_FINISHING)) != 0;
    cc__set(&fd->word, closing ? (uint64_t)(fd_generation(word) + 1) << 32 : word & ~FD_USERS);
    fd->lock = (struct lock){0};
    cc__set(&fd->registered, 0);
    for (int side = 0; side < IO_SIDES; side++) {
        cc__list_init(&fd->side[side].waiters);
        cc__set(&fd->side[side].count, 0);
        fd->side[side].ready = false; /* it is registered anew, which reports what is ready */
        cc__set(&fd->side[side].drained, 0);
    }
}

void cc__fd_forget(void) {
    for (unsigned index = 0; index < chunks_end; index++) {
        struct io_fd *chunk = cc__get(&chunks[index]);
        for (unsigned i = 0; chunk != NULL && i < CHUNK; i++) forget(&chunk[i]);
    }
    table_lock = (struct lock){0};
    cc__set(&waiting, 0);
}

/* The caller holds the lock. */
static void unlink_locked(struct io_fd *fd, struct arm *arm) {
    unsigned side = arm->index & 1;
    cc__list_remove(&arm->link);
    arm->linked = false;
    cc__set(&fd->side[side].count, cc__get(&fd->side[side].count) - 1);
    (void)cc__sub(&waiting, 1);
}

/* The arm is off its list. The claim is that of an object without a lock: the fiber may be about to park. */
static bool claim_locked(struct arm *arm, struct wakes *wakes) {
    struct fiber *f = arm->waiter->fiber;
    if (f == NULL) return cc__wakes_claim_locked(wakes, arm->waiter, WAKE_OBJECT);
    enum claim claim = cc__state_claim(f, arm->waiter->ticket, WAKE_OBJECT);
    if (claim == CLAIM_WON) cc__wakes_add(wakes, f);
    return claim != CLAIM_LOST;
}

/* FD-3. */
static void edge_locked(struct io_fd *fd, enum io_side side, struct wakes *wakes) {
    struct link *list = &fd->side[side].waiters;
    cc__set(&fd->side[side].edges, cc__get(&fd->side[side].edges) + 1); /* FD-6 */
    while (!cc__list_empty(list)) {
        struct arm *arm = container_of(cc__get(&list->next), struct arm, link);
        unlink_locked(fd, arm);
        if (claim_locked(arm, wakes)) return;
    }
    fd->side[side].ready = true;
}

void cc__fd_pass_on(struct io_fd *fd, enum io_side side) {
    if (likely(cc__get(&fd->side[side].count) == 0)) return;
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&fd->lock);
    edge_locked(fd, side, &wakes);
    cc__lock_release(&fd->lock);
    cc__wakes_flush(&wakes);
}

/* One report at a time: those who still wait need another. The caller holds the lock. */
static int arm_again_locked(struct io_fd *fd, uint64_t word) {
    unsigned sides = (cc__get(&fd->side[IO_READ].count) != 0 ? POLLER_READ : 0u) |
                     (cc__get(&fd->side[IO_WRITE].count) != 0 ? POLLER_WRITE : 0u);
    return sides != 0 ? cc__poller_arm(fd->number, data_of(fd, word), sides) : 0;
}

void cc__fd_event(const struct poller_event *event, struct wakes *wakes) {
    struct io_fd *fd = at((int)(uint32_t)event->data);
    if (fd == NULL) return;
    cc__lock_take(&fd->lock);
    uint64_t word = cc__get(&fd->word);
    if (fd_generation(word) == (uint32_t)(event->data >> 32)) {
        if (event->ready & (POLLER_HANGUP | POLLER_URGENT)) cc__set(&fd->no_skip, true);
        if (event->ready & POLLER_READ) edge_locked(fd, IO_READ, wakes);
        if (event->ready & POLLER_WRITE) edge_locked(fd, IO_WRITE, wakes);
        if (!(word & FD_ADOPTED)) (void)arm_again_locked(fd, word);
    }
    cc__lock_release(&fd->lock);
}

int cc__fd_close(int number) {
    struct io_use use;
    struct wakes wakes;
    int error = cc__fd_find(number, &use);
    if (error != 0) return error == ENOMEM ? cc__os_close(number) : error;
    struct io_fd *fd = use.fd;
    uint64_t word = cc__get(&fd->word);
    do {
        if (word & FD_CLOSING) return EBADF;
    } while (!cc__cas(&fd->word, &word, (word | FD_CLOSING) + 1));
    if (cc__os_valid(number) != 0) { /* it is not open: nobody's state changes */
        (void)cc__and(&fd->word, ~FD_CLOSING);
        use.word = word;
        cc__fd_leave(&use);
        return EBADF;
    }
    cc__wakes_init(&wakes);
    cc__lock_take(&fd->lock);
    for (int side = 0; side < IO_SIDES; side++) {
        struct link *list = &fd->side[side].waiters;
        while (!cc__list_empty(list)) {
            struct arm *arm = container_of(cc__get(&list->next), struct arm, link);
            unlink_locked(fd, arm);
            (void)claim_locked(arm, &wakes);
        }
    }
    cc__lock_release(&fd->lock);
    cc__wakes_flush(&wakes);
    use.word = word;
    cc__fd_leave(&use);
    return 0;
}

/* ---- adopt, release ---- */

int cc__fd_adopt(int number, bool fresh) {
    struct io_use use;
    bool blocks = false, skips = false, is_socket = false;
    int error = cc__fd_find(number, &use);
    if (error == 0) error = cc__os_nonblocking(number, true, &blocks);
    if (error != 0) return error;
    struct io_fd *fd = use.fd;
    skips = cc__os_is_stream(number, &is_socket);
    cc__lock_take(&fd->lock);
    uint64_t word = cc__get(&fd->word), next;
    bool waited_for = cc__get(&fd->side[IO_READ].count) + cc__get(&fd->side[IO_WRITE].count) != 0;
    do {
        next = (word & ~FD_SOCKET) | FD_ADOPTED | (blocks ? FD_BLOCKS : 0) | (is_socket ? FD_SOCKET : 0);
        if (!waited_for)
            next += UINT64_C(1) << 32; /* the number may have had another descriptor, closed behind our back */
        if (word & FD_CLOSING) error = EBADF;
    } while (error == 0 && !cc__cas(&fd->word, &word, next));
    if (error == 0) {
        cc__set(&fd->registered, 0);
        cc__set(&fd->no_skip, !skips);
        for (int side = 0; side < IO_SIDES; side++) {
            cc__set(&fd->side[side].drained, 0);
            fd->side[side].ready = !fresh;
        }
    }
    cc__lock_release(&fd->lock);
    return error;
}

int cc__fd_release(int number) {
    struct io_use use;
    bool before;
    int error = cc__fd_find(number, &use);
    if (error != 0) return error;
    if (!(use.word & FD_ADOPTED)) return cc__os_valid(number);
    struct io_fd *fd = use.fd;
    cc__lock_take(&fd->lock);
    uint64_t word = cc__get(&fd->word);
    bool busy = cc__get(&fd->side[IO_READ].count) + cc__get(&fd->side[IO_WRITE].count) != 0;
    if (!is_current(&use, word)) {
        error = EBADF;
    } else if (busy || (word & FD_USERS) != 0) {
        error = EBUSY;
    } else if (!cc__cas(&fd->word, &word, (uint64_t)(fd_generation(word) + 1) << 32)) {
        error = EBUSY;
    } else {
        if (cc__get(&fd->registered) != 0) cc__poller_remove(number);
        cc__set(&fd->registered, 0);
        cc__set(&fd->no_skip, false);
    }
    cc__lock_release(&fd->lock);
    if (error == 0 && (use.word & FD_BLOCKS)) error = cc__os_nonblocking(number, false, &before);
    return error;
}

/* ---- wait ---- */

struct wanted {
    struct arm arm;
    struct io_use *use;
    uint32_t life; /* of the poller that it is registered with */
    int error;     /* of the poller; ECANCELED: the runtime has stopped */
};

static bool never_complete(void *object, void *io) {
    (void)object, (void)io;
    return false;
}

/* The waiter is findable when this returns, or was woken here. */
static bool publish(void *object, struct waiter *waiter, void *io) {
    struct io_fd *fd = object;
    struct wanted *wanted = io;
    struct arm *arm = &wanted->arm;
    unsigned side = arm->index & 1;
    arm->waiter = waiter;
    cc__lock_take(&fd->lock);
    uint64_t word = cc__get(&fd->word);
    bool open = is_current(wanted->use, word);
    /* FD-5. The lock orders this with the sweep of a runtime that stops. */
    bool stopped = waiter->fiber == NULL && cc__io_life() != wanted->life;
    if (stopped) {
        wanted->error = cc__io_life() == 0 ? ECANCELED : 0;
    } else if (open && fd->side[side].ready) {
        fd->side[side].ready = false;
    } else if (open) {
        cc__list_push_back(&fd->side[side].waiters, &arm->link);
        arm->linked = true;
        cc__set(&fd->side[side].count, cc__get(&fd->side[side].count) + 1);
        (void)cc__add(&waiting, 1);
        if (!(word & FD_ADOPTED)) wanted->error = arm_again_locked(fd, word);
        if (wanted->error != 0) unlink_locked(fd, arm);
    }
    bool linked = arm->linked;
    cc__lock_release(&fd->lock);
    if (open && !linked) (void)cc__waiter_wake(waiter, WAKE_OBJECT);
    if (linked && waiter->fiber == NULL && cc__upcall_enter(false) == 0) { /* else it stops, and wakes us (FD-5) */
        cc__io_listen();
        cc__upcall_leave();
    }
    return open;
}

/* FD-1: an edge that came after the wait had ended otherwise is in `ready`. Takes the lock in any case: who has
 * claimed us has finished with the arm then. */
static void unpublish(void *object, struct waiter *waiter) {
    struct io_fd *fd = object;
    cc__lock_take(&fd->lock);
    for (int side = 0; side < IO_SIDES; side++) {
        struct link *list = &fd->side[side].waiters, *l = cc__get(&list->next);
        while (l != list && container_of(l, struct arm, link)->waiter != waiter) l = cc__get(&l->next);
        if (l != list) unlink_locked(fd, container_of(l, struct arm, link));
    }
    cc__lock_release(&fd->lock);
}

static const struct waitable_ops ops = {never_complete, publish, unpublish};

/* An adopted one is registered once for each life of the poller. The caller is a user: it is not closed meanwhile. */
static int register_fd(struct io_use *use, uint32_t *poller) {
    struct io_fd *fd = use->fd;
    int error = cc__io_open(poller);
    if (error != 0 || cc__get(&fd->registered) == *poller) return error;
    error = cc__poller_register(fd->number, data_of(fd, use->word));
    if (error == 0) cc__set(&fd->registered, *poller);
    return error;
}

static int wait_result(enum wait_result result, int error) {
    switch (result) {
    case WAIT_OK:
        return error;
    case WAIT_TIMEDOUT:
        return ETIMEDOUT;
    case WAIT_CANCELLED:
        return ECANCELED;
    case WAIT_NOMEM:
        return ENOMEM;
    default:
        return EBADF;
    }
}

int cc__fd_wait(struct io_use *use, enum io_side side, uint64_t deadline) {
    struct wanted wanted = {.arm = {.index = side, .object = use->fd}, .use = use};
    bool thread = cc__worker() == NULL;
    if (cc__sim_seed() != 0) return ENOTSUP;
    int error =
        thread ? cc__upcall_enter(true) : 0; /* only to open the poller: a shutdown does not wait for the wait */
    if (error != 0) return error;
    error = cc__fd_enter(use);
    if (error == 0) {
        error = use->word & FD_ADOPTED ? register_fd(use, &wanted.life) : cc__io_open(&wanted.life);
        cc__fd_leave(use);
    }
    if (thread) cc__upcall_leave();
    if (error != 0) return error;
    enum wait_result result = cc__fiber_wait(use->fd, &wanted, &ops, deadline, PARK_IO);
    return wait_result(result, wanted.error);
}

void cc__fd_cancel_threads(void) {
    cc__lock_take(&table_lock);
    unsigned end = chunks_end;
    cc__lock_release(&table_lock);
    for (unsigned c = 0; c < end; c++) {
        struct io_fd *chunk = cc__get_acquire(&chunks[c]); /* pairs with make_chunk */
        for (unsigned i = 0; chunk != NULL && i < CHUNK; i++) {
            cc__lock_take(&chunk[i].lock);
            for (int side = 0; side < IO_SIDES; side++) {
                struct link *list = &chunk[i].side[side].waiters;
                for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next))
                    (void)cc__waiter_wake(container_of(l, struct arm, link)->waiter, WAKE_CANCEL);
            }
            cc__lock_release(&chunk[i].lock);
        }
    }
}
