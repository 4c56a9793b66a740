/* words.c - the cache of packed rows (src/inspect/linux/words.h): a thread looks, another adds words in later epochs.
 */
#include "inspect/linux/words.h"
#include "explore.h"

enum { ONE = 4096, OTHER = 8359 }; /* they collide: the setup checks it */

static uint64_t word_of(uintptr_t pc, uint64_t epoch) {
    return (uint64_t)pc << 16 | (epoch & WORDS_EPOCH);
}

static void add(uintptr_t pc, uint64_t epoch) {
    cc__words_add(pc, epoch, (uint64_t)pc << 16);
}

static void words_setup(void) {
    uint64_t word;
    add(OTHER, 0);
    add(ONE, 1);
    EX_CHECK(!cc__words_find(OTHER, 0, &word));
    EX_CHECK(cc__words_find(ONE, 1, &word));
}

static void look(uintptr_t pc, uint64_t epoch, bool never) {
    uint64_t word;
    if (!cc__words_find(pc, epoch, &word)) return;
    EX_EQ(word, word_of(pc, epoch));
    EX_CHECK(!never);
}

static void words_look(void) {
    look(ONE, 2, true);
    look(OTHER, 2, false);
    look(ONE, 3, false);
}

static void words_change(void) {
    add(OTHER, 2);
    add(ONE, 3);
}

static void words_check(void) {
    uint64_t word;
    add(OTHER, 2); /* late */
    EX_CHECK(cc__words_find(ONE, 3, &word));
    EX_EQ(word, word_of(ONE, 3));
}
SCENARIO(words_epochs, "WORDS-1: the word of another pc is not found while an entry changes", .setup = words_setup,
         .threads = {words_look, words_change}, .check = words_check);

/* Two threads add: one of them may give up, and no entry is mixed. */
static void words_add_one(void) {
    add(ONE, 2);
    look(OTHER, 2, false);
}
static void words_add_other(void) {
    add(OTHER, 2);
    look(ONE, 2, false);
}
static void words_check_both(void) {
    uint64_t word;
    bool one = cc__words_find(ONE, 2, &word);
    if (one) EX_EQ(word, word_of(ONE, 2));
    bool other = cc__words_find(OTHER, 2, &word);
    if (other) EX_EQ(word, word_of(OTHER, 2));
    EX_CHECK(one || other);
}
SCENARIO(words_two_add, "WORDS-1: two threads add words that collide", .setup = words_setup,
         .threads = {words_add_one, words_add_other}, .check = words_check_both);

/* An epoch whose lower bits are those of an earlier one: a library was loaded and unloaded thousands of times. */
static void words_look_later(void) {
    look(ONE, 1 + (WORDS_EPOCH + 1), true);
    look(OTHER, 1 + (WORDS_EPOCH + 1), false);
}
static void words_add_later(void) {
    add(OTHER, 1 + (WORDS_EPOCH + 1));
}
static void words_check_later(void) {
    uint64_t word;
    EX_CHECK(cc__words_find(OTHER, 1 + (WORDS_EPOCH + 1), &word));
    EX_EQ(word, word_of(OTHER, 1));
    EX_CHECK(!cc__words_find(OTHER, 1, &word));
    EX_CHECK(cc__words_find(ONE, 1, &word));
}
SCENARIO(words_eras, "a word of an epoch with the same lower bits is not found", .setup = words_setup,
         .threads = {words_look_later, words_add_later}, .check = words_check_later);
