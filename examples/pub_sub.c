/* pub_sub.c - broadcast: a fast and a slow subscriber, under each policy for slow subscribers. */
#include <ccc/ccc.h>
#include <stdio.h>

enum { NEWS = 10, ROOM = 2 };

CC_CHAN_OF(News, int);

CC_ASYNC(int, read_news, {
    News from;
    CCSem *read;
}) {
    int count = 0;
    CC_FOR_RECV_OF(number, self->from) {
        count += number > 0;
        cc_sem_release(self->read, 1);
    }
    return count;
}

/* The publisher waits for the fast subscriber after each message. The slow one starts when all are published, unless
 * the policy makes the publisher wait for it. */
static void publish(const char *policy, CCSlowMode slow) {
    CCBroadcast *b =
        cc_broadcast_create(&(CCBroadcastConfig){.elem_size = sizeof(int), .capacity = ROOM, .slow = slow});
    News to_fast = News_from(cc_broadcast_subscribe(b)), to_slow = News_from(cc_broadcast_subscribe(b));
    CCSem fast_read = {0}, slow_read = {0};
    CC_FUTURE(read_news, fast_one);
    CC_FUTURE(read_news, slow_one);
    CC_START(&fast_one, read_news, .from = to_fast, .read = &fast_read);
    if (slow == CC_SLOW_BLOCK) CC_START(&slow_one, read_news, .from = to_slow, .read = &slow_read);
    for (int i = 1; i <= NEWS; i++) {
        cc_broadcast_send(b, &i, sizeof i);
        if (cc_sem_acquire(&fast_read) != 0) return;
    }
    size_t subscribers = cc_broadcast_subscribers(b);
    cc_broadcast_close(b);
    if (slow != CC_SLOW_BLOCK) CC_START(&slow_one, read_news, .from = to_slow, .read = &slow_read);
    printf("%s: the fast one has read %d, the slow one %d, and %zu are subscribed\n", policy, CC_AWAIT(&fast_one),
           CC_AWAIT(&slow_one), subscribers);
    cc_broadcast_free(b);
    News_free(to_fast);
    News_free(to_slow);
}

int main(void) {
    publish("wait for it", CC_SLOW_BLOCK);
    publish("drop the oldest", CC_SLOW_DROP_OLD);
    publish("disconnect it", CC_SLOW_DISCONNECT);
}
