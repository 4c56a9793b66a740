/* named.c - a shared object with one function; built twice, with another name of it each time. */
int NAME(int n);
int NAME(int n) {
    return n + 1;
}
