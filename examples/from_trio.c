/* from_trio.c - nurseries, cancel scopes, move_on_after, shields: the same program as with Trio. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>

CC_CHILD(fetch, { int id; }) {         /* async def fetch(id) */
    if (self->id == 3) return ENOENT;  /* raise FileNotFoundError */
    return cc_sleep_until(CC_FOREVER); /* await trio.sleep_forever() */
}

int main(void) {
    int rc;
    CC_NURSERY(n, .result = &rc) {                                /* async with trio.open_nursery() as n */
        for (int i = 1; i <= 3; i++) CC_GO_IN(n, fetch, .id = i); /* n.start_soon(fetch, i) */
    }                                                             /* the failure of one has cancelled the others */
    printf("the nursery: %s\n", rc == ENOENT ? "not found" : "?");

    bool late;
    CC_WITH_DEADLINE(cc_after_ms(1), &late) { /* with trio.move_on_after(0.001) as scope */
        cc_sleep_until(CC_FOREVER);
        CC_SHIELD { /* with trio.CancelScope(shield=True) */
            printf("clean-up can still wait: %s\n", cc_sleep_ms(1) == 0 ? "yes" : "no");
        }
    }
    printf("moved on: %s\n", late ? "yes" : "no"); /* scope.cancelled_caught */
}
