/* when.c - CC_WHEN: which body runs when the chosen arm has an error, or none was chosen. */
#include "select/when.h"

#include "base/attr.h"

#include <errno.h>

void cc_when_overflow(size_t room) {
    cc_panic("CC_WHEN: more than %zu arms; CC_WHEN_N(n) has room for n", room);
}

void cc_when_changed(void) {
    cc_panic(
        "CC_WHEN: the arm that was executed is not found again: a condition around the arms has changed meanwhile");
}

/* ---- what is wrong ---- */

static const char *wrong_with(const CCCase *c) {
    switch (c->kind) {
    case CC_CASE_SEND:
    case CC_CASE_RECV:
        return "the pointer is NULL, or does not point to a value of the channel's size";
    case CC_CASE_JOIN:
        if (c->task == NULL) return "there is no task; or no ticker, which cc_ticker_init makes";
        return "there is no task: it was not started, or was joined before";
    case CC_CASE_EVENT:
        return "the event is NULL";
    case CC_CASE_ACQUIRE:
        return "the semaphore is NULL";
    case CC_CASE_NURSERY_END:
        return "the nursery is NULL";
    case CC_CASE_EXITED:
        return "the process is NULL";
    default:
        return "it is no arm";
    }
}

/* Repeats the select, which stores EINVAL in the malformed case. With all cases together none is executed. */
static CC_COLD CC_NORETURN void malformed(CCWhen *when) {
    size_t chosen;
    if (when->count > CC_SELECT_MAX) cc_panic("CC_WHEN: %u arms, and a select can have %d", when->count, CC_SELECT_MAX);
    for (uint32_t i = 0; i < when->count; i++) cc__when_cases(when)[i].error = 0;
    (void)cc_select_try(cc__when_cases(when), when->count, &chosen);
    for (uint32_t i = 0; i < when->count; i++)
        if (cc__when_cases(when)[i].error == EINVAL)
            cc_panic("CC_WHEN: arm %u of %u: %s", i + 1, when->count, wrong_with(&cc__when_cases(when)[i]));
    cc_panic("CC_WHEN: an arm is malformed");
}

/* ---- the body ---- */

/* The body of CC_ON_CLOSED for the channel that the chosen arm found closed. Without one a loop would never end. */
static uint32_t body_of_closed(CCWhen *when, size_t chosen) {
    const CCCase *found = &cc__when_cases(when)[chosen];
    for (uint32_t i = 0; i < when->count; i++) {
        const CCCase *c = &cc__when_cases(when)[i];
        if (c->kind == CC_CASE_NONE && c->size == 1 && c->ch == found->ch) return i;
    }
    cc_panic("CC_WHEN: the channel of arm %zu is closed%s (error %d), and there is no CC_ON_CLOSED for it", chosen + 1,
             found->error != EPIPE ? " or has failed" : "", found->error);
}

static bool found_closed(const CCCase *c) {
    return (c->kind == CC_CASE_RECV && c->error != 0) ||
           (c->kind == CC_CASE_SEND && c->error != 0 && c->error != EAGAIN);
}

bool cc__when_ended(CCWhen *when, int rc, size_t chosen) {
    if (rc == 0) {
        when->error = cc__when_cases(when)[chosen].error;
        when->chosen = found_closed(&cc__when_cases(when)[chosen]) ? body_of_closed(when, chosen) : (uint32_t)chosen;
        return true;
    }
    if (rc == EAGAIN) {
        when->chosen = when->otherwise;
        return true;
    }
    if (rc == EINVAL) malformed(when);
    if (rc == EDEADLK) cc_panic("CC_WHEN: a child waits for the end of its own nursery, and so for itself");
    if (rc == ENOMEM) cc_panic("CC_WHEN: no memory to wait for %u arms", when->count);
    return false;
}
