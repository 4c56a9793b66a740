/* fan_in.c - a select over several channels: values as they come, and the end of each source. */
#include <ccc/ccc.h>
#include <stdio.h>

enum { SOURCES = 3 };

struct source {
    CCChan *ch;
    int first, step, count;
};

static void *produce(void *arg) {
    struct source *s = arg;
    for (int i = 0; i < s->count; i++) {
        int value = s->first + i * s->step;
        if (cc_chan_send(s->ch, &value, sizeof value) != 0) break;
    }
    cc_chan_close(s->ch);
    return NULL;
}

int main(void) {
    struct source sources[SOURCES] = {{.first = 1, .step = 1, .count = 100},
                                      {.first = 1000, .step = 10, .count = 50},
                                      {.first = -5, .step = -5, .count = 20}};
    CCTask tasks[SOURCES];
    CCCase cases[SOURCES];
    int value, open = SOURCES, values = 0;
    long sum = 0;
    for (int i = 0; i < SOURCES; i++) {
        sources[i].ch = cc_chan_create(sizeof(int), 0);
        tasks[i] = cc_fiber_spawn_task(produce, &sources[i]);
        cases[i] = (CCCase)CC_RECV(sources[i].ch, &value, NULL);
    }
    while (open > 0) {
        size_t i;
        if (cc_select(cases, SOURCES, CC_FOREVER, &i) != 0) return 1;
        if (cases[i].error == 0) {
            sum += value;
            values++;
        } else { /* closed: an arm without a channel is never ready again */
            cases[i].ch = NULL;
            open--;
        }
    }
    for (int i = 0; i < SOURCES; i++) {
        cc_task_join(&tasks[i], NULL);
        cc_chan_free(sources[i].ch);
    }
    printf("%d values from %d sources, sum %ld\n", values, SOURCES, sum);
}
