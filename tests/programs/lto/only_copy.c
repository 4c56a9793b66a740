/* only_copy.c - stands for cmake/dispatch.c in a program that has no copies of the library for sanitizers. */
int cc__variant(void);

int cc__variant(void) {
    return 0;
}
