/* dump.h - what the runtime is doing, whole: for people (dump.c) and for programs (json.c). */
#ifndef CC_DIAG_DUMP_H
#define CC_DIAG_DUMP_H

#include "diag/describe.h"
#include "diag/out.h"
#include "inspect/scopes.h"
#include "inspect/survey.h"

/* One report at a time: their lines would mix. */
void cc__dump_begin(void);
void cc__dump_end(void);

/* The parts of the text, which a deadlock report uses too. */
void cc__dump_workers(struct out *out);
void cc__dump_inboxes(struct out *out); /* if CC_DEBUG_INBOX_DUMP asks for it */
void cc__dump_nurseries(struct out *out);
/* more: says something about a fiber that waits, after its line; may be NULL. */
void cc__dump_fibers(struct out *out, const struct survey *survey,
                     void (*more)(struct out *, struct fiber *, struct wait_what));
/* now: as of when they are said to wait so long. */
void cc__dump_blocked(struct out *out, uint64_t now);
/* Fibers that can never go on, or why they are not looked for; patient: after some seconds of trying. */
void cc__dump_unreachable(struct out *out, bool patient);
/* What this build of the library cannot tell, if anything: a line at the end of a report. */
void cc__dump_missing(struct out *out);
/* A line for each frame of a view that was trimmed. */
void cc__dump_frames(struct out *out, const struct view *view, const char *indent);

/* Everything; inside the runtime. 0 or ENOMEM. */
int cc__dump_text(struct out *out);
int cc__dump_json(struct out *out);

#endif
