/* list.c - a circular list keeps its order, and a member leaves without knowing which list it is on. */
#include "harness.h"

#include "sync/list.h"

struct member {
    struct link link;
    int number;
};

static struct member members[8];

static struct member *of(struct link *link) {
    return container_of(link, struct member, link);
}

static void fill(struct link *list, int from, int to) {
    cc__list_init(list);
    for (int i = from; i < to; i++) {
        members[i].number = i;
        cc__list_push_back(list, &members[i].link);
    }
}

/* Compares the list with `digits`, forwards and backwards. */
static void check_order(struct link *list, const char *digits) {
    const char *d = digits;
    for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next), d++)
        CHECK_EQ(of(l)->number, *d - '0');
    CHECK_EQ(*d, '\0');
    for (struct link *l = cc__get(&list->prev); l != list; l = cc__get(&l->prev)) CHECK_EQ(of(l)->number, *--d - '0');
    CHECK(d == digits);
    CHECK_EQ(cc__list_empty(list), *digits == '\0');
}

TEST(starts_empty) {
    struct link list;
    cc__list_init(&list);
    check_order(&list, "");
}

TEST(pushes_at_both_ends) {
    struct link list;
    fill(&list, 2, 4);
    members[1].number = 1;
    cc__list_push_front(&list, &members[1].link);
    members[0].number = 0;
    cc__list_push_front(&list, &members[0].link);
    check_order(&list, "0123");
}

TEST(pops_at_both_ends) {
    struct link list;
    fill(&list, 0, 4);
    CHECK_EQ(of(cc__list_pop_front(&list))->number, 0);
    CHECK_EQ(of(cc__list_pop_back(&list))->number, 3);
    check_order(&list, "12");
    CHECK_EQ(of(cc__list_pop_back(&list))->number, 2);
    CHECK_EQ(of(cc__list_pop_front(&list))->number, 1);
    check_order(&list, "");
}

TEST(members_leave_from_anywhere) {
    struct link list;
    fill(&list, 0, 5);
    cc__list_remove(&members[2].link);
    check_order(&list, "0134");
    cc__list_remove(&members[0].link);
    check_order(&list, "134");
    cc__list_remove(&members[4].link);
    check_order(&list, "13");
    cc__list_remove(&members[3].link);
    cc__list_remove(&members[1].link);
    check_order(&list, "");
}

TEST(inserts_between) {
    struct link list;
    fill(&list, 0, 2);
    members[7].number = 7;
    cc__list_insert(&members[0].link, &members[7].link, &members[1].link);
    check_order(&list, "071");
}

TEST(appends_a_whole_list) {
    struct link list, more;
    fill(&list, 0, 2);
    fill(&more, 2, 5);
    cc__list_append_all(&list, &more);
    check_order(&list, "01234");
    check_order(&more, "");
    cc__list_append_all(&list, &more); /* an empty one changes nothing */
    check_order(&list, "01234");
    cc__list_append_all(&more, &list); /* to an empty one */
    check_order(&more, "01234");
    check_order(&list, "");
    cc__list_push_back(&list, cc__list_pop_front(&more)); /* the emptied one is usable */
    check_order(&list, "0");
    check_order(&more, "1234");
}
