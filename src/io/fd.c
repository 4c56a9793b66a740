/* fd.c - the state of descriptors, in a table by number that only grows. */
#include "io/fd.h"

#include "base/mem.h"
#include "io/io.h"
#include "os/descriptor.h"
#include "os/simulated.h"
#include "sim/sim.h"
#include "sync/backoff.h"

#include <ccc/cc_panic.h>
#include <errno.h>

enum { CHUNK = 256, CHUNKS = 1 << 16 };

static struct io_fd *_Atomic chunks[CHUNKS];
static struct lock table_lock;
static unsigned chunks_end;      /* one past the last chunk; table_lock */
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
        cc__list_init(&chunk[i].observers);
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

/* The data of its events. */
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

/* The hints of earlier calls do not hold for the next descriptor with this number. */
static void forget_hints_locked(struct io_fd *fd) {
    for (int side = 0; side < IO_SIDES; side++) cc__set(&fd->side[side].drained, 0);
    cc__set(&fd->broken, 0);
    cc__set(&fd->no_skip, false);
}

/* Whether it reports every edge. Under the lock: a waiter that links itself to one that does not has to arm it. */
static bool is_registered(struct io_fd *fd) {
    uint32_t instance = cc__io_instance();
    return instance != 0 && cc__get(&fd->registered) == instance;
}

/* Otherwise the poller that it was registered with may be closed at any time, and its number be reused. */
static bool in_set_locked(struct io_fd *fd) {
    return fd->in_set || is_registered(fd); /* FD-5 */
}

/* FD-4: there are no users, and no new ones. The generation changes before the close, because another thread may get
 * the number as soon as it is free. A call that comes in between would wait for a descriptor that is about to be
 * closed: so cc__fd_find waits until the close is done. */
static void finish_close(struct io_fd *fd, uint64_t word) {
    cc__lock_take(&fd->lock);
    bool in_set = in_set_locked(fd);
    cc__set(&fd->registered, 0);
    forget_hints_locked(fd);
    cc__set(&fd->armed, 0);
    fd->in_set = false;
    cc__set(&fd->word, (uint64_t)(fd_generation(word) + 1) << 32 | FD_FINISHING);
    if (in_set) cc__poller_remove(fd->number); /* FD-12 */
    cc__lock_release(&fd->lock);
    if (word & FD_ADOPTED)
        (void)cc__os_close(fd->number); /* find_open has told a socket not to linger */
    else
        (void)cc__os_close_at_once(fd->number);
    (void)cc__and(&fd->word, ~FD_FINISHING); /* pairs with cc__fd_find */
}

void cc__fd_leave(struct io_use *use) {
    uint64_t word = cc__sub(&use->fd->word, 1) - 1;
    if (unlikely((word & FD_CLOSING) && (word & FD_USERS) == 0)) finish_close(use->fd, word);
}

int cc__fd_broken(const struct io_use *use) {
    struct backoff backoff = {0};
    uint64_t word = cc__get_acquire(&use->fd->word);                       /* pairs with cc__fd_leave */
    for (int tries = 0; tries < 1000 && (word & FD_USERS) != 0; tries++) { /* for system calls that do not wait */
        cc__backoff(&backoff);
        word = cc__get_acquire(&use->fd->word);
    }
    return fd_generation(word) == fd_generation(use->word) ? cc__get(&use->fd->broken) : 0;
}

/* A close that a thread of the parent had begun is not completed here: the number stays open, with the next
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
        cc__set(&fd->side[side].drained, 0);
        fd->side[side].turn = (struct lock){0};
    }
    cc__list_init(&fd->observers);
    cc__set(&fd->observing, 0);
    cc__set(&fd->armed, 0);
    fd->in_set = false;
    fd->suspect = 0;
    fd->borrowers = 0;
    fd->borrowed_blocking = false;
}

void cc__fd_forget(void) {
    for (unsigned index = 0; index < chunks_end; index++) {
        struct io_fd *chunk = cc__get(&chunks[index]);
        for (unsigned i = 0; chunk != NULL && i < CHUNK; i++) forget(&chunk[i]);
    }
    table_lock = (struct lock){0};
    cc__set(&waiting, 0);
}

/* ---- lists ---- */

/* An operation's arm has no kind; its index is the side that it waits for. */
static bool is_observer(const struct arm *arm) {
    return arm->kind != CC_CASE_NONE;
}

static void count_locked(struct io_fd *fd, struct arm *arm, uint32_t by) {
    _Atomic uint32_t *count = is_observer(arm) ? &fd->observing : &fd->side[arm->index & 1].count;
    cc__set(count, cc__get(count) + by);
    (void)cc__add(&waiting, by);
}

static void link_locked(struct io_fd *fd, struct arm *arm) {
    cc__list_push_back(is_observer(arm) ? &fd->observers : &fd->side[arm->index & 1].waiters, &arm->link);
    arm->linked = true;
    count_locked(fd, arm, 1);
}

static void unlink_locked(struct io_fd *fd, struct arm *arm) {
    cc__list_remove(&arm->link);
    arm->linked = false;
    count_locked(fd, arm, UINT32_MAX);
}

static bool any_waits_locked(struct io_fd *fd) {
    return cc__get(&fd->side[IO_READ].count) + cc__get(&fd->side[IO_WRITE].count) + cc__get(&fd->observing) != 0;
}

/* ---- edges ---- */

/* The arm is off its list. Claims as for an object without a lock: the fiber may be about to park. */
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
    cc__set_release(&fd->side[side].edges, cc__get(&fd->side[side].edges) + 1); /* FD-2; pairs with cc__fd_edges */
    while (!cc__list_empty(list)) {
        struct arm *arm = container_of(cc__get(&list->next), struct arm, link);
        unlink_locked(fd, arm);
        if (claim_locked(arm, wakes)) return;
    }
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

/* FD-7. Arms of a select get `error`. */
static void wake_observers_locked(struct io_fd *fd, unsigned ready, int error, struct wakes *wakes) {
    struct link *list = &fd->observers, *next;
    for (struct link *l = cc__get(&list->next); l != list; l = next) {
        struct arm *arm = container_of(l, struct arm, link);
        next = cc__get(&l->next);
        if ((ready & (arm->events | POLLER_HANGUP)) == 0) continue;
        unlink_locked(fd, arm);
        cc__arm_claimed(arm, claim_locked(arm, wakes), error);
    }
}

/* An event, or a change of what is reported: a waiter that checked before has to check again. */
static void count_event_locked(struct io_fd *fd) {
    cc__set_release(&fd->events, cc__get(&fd->events) + 1); /* pairs with cc__fd_events */
}

/* FD-8. Keeps the sides that others have armed it for and not yet linked themselves to. */
static int arm_locked(struct io_fd *fd, uint64_t word, unsigned sides) {
    sides |= cc__get(&fd->armed);
    int error = cc__poller_arm(fd->number, data_of(fd, word), sides);
    if (error == 0) {
        cc__set(&fd->armed, sides);
        fd->in_set = true;
    }
    return error;
}

/* The sides that are waited for. */
static unsigned sides_locked(struct io_fd *fd) {
    unsigned sides = (cc__get(&fd->side[IO_READ].count) != 0 ? POLLER_READ : 0u) |
                     (cc__get(&fd->side[IO_WRITE].count) != 0 ? POLLER_WRITE : 0u);
    struct link *list = &fd->observers;
    for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next))
        sides |= container_of(l, struct arm, link)->events;
    return sides;
}

/* It was armed for one report: the remaining waiters need another. */
static void arm_again_locked(struct io_fd *fd, uint64_t word) {
    cc__set(&fd->armed, 0);
    if (any_waits_locked(fd)) (void)arm_locked(fd, word, sides_locked(fd));
}

/* A select that has armed it, and is not linked yet, notices the event. */
static void remove_locked(struct io_fd *fd) {
    cc__poller_remove(fd->number);
    cc__set(&fd->armed, 0);
    fd->in_set = false;
    count_event_locked(fd);
}

void cc__fd_disarm(struct io_fd *fd) {
    cc__lock_take(&fd->lock);
    if (is_registered(fd))
        cc__set(&fd->armed, 0); /* since it was adopted */
    else if (cc__get(&fd->armed) != 0 && !any_waits_locked(fd))
        remove_locked(fd);
    cc__lock_release(&fd->lock);
}

void cc__fd_event(const struct poller_event *event, struct wakes *wakes) {
    struct io_fd *fd = at((int)(uint32_t)event->data);
    if (fd == NULL) return;
    cc__lock_take(&fd->lock);
    uint64_t word = cc__get(&fd->word);
    if (fd_generation(word) == (uint32_t)(event->data >> 32)) {
        if (event->ready & (POLLER_HANGUP | POLLER_URGENT)) cc__set(&fd->no_skip, true);
        count_event_locked(fd);
        if (event->ready & POLLER_READ) edge_locked(fd, IO_READ, wakes);
        if (event->ready & POLLER_WRITE) edge_locked(fd, IO_WRITE, wakes);
        if (cc__get(&fd->observing) != 0) wake_observers_locked(fd, event->ready, ARM_AGAIN, wakes);
        if (!is_registered(fd)) arm_again_locked(fd, word);
    }
    cc__lock_release(&fd->lock);
}

void cc__fd_shut(struct io_use *use, unsigned sides) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__fd_event(&(struct poller_event){data_of(use->fd, use->word), sides}, &wakes);
    cc__wakes_flush(&wakes);
}

/* 0 or EBADF. A socket of the library's is told not to linger, which is one call for both. */
static int find_open(int number, uint64_t word) {
    bool own_socket = (word & FD_ADOPTED) && (word & FD_SOCKET);
    return own_socket ? cc__os_no_linger(number) : cc__os_valid(number);
}

/* only: only if it has that generation; otherwise any. */
static int close_fd(struct io_use use, bool only) {
    struct io_fd *fd = use.fd;
    int number = fd->number;
    struct wakes wakes;
    uint64_t word = cc__get(&fd->word);
    do {
        if ((word & FD_CLOSING) || (only && !is_current(&use, word))) return EBADF;
    } while (!cc__cas(&fd->word, &word, (word | FD_CLOSING) + 1));
    if (find_open(number, word) != 0) { /* it is not open: no state changes */
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
    wake_observers_locked(fd, POLLER_HANGUP, EBADF, &wakes);
    cc__lock_release(&fd->lock);
    cc__wakes_flush(&wakes);
    use.word = word;
    cc__fd_leave(&use);
    return 0;
}

int cc__fd_close(int number) {
    struct io_use use;
    int error = cc__fd_find(number, &use);
    if (error != 0) return error == ENOMEM ? cc__os_close(number) : error;
    return close_fd(use, false);
}

int cc__fd_close_used(const struct io_use *use) {
    return close_fd(*use, true);
}

/* ---- adopt, release ---- */

/* Whether it is the descriptor that was adopted: the number may have been closed without the library's knowledge, and
 * reused. Then it is most likely in blocking mode, and not in the poller's set. */
static bool was_adopted_locked(struct io_fd *fd, uint64_t word, bool blocks) {
    if (!(word & FD_ADOPTED) || blocks) return false;
    return !is_registered(fd) || cc__poller_register_again(fd->number, data_of(fd, word)) == 0;
}

/* If the mode cannot be set, the descriptor is not open: the call will fail with that. */
void cc__fd_borrow_mode(struct io_fd *fd) {
    cc__lock_take(&fd->lock);
    bool blocks = false;
    if (!(cc__get(&fd->word) & FD_ADOPTED) && cc__os_nonblocking(fd->number, true, &blocks) == 0 && blocks)
        fd->borrowed_blocking = true;
    fd->borrowers++;
    cc__lock_release(&fd->lock);
}

void cc__fd_return_mode(struct io_fd *fd) {
    bool before;
    cc__lock_take(&fd->lock);
    if (--fd->borrowers == 0 && fd->borrowed_blocking) {
        fd->borrowed_blocking = false;
        (void)cc__os_nonblocking(fd->number, false, &before);
    }
    cc__lock_release(&fd->lock);
}

int cc__fd_take_turn(struct io_fd *fd, enum io_side side) {
    for (struct backoff backoff = {0}; !cc__lock_try(&fd->side[side].turn); cc__backoff(&backoff)) {
        int ready = cc__poller_look(fd->number, side == IO_READ ? POLLER_READ : POLLER_WRITE);
        if (ready <= 0) return ready < 0 ? ready : -EAGAIN;
    }
    return 0;
}

void cc__fd_give_turn(struct io_fd *fd, enum io_side side) {
    cc__lock_release(&fd->side[side].turn);
}

/* FD_SOCKET, FD_STREAM. */
static uint64_t ask_kind(int number) {
    bool is_socket = false, is_stream = cc__os_is_stream(number, &is_socket);
    return (is_socket ? FD_SOCKET : 0) | (is_stream ? FD_STREAM : 0);
}

/* nonblocking: it is in that mode. */
static int adopt(int number, bool fresh, bool nonblocking, uint64_t kind) {
    struct io_use use;
    bool blocks = false;
    int error = cc__fd_find(number, &use);
    if (error != 0) return error;
    struct io_fd *fd = use.fd;
    cc__lock_take(&fd->lock); /* also guards the mode: a release may be under way */
    if (!nonblocking) error = cc__os_nonblocking(number, true, &blocks);
    uint64_t word = cc__get(&fd->word), next;
    if (error != 0 || (!fresh && was_adopted_locked(fd, word, blocks))) {
        cc__lock_release(&fd->lock);
        return error;
    }
    if (fd->borrowed_blocking) blocks = true; /* FD-10 */
    bool waited_for = any_waits_locked(fd);
    do {
        next = (word & ~(FD_SOCKET | FD_STREAM | FD_BLOCKS)) | FD_ADOPTED | (blocks ? FD_BLOCKS : 0) | kind;
        /* The number had another descriptor, which was closed without the library's knowledge. If that was not adopted,
         * calls on the number that have begun continue. */
        if (!waited_for && (fresh || (word & FD_ADOPTED))) next += UINT64_C(1) << 32;
        if (word & FD_CLOSING) error = EBADF;
    } while (error == 0 && !cc__cas(&fd->word, &word, next));
    if (error == 0) {
        fd->borrowed_blocking = false;
        cc__set(&fd->registered, 0);
        count_event_locked(fd);
        cc__set(&fd->broken, 0);
        cc__set(&fd->no_skip, !(kind & FD_STREAM));
        for (int side = 0; side < IO_SIDES; side++) {
            cc__set(&fd->side[side].drained, 0);
        }
    }
    cc__lock_release(&fd->lock);
    return error;
}

int cc__fd_adopt(int number, bool fresh) {
    return adopt(number, fresh, false, ask_kind(number));
}

int cc__fd_adopt_accepted(int number, uint64_t listener) {
    bool known = (listener & FD_ADOPTED) && (listener & FD_SOCKET);
    return adopt(number, true, true, known ? listener & (FD_SOCKET | FD_STREAM) : ask_kind(number));
}

int cc__fd_release(int number) {
    struct io_use use;
    bool before;
    int error = cc__fd_find(number, &use);
    if (error == 0 && !(use.word & FD_ADOPTED)) error = cc__os_valid(number);
    if (error != 0) return error;
    struct io_fd *fd = use.fd;
    cc__lock_take(&fd->lock);
    uint64_t word = cc__get(&fd->word);
    if (!is_current(&use, word)) {
        error = EBADF;
    } else if (any_waits_locked(fd) || (word & FD_USERS) != 0) {
        error = EBUSY;
    } else if (!(word & FD_ADOPTED)) {
        /* it is not adopted */
    } else if (!cc__cas(&fd->word, &word, (uint64_t)(fd_generation(word) + 1) << 32)) {
        error = EBUSY;
    } else {
        if (in_set_locked(fd)) remove_locked(fd);
        cc__set(&fd->registered, 0);
        forget_hints_locked(fd); /* the next descriptor with this number may be a file */
        if (use.word & FD_BLOCKS) error = cc__os_nonblocking(number, false, &before);
    }
    cc__lock_release(&fd->lock);
    return error;
}

/* ---- wait ---- */

/* Whether the descriptor is still the same, and the runtime runs, which may stop while an OS thread is here: FD-5. The
 * lock orders this with the sweep of a runtime that stops. */
static int check_locked(struct io_use *use) {
    if (!is_current(use, cc__get(&use->fd->word))) return EBADF;
    return cc__io_instance() == 0 ? ECANCELED : 0;
}

/* Registers an adopted descriptor, once for each instance of the poller. The caller is a user, so it is not closed. */
static int register_fd(struct io_use *use) {
    struct io_fd *fd = use->fd;
    uint32_t instance;
    int error = cc__io_open(&instance);
    if (error != 0 || !(use->word & FD_ADOPTED) || cc__get(&fd->registered) == instance) return error;
    cc__lock_take(&fd->lock);
    if (cc__get(&fd->registered) != instance) {
        error = cc__poller_register(fd->number, data_of(fd, use->word));
        if (error == 0) cc__set(&fd->registered, instance);
    }
    cc__lock_release(&fd->lock);
    return error;
}

int cc__fd_prepare(struct io_use *use) {
    int error = cc__fd_enter(use);
    if (error != 0) return error;
    error = register_fd(use);
    cc__fd_leave(use);
    return error;
}

int cc__fd_may_wait(int number) {
    if (unlikely(cc__upcall_hosted_id() != 0)) cc_panic("a hosted call cannot wait for a descriptor");
    return cc__sim_seed() != 0 && number < OS_SIMULATED ? ENOTSUP : 0;
}

int cc__fd_look(struct io_use *use, unsigned sides) {
    int error = cc__fd_enter(use);
    if (error != 0) return error;
    int ready = cc__poller_look(use->fd->number, sides);
    cc__fd_leave(use);
    if (ready > 0) cc__fd_found(use);
    return ready < 0 ? -ready : ready == 0 ? ARM_WAIT : 0;
}

/* A waiting operation: its arm, and its use of the descriptor. */
struct operation {
    struct arms arms;
    struct arm arm;
    struct io_use *use;
    uint32_t seen; /* edges before its attempt */
    int error;     /* of the poller; ECANCELED: the runtime has stopped */
};

void cc__fd_listen(const struct waiter *waiter) {
    if (waiter->fiber != NULL || cc__upcall_enter(false) != 0) return; /* it stops, and wakes us (FD-5) */
    cc__io_listen();
    cc__upcall_leave();
}

/* The waiter can be found when this returns, or was woken here. */
static int publish(void *object, struct waiter *waiter, void *io) {
    (void)object;
    struct operation *op = io;
    struct io_fd *fd = op->use->fd;
    unsigned side = op->arm.index;
    op->arm.waiter = waiter;
    cc__lock_take(&fd->lock);
    op->error = check_locked(op->use);
    bool open = op->error != EBADF, used = op->error == 0 && cc__get(&fd->side[side].edges) != op->seen; /* FD-2 */
    if (op->error == 0 && !used && !is_registered(fd)) op->error = arm_locked(fd, cc__get(&fd->word), op->arm.events);
    bool linked = op->error == 0 && !used;
    if (linked) link_locked(fd, &op->arm);
    cc__lock_release(&fd->lock);
    if (linked)
        cc__fd_listen(waiter);
    else if (open)
        (void)cc__waiter_wake(waiter, WAKE_OBJECT);
    return open ? 0 : EBADF;
}

/* A fiber that was claimed for the object is off the list, or never was on it, and its claimant has finished with the
 * arm: the claim is its last step. */
static void unpublish(void *object, struct waiter *waiter) {
    if (waiter->fiber != NULL && cc__word_reason(cc__get(&waiter->fiber->word)) == WAKE_OBJECT) return;
    cc__fd_unlink(((struct arms *)object)->first);
}

static const struct waitable_ops ops = {publish, unpublish};

/* Opens the poller, and registers an adopted descriptor; others are armed when a waiter links itself. */
static int prepare_to_wait(struct io_use *use) {
    if (likely((use->word & FD_ADOPTED) && is_registered(use->fd))) return 0; /* publish checks whether it was closed */
    bool thread = cc__worker() == NULL;
    int error =
        thread ? cc__upcall_enter(true) : 0; /* only to open the poller: a shutdown does not wait for the wait itself */
    if (error != 0) return error;
    if (thread) error = cc__fd_may_wait(use->fd->number); /* the entry may have started a simulation */
    if (error == 0) error = cc__fd_prepare(use);
    if (thread) cc__upcall_leave();
    return error;
}

int cc__fd_wait(struct io_use *use, enum io_side side, uint32_t seen, uint64_t deadline) {
    struct operation op = {
        .arm = {.index = side, .events = side == IO_READ ? POLLER_READ : POLLER_WRITE, .object = use->fd},
        .use = use,
        .seen = seen};
    op.arms = (struct arms){.first = &op.arm, .count = 1};
    int error = cc__fd_may_wait(use->fd->number);
    if (error == 0) error = prepare_to_wait(use);
    if (unlikely(error != 0)) return error;
    error = cc__fiber_wait(&op.arms, &op, &ops, deadline, PARK_IO);
    return error != 0 ? error : op.error;
}

/* ---- observers ---- */

int cc__fd_arm(struct io_use *use, unsigned sides, uint32_t *seen) {
    struct io_fd *fd = use->fd;
    cc__lock_take(&fd->lock);
    int error = check_locked(use);
    if (error == 0 && !is_registered(fd)) {
        error = arm_locked(fd, cc__get(&fd->word), sides);
        *seen = cc__get(&fd->events);
    }
    cc__lock_release(&fd->lock);
    return error;
}

int cc__fd_look_locked(struct io_use *use, uint32_t seen) {
    int error = check_locked(use);
    return error != 0 ? error : cc__get(&use->fd->events) != seen ? ARM_AGAIN : 0;
}

void cc__fd_link_locked(struct arm *arm) {
    link_locked(arm->object, arm);
}

int cc__fd_link(struct io_use *use, struct arm *arm, uint32_t seen) {
    struct io_fd *fd = use->fd;
    cc__lock_take(&fd->lock);
    int error = check_locked(use);
    if (error == 0)
        error = is_registered(fd) ? cc__fd_look_locked(use, seen) : arm_locked(fd, cc__get(&fd->word), arm->events);
    if (error == 0) link_locked(fd, arm);
    cc__lock_release(&fd->lock);
    return error;
}

void cc__fd_unlink(struct arm *arm) {
    struct io_fd *fd = arm->object;
    cc__lock_take(&fd->lock);
    if (arm->linked) unlink_locked(fd, arm);
    cc__lock_release(&fd->lock);
}

/* ---- the watchdog of debug builds ---- */

_Atomic uint64_t cc__fd_lost_after = 1000000000;

enum { SUSPECT_SEEN = 1, SUSPECT_REPORTED = 2, SUSPECT_BITS = 2 };

static const struct arm *first_locked(struct io_fd *fd) {
    struct link *lists[] = {&fd->side[IO_READ].waiters, &fd->side[IO_WRITE].waiters, &fd->observers};
    for (size_t i = 0; i < array_len(lists); i++)
        if (!cc__list_empty(lists[i])) return container_of(cc__get(&lists[i]->next), struct arm, link);
    return NULL;
}

/* Whether its wait should have ended since the last check; false if it was reported. */
static bool is_lost_locked(struct io_fd *fd, struct io_lost *lost) {
    uint32_t events = cc__get(&fd->events) << SUSPECT_BITS;
    unsigned sides = any_waits_locked(fd) ? sides_locked(fd) : 0;
    int ready = sides != 0 ? cc__poller_look(fd->number, sides) : 0;
    bool closed = ready == -EBADF;
    if (!closed && (ready <= 0 || ((unsigned)ready & sides) == 0)) {
        fd->suspect = 0;
        return false;
    }
    if (fd->suspect == (events | SUSPECT_REPORTED)) return false;
    bool again = fd->suspect == (events | SUSPECT_SEEN);
    fd->suspect = events | (again ? SUSPECT_REPORTED : SUSPECT_SEEN);
    *lost = (struct io_lost){.number = fd->number,
                             .closed = closed,
                             .reads = closed || ((unsigned)ready & POLLER_READ) != 0,
                             .fiber = first_locked(fd)->waiter->fiber};
    return again;
}

bool cc__fd_find_lost(uint64_t now, struct io_lost *lost) {
    static uint64_t last; /* used by the sysmon thread only */
    if (cc__io_instance() == 0 || now - last < cc__get(&cc__fd_lost_after)) return false;
    last = now;
    bool found = false;
    cc__lock_take(&table_lock);
    unsigned end = chunks_end;
    cc__lock_release(&table_lock);
    for (unsigned i = 0; i < end * CHUNK && !found; i++) {
        struct io_fd *fd = at((int)i);
        if (fd == NULL) continue;
        cc__lock_take(&fd->lock);
        found = is_lost_locked(fd, lost);
        cc__lock_release(&fd->lock);
    }
    return found;
}

/* ---- the end of the runtime ---- */

static void cancel_locked(struct link *list) {
    for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next))
        (void)cc__waiter_wake(container_of(l, struct arm, link)->waiter, WAKE_CANCEL);
}

void cc__fd_cancel_threads(void) {
    cc__lock_take(&table_lock);
    unsigned end = chunks_end;
    cc__lock_release(&table_lock);
    for (unsigned c = 0; c < end; c++) {
        struct io_fd *chunk = cc__get_acquire(&chunks[c]); /* pairs with make_chunk */
        for (unsigned i = 0; chunk != NULL && i < CHUNK; i++) {
            cc__lock_take(&chunk[i].lock);
            for (int side = 0; side < IO_SIDES; side++) cancel_locked(&chunk[i].side[side].waiters);
            cancel_locked(&chunk[i].observers);
            count_event_locked(&chunk[i]);
            cc__set(&chunk[i].armed, 0);
            chunk[i].in_set = false;
            cc__lock_release(&chunk[i].lock);
        }
    }
}
