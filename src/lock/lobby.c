/* lobby.c - the rooms: queues by address, hot and cold. */
#include "lock/lobby.h"

#include "os/membarrier.h"
#include "sim/sim.h"
#include "sync/barrier.h"

struct lobby cc__lobby[1 << LOBBY_ROOMS_LOG2];

/* ---- queues ---- */

static struct lobby_seat *of_link(struct link *link) {
    return container_of(link, struct lobby_seat, link);
}

static struct lobby_seat *of_queue(struct link *link) {
    return container_of(link, struct lobby_seat, queue);
}

struct lobby_seat *cc__lobby_first_locked(struct lobby *lobby, const void *key) {
    struct link *first = lobby->queues, *l = first;
    if (l == NULL) return NULL;
    do {
        if (of_link(l)->key == key) return of_link(l);
        l = cc__get(&l->next);
    } while (l != first);
    return NULL;
}

static void enter_ring(struct lobby *lobby, struct lobby_seat *seat) {
    seat->head = true;
    if (lobby->queues != NULL) {
        cc__list_push_back(lobby->queues, &seat->link);
    } else {
        cc__list_init(&seat->link);
        lobby->queues = &seat->link;
    }
}

static void leave_ring(struct lobby *lobby, struct lobby_seat *seat) {
    struct link *next = cc__get(&seat->link.next);
    seat->head = false;
    if (lobby->queues == &seat->link) lobby->queues = next != &seat->link ? next : NULL;
    cc__list_remove(&seat->link);
}

void cc__lobby_push_locked(struct lobby *lobby, struct lobby_seat *seat, bool front) {
    struct lobby_seat *first = cc__lobby_first_locked(lobby, seat->key);
    seat->linked = true;
    seat->head = false;
    if (first == NULL) {
        cc__list_init(&seat->queue);
        enter_ring(lobby, seat);
        return;
    }
    cc__list_push_back(&first->queue, &seat->queue); /* before the first is behind the last */
    if (front) {
        leave_ring(lobby, first);
        enter_ring(lobby, seat);
    }
}

void cc__lobby_remove_locked(struct lobby *lobby, struct lobby_seat *seat) {
    struct link *next = cc__get(&seat->queue.next);
    seat->linked = false;
    if (seat->head) {
        leave_ring(lobby, seat);
        if (next != &seat->queue) enter_ring(lobby, of_queue(next));
    }
    cc__list_remove(&seat->queue);
}

struct lobby_seat *cc__lobby_claim_locked(struct lobby *lobby, const void *key, struct wakes *wakes) {
    for (struct lobby_seat *seat; (seat = cc__lobby_first_locked(lobby, key)) != NULL;) {
        cc__lobby_remove_locked(lobby, seat);
        if (cc__wakes_claim_locked(wakes, &seat->waiter, WAKE_OBJECT)) return seat;
    }
    return NULL;
}

/* ---- hot and cold ---- */

void cc__lobby_enter(struct lobby *lobby) {
    cc__lock_take(&lobby->lock);
    cc__set(&lobby->quiet, 0);
    if (likely(!cc__get(&lobby->cold) && lobby->heating == 0)) return;
    cc__set(&lobby->cold, 0);
    lobby->heating++;
    cc__lock_release(&lobby->lock);
    /* The heavy half of "hot, then look at the word" against "word = 0, then look for hot" in
     * cc_mutex_unlock. One who comes while another heats has its own: it cannot know how far the other is. */
    cc__membarrier();
    cc__lock_take(&lobby->lock);
    lobby->heating--;
}

void cc__lobby_cool_slow(struct lobby *lobby) {
    cc__set(&lobby->quiet, 0);
    /* A worker runs, so the runtime has started and knows whether membarrier works; it will for ever. */
    if (cc__worker() == NULL || !cc__barrier_asymmetric || cc__sim_on()) return;
    if (!cc__lock_try(&lobby->lock)) return;
    if (lobby->queues == NULL && lobby->heating == 0) cc__set(&lobby->cold, 1);
    cc__lock_release(&lobby->lock);
}

void cc__lobby_heat_all(void) {
    for (size_t i = 0; i < array_len(cc__lobby); i++) {
        if (!cc__get(&cc__lobby[i].cold)) continue;
        cc__lobby_enter(&cc__lobby[i]);
        cc__lock_release(&cc__lobby[i].lock);
    }
}

void cc__lobby_forget(void) {
    for (size_t i = 0; i < array_len(cc__lobby); i++) {
        struct lobby *lobby = &cc__lobby[i];
        lobby->lock = (struct lock){0};
        lobby->queues = NULL;
        lobby->heating = 0;
        cc__set(&lobby->cold, 0); /* hot is always right */
    }
}
