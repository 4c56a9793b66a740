/* log.c - 64 senders put lines of 64 bytes together, and send them over one channel of capacity 256 to a writer, which
 * appends them to a buffer and empties that when it is full, or after 10 ms. One operation: a line. */
#include "work.h"

#include <string.h>

enum { SENDERS = 64, CAPACITY = 256, TEXT = 56, STEPS = 40, BUFFER = 65536, PAUSE_MS = 10 };

struct line {
    uint64_t sum;
    char text[TEXT];
};

static CCChan *lines;
static uint64_t each, count, sum, bytes;

CC_TASK(sender, { uint64_t number; }) {
    uint64_t seed = self->number + 1;
    for (uint64_t i = 0; i < each; i++) {
        struct line line = {.sum = work_compute(seed += i, STEPS)};
        memset(line.text, 'a' + (int)(line.sum % 26), 20 + line.sum % (TEXT - 20));
        bench_check(cc_chan_send(lines, &line, sizeof line), "cc_chan_send");
    }
    return NULL;
}

CC_TASK(writer, { int unused; }) {
    (void)self;
    static char buffer[BUFFER];
    size_t used = 0, chosen;
    CCDeadline flush = cc_after_ms(PAUSE_MS);
    for (;;) {
        struct line line;
        CCCase cases[] = {CC_RECV(lines, &line, NULL), CC_AT(flush)};
        bench_check(cc_select(cases, 2, CC_FOREVER, &chosen), "cc_select");
        if (chosen == 0 && cases[0].error != 0) break;
        size_t n = chosen == 0 ? strnlen(line.text, TEXT) : 0;
        if (chosen == 1 || used + n > BUFFER) {
            bytes += used;
            used = 0;
            flush = cc_after_ms(PAUSE_MS);
        }
        if (chosen == 1) continue;
        memcpy(buffer + used, line.text, n);
        used += n;
        sum += line.sum;
        count++;
    }
    bytes += used;
    return NULL;
}

static void *run(void *arg) {
    CC_NURSERY(all) {
        bench_check(CC_GO_IN(all, writer), "CC_GO_IN");
        CC_NURSERY(n)
        for (uint64_t i = 0; i < SENDERS; i++) bench_check(CC_GO_IN(n, sender, .number = i), "CC_GO_IN");
        cc_chan_close(lines);
    }
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "log");
    each = bench_scaled(&w.bench, 1000000) / SENDERS + 1;
    lines = work_chan(sizeof(struct line), CAPACITY);
    work_run(&w, run, NULL);
    cc_chan_free(lines);
    uint64_t expected = 0;
    for (uint64_t k = 0; k < SENDERS; k++)
        for (uint64_t i = 0, seed = k + 1; i < each; i++) expected += work_compute(seed += i, STEPS);
    if (count != each * SENDERS || sum != expected || bytes < 20 * count)
        bench_fail("%llu lines of %llu", (unsigned long long)count, (unsigned long long)(each * SENDERS));
    return work_end(&w, count);
}
