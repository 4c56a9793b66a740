/* report.c - who has not ended, and where: when a shutdown gives up, and when leaks are asked for. */
#include "diag/diag.h"
#include "diag/dump.h"

static void list_fibers(struct out *out) {
    struct survey survey;
    if (cc__survey_take(&survey) != 0) return;
    cc__dump_fibers(out, &survey, NULL);
    cc__survey_free(&survey);
}

void cc__diag_unfinished(void) {
    struct out out = {0};
    cc__dump_begin();
    list_fibers(&out);
    cc__out_flush(&out);
    cc__dump_end();
}

void cc__diag_leaks(const char *when) {
    struct out out = {0};
    uint64_t active = cc__sched_active();
    cc__dump_begin();
    cc__out(&out, "ccc: leaks: %llu task%s not ended %s\n", (unsigned long long)active, active == 1 ? " has" : "s have",
            when);
    if (active != 0) {
        cc__dump_unreachable(&out, true);
        list_fibers(&out);
    }
    cc__out_flush(&out);
    cc__dump_end();
}
