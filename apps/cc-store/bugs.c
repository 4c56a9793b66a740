/* bugs.c - bugs that a test can plant. */
#include "store.h"

enum store_bug store_bug;

const char *const store_bug_names[BUGS] = {
    [BUG_NONE] = "none",
    [BUG_NO_SYNC] = "an entry is acknowledged before it is on the disk",
    [BUG_VOTE_IS_FORGOTTEN] = "the vote is not written to the disk",
    [BUG_VOTE_FOR_ANYBODY] = "a vote for a candidate whose log is behind",
    [BUG_OLD_TERM_COMMITS] = "entries of earlier terms are committed by counting",
    [BUG_HALF_IS_ENOUGH] = "half of the nodes is a majority",
    [BUG_LOCAL_READS] = "a leader answers reads from its own state",
    [BUG_EARLY_ANSWER] = "the client is answered before the entry is committed",
    [BUG_NO_SESSIONS] = "a request that is asked twice is carried out twice",
    [BUG_NO_TERM_CHECK] = "entries are taken without comparing the one before them",
    [BUG_SNAPSHOT_WITHOUT_IDS] = "a snapshot lacks which requests were carried out",
    [BUG_ANSWER_BY_INDEX] = "an entry counts as the request's although it is another's",
};
