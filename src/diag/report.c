/* report.c - who has not ended, and where. */
#include "diag/diag.h"
#include "diag/dump.h"

void cc__diag_unfinished(void) {
    struct survey survey;
    struct out out = {0};
    cc__dump_begin();
    if (cc__survey_take(&survey, true) == 0) {
        cc__dump_fibers(&out, &survey, NULL);
        cc__out_flush(&out);
        cc__survey_free(&survey);
    }
    cc__dump_end();
}
