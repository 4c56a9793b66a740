/* patience.c - a client that waits for two hours, then for four, then for six, and gives up; tested in milliseconds. */
#include <ccc/ccc.h>
#include <stdio.h>

static const uint64_t hour = 3600 * 1000;

/* Answers with what it was asked, or not at all. */
static void *server(void *line) {
    int question;
    while (cc_chan_recv(line, &question, sizeof question) == 0) printf("the server heard question %d\n", question);
    return NULL;
}

static int ask(CCChan *line, CCChan *answers) {
    for (int attempt = 1; attempt <= 3; attempt++) {
        int answer;
        cc_chan_send(line, &attempt, sizeof attempt);
        if (cc_chan_recv_until(answers, &answer, sizeof answer, cc_after_ms((uint64_t)attempt * 2 * hour)) == 0)
            return answer;
    }
    return -1;
}

static void *test(void *arg) {
    CCChan *line = cc_chan_create(sizeof(int), 0), *answers = cc_chan_create(sizeof(int), 0);
    CCTask silent = cc_fiber_spawn_task(server, line);
    uint64_t start = cc_now_ns();
    int answer = ask(line, answers);
    printf("answer %d, after %.2f hours\n", answer, (double)(cc_now_ns() - start) / 1e6 / (double)hour);
    cc_chan_close(line);
    cc_block_on(silent);
    cc_chan_free(line);
    cc_chan_free(answers);
    return arg;
}

int main(void) {
    for (uint64_t seed = 1; seed <= 3; seed++)
        if (cc_sim_run(seed, test, NULL, NULL) != 0) return 1;
    return 0;
}
