/* pressure.c - when workers were added, and what spoke against it. */
#include "base/fatal.h"
#include "diag/diag.h"
#include "sched/elastic.h"
#include "sched/sysmon.h"

#include <stdio.h>

void cc__diag_pressure(void) {
    struct sysmon_stats s;
    cc__sysmon_stats(&s);
    cc__warn("pressure: positive_samples %llu, negative_samples %llu, current_pressure %lld, neg_streak_max %llu",
             (unsigned long long)s.positive_samples, (unsigned long long)s.negative_samples,
             (long long)s.current_pressure, (unsigned long long)s.neg_streak_max);
    cc__warn("pressure: gate_passes %llu, promoted %llu, retired %llu, workers %u of %u to %u",
             (unsigned long long)s.gates[GATE_PASSED], (unsigned long long)s.promoted,
             (unsigned long long)cc__elastic_retired(), cc__sched_open(), cc__sched.base, cc__sched.max);
    char text[400];
    int at = 0;
    for (int gate = GATE_PASSED + 1; gate < GATE_KINDS; gate++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%s %llu", at > 0 ? ", " : "",
                       cc__gate_name((enum gate)gate), (unsigned long long)s.gates[gate]);
    cc__warn("pressure: gate_blocks: %s", text);
}
