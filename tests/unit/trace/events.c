/* events.c - the list of events and categories: names that tools can rely on, and none without use. */
#include "harness.h"

#include "trace/timing.h"
#include "trace/trace.h"

#include <string.h>

static const struct {
    const char *name, *meaning;
    uint32_t category;
} categories[] = {
#define CATEGORY(id, name, meaning) {name, meaning, TRACE_##id},
#include "trace/events.def"
};

static const struct {
    const char *name;
    uint32_t category;
} events[] = {
#define EVENT(id, category, name, text, parameters, arguments) {name, TRACE_##category},
#define EVENT_OF EVENT
#include "trace/events.def"
};

/* Also a name for a probe of the system's tracers. */
static bool is_identifier(const char *name) {
    return name[0] != '\0' && strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name);
}

TEST(names_of_events) {
    for (size_t i = 0; i < array_len(events); i++) {
        CHECK(is_identifier(events[i].name));
        for (size_t k = 0; k < i; k++) CHECK(strcmp(events[i].name, events[k].name) != 0);
    }
    CHECK(array_len(events) <= 64); /* six bits of a recorded event */
}

TEST(every_category_has_an_event) {
    CHECK_EQ(array_len(categories), CATEGORIES);
    for (size_t i = 0; i < array_len(categories); i++) {
        size_t n = 0;
        for (size_t k = 0; k < array_len(events); k++) n += events[k].category == categories[i].category;
        CHECK(n > 0 || categories[i].category == TRACE_TIMING); /* which adds up times instead */
        CHECK(categories[i].meaning[0] != '\0');
    }
}

TEST(categories_by_name) {
    for (size_t i = 0; i < array_len(categories); i++) {
        const char *unknown;
        int length;
        uint32_t implied = categories[i].category == TRACE_CHAN_VERBOSE ? TRACE_CHAN : 0;
        CHECK_EQ(cc__trace_parse(categories[i].name, &unknown, &length), categories[i].category | implied);
        CHECK(unknown == NULL);
        CHECK(strstr(cc__trace_known, categories[i].name) != NULL);
    }
}

TEST(unknown_names_are_reported) {
    const char *unknown;
    int length;
    CHECK_EQ(cc__trace_parse("park,parks,wake", &unknown, &length), TRACE_PARK | TRACE_WAKE);
    CHECK(unknown != NULL && length == 5 && strncmp(unknown, "parks", 5) == 0);
}
