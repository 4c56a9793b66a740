/* reach.c - a conservative mark phase over the process's memory. */
#include "inspect/reach.h"

#include "base/sort.h"
#include "os/safe_copy.h"
#include "os/vm.h"

/* ---- objects ---- */

static size_t place_of(const struct reach *r, uintptr_t at) {
    size_t i = (size_t)((uint64_t)at * UINT64_C(0x9e3779b97f4a7c15) >> (64 - REACH_OBJECTS_LOG2));
    while (r->object[i].at != 0 && r->object[i].at != at) i = (i + 1) % ((size_t)1 << REACH_OBJECTS_LOG2);
    return i;
}

void cc__reach_want(struct reach *r, const void *object) {
    uintptr_t at = (uintptr_t)object;
    if (at == 0) return;
    size_t i = place_of(r, at);
    if (r->object[i].at == at) return;
    if (r->objects >= (1u << REACH_OBJECTS_LOG2) / 2) {
        r->too_many = true;
        return;
    }
    if (r->objects++ == 0) r->least = r->most = at;
    r->object[i].at = at;
    if (at < r->least) r->least = at;
    if (at > r->most) r->most = at;
}

bool cc__reach_has(const struct reach *r, const void *object) {
    return r->object[place_of(r, (uintptr_t)object)].reached;
}

/* ---- private memory ---- */

void cc__reach_keep_private(struct reach *r, uintptr_t low, uintptr_t high, unsigned owner) {
    if (low >= high) return;
    if (r->privates == REACH_PRIVATE_MAX) {
        r->too_many = true;
        return;
    }
    r->private[r->privates++] = (struct reach_private){low, high, owner, false};
}

static int lower_first(const void *a, const void *b) {
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b; /* both kinds of ranges begin with `low` */
    return x < y ? -1 : x > y;
}

/* The private range that contains the address. */
static struct reach_private *private_at(struct reach *r, uintptr_t at) {
    unsigned low = 0, high = r->privates;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (r->private[middle].high <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->privates && r->private[low].low <= at ? &r->private[low] : NULL;
}

static void open_one(struct reach *r, struct reach_private *p) {
    if (p->open) return;
    p->open = true;
    r->to_do[r->opened++] = (unsigned)(p - r->private);
}

/* ---- scanning ---- */

static void look_at_word(struct reach *r, uintptr_t word) {
    if (word >= r->least && word <= r->most) {
        size_t i = place_of(r, word);
        if (r->object[i].at != 0) r->object[i].reached = true;
    }
    if (r->privates == 0 || word < r->private[0].low || word >= r->private[r->privates - 1].high) return;
    struct reach_private *p = private_at(r, word);
    if (p != NULL && !p->open && !r->harmless(r->arg, p->owner, word)) open_one(r, p);
}

static void look_at_words(struct reach *r, size_t n) {
    for (size_t i = 0; i < n; i++) look_at_word(r, r->words[i]);
}

/* A piece that cannot be read as a whole is read page by page, so that a missing page does not hide the others. */
static void look_at_piece(struct reach *r, uintptr_t at, size_t n) {
    if (cc__safe_copy(r->words, (const void *)at, n)) {
        look_at_words(r, n / sizeof(uintptr_t));
        return;
    }
    uintptr_t page = cc__vm_page();
    for (uintptr_t end = at + n; at < end;) {
        uintptr_t next = (at / page + 1) * page;
        size_t part = (next < end ? next : end) - at;
        if (cc__safe_copy(r->words, (const void *)at, part)) look_at_words(r, part / sizeof(uintptr_t));
        at += part;
    }
}

static void look_at(struct reach *r, uintptr_t low, uintptr_t high) {
    low = (low + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);
    for (size_t n; low < high; low += n) {
        n = high - low < REACH_CHUNK ? high - low : REACH_CHUNK;
        look_at_piece(r, low, n);
    }
}

/* Scans opened ranges until none is left. */
static void follow(struct reach *r) {
    while (r->opened > 0) {
        const struct reach_private *p = &r->private[r->to_do[--r->opened]];
        look_at(r, p->low, p->high);
    }
}

void cc__reach_range(struct reach *r, uintptr_t low, uintptr_t high) {
    look_at(r, low, high);
    follow(r);
}

void cc__reach_open(struct reach *r, uintptr_t at) {
    struct reach_private *p = private_at(r, at);
    if (p != NULL) open_one(r, p);
    follow(r);
}

/* ---- the roots ---- */

void cc__reach_skip(struct reach *r, uintptr_t low, uintptr_t high) {
    if (low >= high) return;
    if (r->skips == REACH_SKIPS_MAX) {
        r->too_many = true;
        return;
    }
    r->skip[r->skips].low = low;
    r->skip[r->skips++].high = high;
}

/* Scans a range without its private parts. */
static void look_beside_private(struct reach *r, uintptr_t low, uintptr_t high) {
    while (r->at_private < r->privates && r->private[r->at_private].high <= low) r->at_private++;
    for (unsigned i = r->at_private; i < r->privates && r->private[i].low < high; i++) {
        if (r->private[i].low > low) look_at(r, low, r->private[i].low);
        low = r->private[i].high;
    }
    if (low < high) look_at(r, low, high);
}

/* Called with ascending ranges. */
static void look_beside_skips(void *reach, uintptr_t low, uintptr_t high) {
    struct reach *r = reach;
    while (r->at_skip < r->skips && r->skip[r->at_skip].high <= low) r->at_skip++;
    for (unsigned i = r->at_skip; i < r->skips && r->skip[i].low < high && low < high; i++) {
        if (r->skip[i].high <= low) continue;
        if (r->skip[i].low > low) look_beside_private(r, low, r->skip[i].low);
        low = r->skip[i].high;
    }
    if (low < high) look_beside_private(r, low, high);
}

bool cc__reach_begin(struct reach *r, uint64_t limit) {
    cc__sort(r->skip, r->skips, sizeof r->skip[0], lower_first);
    cc__sort(r->private, r->privates, sizeof r->private[0], lower_first);
    if (!cc__memory_each(limit, look_beside_skips, r)) return false;
    follow(r);
    return true;
}
