/* numbers.c - replaces addresses in a history: by numbers of objects and nurseries, names of functions and regions,
 * places of frames. The same run gives the same result (README.md: Determinism).
 */
#include "record/history.h"

#include "os/safe_copy.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- objects ---- */

uint32_t cc__number_object(struct history *h, uint64_t address) {
    if (address == 0) return 0;
    uint32_t number = cc__map_find(&h->objects, cc__hidden(address));
    if (number != 0) return number;
    number = (uint32_t)h->objects.count + 1;
    return cc__map_set(&h->objects, cc__hidden(address), number) ? number : 0;
}

uint32_t cc__number_scope(struct history *h, uint64_t address) {
    return address != 0 ? cc__map_find(&h->open, cc__hidden(address)) : 0;
}

uint32_t cc__number_scope_opens(struct history *h, uint64_t address, uint32_t parent, const char *name) {
    uint32_t string = cc__names_string(&h->names, name);
    struct scope_named *s = cc__vec_add(&h->scopes, sizeof *s);
    if (s == NULL) return 0;
    *s = (struct scope_named){parent, string != 0 ? string : cc__names_string(&h->names, "nursery")};
    uint32_t number = (uint32_t)(h->scopes.count - 1);
    return cc__map_set(&h->open, cc__hidden(address), number) ? number : 0;
}

void cc__number_scope_closes(struct history *h, uint64_t address) {
    (void)cc__map_set(&h->open, cc__hidden(address), 0); /* cannot fail: the key is there */
}

/* ---- strings ---- */

uint32_t cc__number_label(struct history *h, uint32_t fn, const char *name) {
    char text[200];
    const char *function =
        fn != NOBODY ? cc__names_text(&h->names, cc__names_place_at(&h->names, fn)->function) : "fiber";
    if (name[0] == '\0') return cc__names_string(&h->names, function);
    snprintf(text, sizeof text, "%s '%s'", function, name);
    return cc__names_string(&h->names, text);
}

uint32_t cc__number_text(struct history *h, const char *text) {
    char out[280];
    size_t n = 0;
    while (*text != '\0' && n < sizeof out - 16) {
        char *end;
        if (text[0] == '0' && text[1] == 'x' && strtoull(text, &end, 16) >= 4096) {
            n += (size_t)snprintf(out + n, sizeof out - n, "#%u", cc__number_object(h, strtoull(text, NULL, 16)));
            text = end;
        } else {
            out[n++] = *text++;
        }
    }
    out[n] = '\0';
    return cc__names_string(&h->names, out);
}

uint32_t cc__number_region(struct history *h, uint64_t address) {
    char name[64] = "";
    for (size_t n = sizeof name - 1; n >= 1; n /= 2) /* the name may end near the end of the mapping */
        if (cc__safe_copy(name, (const void *)(uintptr_t)address, n)) break;
    name[sizeof name - 1] = '\0';
    return cc__names_string(&h->names, name);
}

/* ---- code ---- */

uint32_t cc__number_function(struct history *h, const void *fn) {
    return cc__names_place(&h->names, (const char *)fn + 1);
}

unsigned cc__history_frames(struct history *h, const struct step *step, uint32_t *places) {
    const void *frames[RECORD_FRAMES];
    unsigned n = cc__record_stack_frames(step->stack, frames), first = 0, count = 0;
    n = n > 0 ? cc__symbol_without_own(frames, n) : 0;
    uint32_t all[RECORD_FRAMES];
    for (unsigned i = 0; i < n; i++) all[i] = cc__names_place(&h->names, frames[i]);
    while (first + 1 < n && all[first] != NOBODY && cc__names_place_at(&h->names, all[first])->ours) first++;
    for (unsigned i = first; i < n; i++)
        if (all[i] != NOBODY) places[count++] = all[i];
    return count;
}
