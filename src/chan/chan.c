/* chan.c - create, close and free a channel. */
#include "chan/chan.h"

#include "base/error.h"
#include "base/fatal.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "os/clock.h"
#include "sim/sim.h"
#include "sync/freed.h"

#include <ccc/cc_panic.h>
#include <errno.h>
#include <stdio.h>

/* ---- double free ---- */

static struct freed freed;

static CC_COLD CC_NOINLINE void freed_twice(const CCChan *ch) {
    cc__fatal("cc_chan_free: the channel %p has been freed already", (const void *)ch);
}

/* ---- create, close, free ---- */

static bool sensible(const CCChanConfig *c) {
    bool pool = c->on_create != NULL || c->on_reset != NULL || c->on_destroy != NULL;
    if (c->mode != CC_CHAN_MODE_BLOCK && c->mode != CC_CHAN_MODE_DROP_NEW && c->mode != CC_CHAN_MODE_DROP_OLD)
        return false;
    if (c->mode != CC_CHAN_MODE_BLOCK && (c->capacity == 0 || pool || c->ordered)) return false;
    if (pool && (c->capacity == 0 || c->ordered)) return false;
    if (c->on_drop != NULL && (pool || c->ordered)) return false;
    if (cc__reserved_used(c)) return false;
    return !c->ordered || c->elem_size == 0 || c->elem_size == sizeof(CCTask);
}

static CCChan *refuse(int error) {
    cc__errno_set(error);
    return NULL;
}

CCChan *cc_chan_create_ex(const CCChanConfig *config) {
    if (config == NULL || !sensible(config)) return refuse(EINVAL);
    size_t size = config->ordered ? sizeof(CCTask) : config->elem_size;
    if (size != 0 && config->capacity > (SIZE_MAX / 2 - sizeof(CCChan)) / size) return refuse(ENOMEM);
    CCChan *ch = cc__mem_alloc(sizeof *ch);
    if (ch == NULL) return refuse(ENOMEM);
    ch->size = size;
    ch->capacity = config->capacity;
    /* Elements of size 0 have a ring too, so that slot addresses are valid. A slot is written before it is read, so a
     * large ring takes memory only as it is filled. */
    size_t bytes = size > 0 ? size * config->capacity : 1;
    if (config->capacity > 0 && (ch->ring = cc__mem_alloc_stack(bytes)) == NULL) {
        cc__mem_free(ch);
        return refuse(ENOMEM);
    }
    ch->mode = (uint8_t)config->mode;
    ch->ordered = config->ordered;
    ch->traced = cc__trace_on(TRACE_CHAN | TRACE_CHAN_VERBOSE | TRACE_TIMING | TRACE_SIM);
    ch->pool = config->on_create != NULL || config->on_reset != NULL || config->on_destroy != NULL;
    if (!ch->pool && !ch->traced && (size == sizeof(uint64_t) || size == sizeof(int))) ch->fast_size = (uint8_t)size;
#ifndef CC_TSAN /* one worker orders its fibers, which the race detector does not see */
    ch->may_bias = !ch->pool && !ch->traced && ch->mode == CC_CHAN_MODE_BLOCK;
#endif
    ch->threshold = ch->select_threshold = BIAS_USES_MIN;
    ch->config = *config;
    ch->config.name = NULL;
    if (config->name != NULL) {
        snprintf(ch->name, sizeof ch->name, "%s", config->name);
        cc__utf8_cut(ch->name);
    }
    cc__list_init(&ch->receivers);
    cc__list_init(&ch->senders);
    cc__set(&ch->refs, 1);
    cc__freed_unmark(&freed, ch);
    cc__event(chan_create, ch, ch->name, size, ch->capacity);
    return ch;
}

CCChan *cc_chan_create(size_t elem_size, size_t capacity) {
    CCChanConfig config = {.elem_size = elem_size, .capacity = capacity};
    return cc_chan_create_ex(&config);
}

CCChan *cc_chan_ref(CCChan *ch) {
    if (ch != NULL) cc__add(&ch->refs, 1);
    return ch;
}

void cc__chan_destroy(CCChan *ch) {
    cc__event(chan_free, ch, ch->name, true, cc__get(&ch->count), ch->capacity);
    for (; cc__get(&ch->count) > 0; cc__chan_drop_locked(ch)) {
        void *item = cc__chan_slot(ch, ch->head);
        if (ch->config.on_destroy != NULL) ch->config.on_destroy(item, ch->config.context);
        if (ch->config.on_drop != NULL) ch->config.on_drop(item, ch->config.context);
        if (ch->ordered) {
            CCTask task;
            memcpy(&task, item, sizeof task);
            (void)cc_task_detach(&task);
        }
    }
    cc__mem_free(ch->ring);
    cc__freed_mark(&freed, ch);
    cc__mem_free(ch);
}

void cc_chan_free(CCChan *ch) {
    if (ch == NULL) return;
    if (unlikely(cc__freed_is(&freed, ch))) freed_twice(ch);
    uint32_t refs = cc__sub(&ch->refs, 1);
    if (unlikely(refs == 0)) freed_twice(ch); /* arms whose claim was lost may still use it */
    if (refs != 1) return;
    cc__event(chan_free, ch, ch->name, false, cc__get(&ch->count), ch->capacity);
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__chan_lock(ch);
    cc__chan_close_locked(ch, 0, &wakes);
    ch->abandoned = true;
    bool last = ch->lost_claims == 0;
    cc__lock_release(&ch->lock);
    cc__chan_wakes_flush(&wakes);
    if (last) cc__chan_destroy(ch);
}

static void claim_all_locked(CCChan *ch, struct link *list, struct wakes *wakes) {
    while (cc__chan_claim_locked(ch, list, wakes, ch->error) != NULL) {
    }
}

void cc__chan_close_locked(CCChan *ch, int error, struct wakes *wakes) {
    if (cc__get(&ch->closed)) return;
    cc__set_release(&ch->closed, true); /* pairs with cc_chan_is_closed */
    ch->error = error > 0 ? error : EPIPE;
    claim_all_locked(ch, &ch->receivers, wakes);
    claim_all_locked(ch, &ch->senders, wakes);
}

int cc_chan_close_err(CCChan *ch, int error) { /* CHAN-4 */
    if (ch == NULL || error < 0) return EINVAL;
    cc__sim_point();
    uint64_t start = cc__trace_on(TRACE_TIMING) ? cc__clock_now() : 0;
    cc__event(chan_close, ch, ch->name, error > 0 ? error : EPIPE, cc__get(&ch->closed), cc__get(&ch->count),
              ch->capacity);
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__chan_lock(ch);
    cc__chan_close_locked(ch, error, &wakes);
    cc__lock_release(&ch->lock);
    cc__chan_wakes_flush(&wakes);
    cc__timing_since(TIMED_CLOSE, start);
    cc__sim_point();
    return 0;
}

int cc_chan_close(CCChan *ch) {
    return cc_chan_close_err(ch, 0);
}

/* A simulation point: in a loop that polls, other fibers must get to run. */

size_t cc_chan_len(CCChan *ch) {
    cc__sim_point();
    return ch != NULL ? cc__get(&ch->count) : 0;
}

size_t cc_chan_cap(CCChan *ch) {
    return ch != NULL ? ch->capacity : 0;
}

bool cc_chan_is_closed(CCChan *ch) {
    cc__sim_point();
    return ch != NULL && cc__get_acquire(&ch->closed); /* pairs with the close */
}

uint64_t cc_chan_dropped(CCChan *ch) {
    if (ch == NULL) return 0;
    cc__sim_point();
    cc__chan_lock(ch);
    uint64_t dropped = ch->dropped;
    cc__lock_release(&ch->lock);
    return dropped;
}

/* ---- loops ---- */

bool cc_chan_next(CCChan *ch, void *value, size_t size) {
    if (unlikely(ch == NULL)) cc_panic("CC_FOR_RECV: the channel is NULL");
    if (unlikely(size != ch->size))
        cc_panic("CC_FOR_RECV: the channel carries values of %zu bytes, and the variable has %zu", ch->size, size);
    return cc_chan_recv(ch, value, size) == 0;
}
