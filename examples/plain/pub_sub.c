/* pub_sub.c - ../pub_sub.c by functions alone. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { NEWS = 10, ROOM = 2, SUBSCRIBERS_MAX = 8 };

enum policy { WAIT, DROP_OLDEST, DISCONNECT };

/* One channel for each subscriber, all under one lock, so that all see the messages in the same order. */
struct topic {
    CCMutex lock;
    enum policy policy;
    CCChan *subscribers[SUBSCRIBERS_MAX];
    size_t count;
};

static CCChan *subscribe(struct topic *t) {
    CCChanMode mode = t->policy == DROP_OLDEST ? CC_CHAN_MODE_DROP_OLD : CC_CHAN_MODE_BLOCK;
    CCChan *ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof(int), .capacity = ROOM, .mode = mode});
    if (ch == NULL) return NULL;
    cc_mutex_lock_uncancellable(&t->lock);
    bool room = t->count < SUBSCRIBERS_MAX;
    if (room) t->subscribers[t->count++] = ch;
    cc_mutex_unlock(&t->lock);
    if (room) return ch;
    cc_chan_free(ch);
    return NULL;
}

static int say(struct topic *t, int number) {
    int error = cc_mutex_lock(&t->lock);
    if (error != 0) return error;
    for (size_t i = 0; i < t->count && error == 0;) {
        CCChan *ch = t->subscribers[i];
        if (t->policy == DISCONNECT) {
            if (cc_chan_send_try(ch, &number, sizeof number) == EAGAIN) {
                (void)cc_chan_close_err(ch, ENOBUFS);
                t->subscribers[i] = t->subscribers[--t->count];
                continue;
            }
        } else {
            error = cc_chan_send(ch, &number, sizeof number);
        }
        i++;
    }
    cc_mutex_unlock(&t->lock);
    return error;
}

static size_t close_topic(struct topic *t) {
    cc_mutex_lock_uncancellable(&t->lock);
    for (size_t i = 0; i < t->count; i++) (void)cc_chan_close(t->subscribers[i]);
    size_t count = t->count;
    cc_mutex_unlock(&t->lock);
    return count;
}

struct reader {
    CCChan *from;
    CCSem read;
    int count;
};

static void *read_news(void *arg) {
    struct reader *r = arg;
    int number;
    while (cc_chan_recv(r->from, &number, sizeof number) == 0) {
        r->count += number > 0;
        cc_sem_release(&r->read, 1);
    }
    return NULL;
}

/* The publisher waits for the fast subscriber after each message. The slow one starts when all are published, unless
 * the policy makes the publisher wait for it. */
static void publish(const char *name, enum policy policy) {
    struct topic t = {.policy = policy};
    struct reader fast = {.from = subscribe(&t)}, slow = {.from = subscribe(&t)};
    CCTask fast_one, slow_one;
    if (fast.from == NULL || slow.from == NULL) abort();
    if (cc_spawn(&fast_one, read_news, &fast, NULL) != 0) abort();
    if (policy == WAIT && cc_spawn(&slow_one, read_news, &slow, NULL) != 0) abort();
    for (int i = 1; i <= NEWS; i++)
        if (say(&t, i) != 0 || cc_sem_acquire(&fast.read) != 0) abort();
    size_t subscribers = close_topic(&t);
    if (policy != WAIT && cc_spawn(&slow_one, read_news, &slow, NULL) != 0) abort();
    if (cc_task_join(&fast_one, NULL) != 0 || cc_task_join(&slow_one, NULL) != 0) abort();
    printf("%s: the fast one has read %d, the slow one %d, and %zu are subscribed\n", name, fast.count, slow.count,
           subscribers);
    cc_chan_free(fast.from);
    cc_chan_free(slow.from);
}

int main(void) {
    publish("wait for it", WAIT);
    publish("drop the oldest", DROP_OLDEST);
    publish("disconnect it", DISCONNECT);
}
