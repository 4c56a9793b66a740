/* named.c - a shared object with one function; built twice, with another name of it each time. If the environment names
 * two descriptors, its constructor writes a byte to the first and waits for one from the second. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int NAME(int n);
int NAME(int n) {
    return n + 1;
}

__attribute__((constructor)) static void tell_and_wait(void) {
    const char *numbers = getenv("PLUGIN_TELLS_AND_WAITS");
    int tells, waits_for;
    char byte = 0;
    if (numbers == NULL) return;
    if (sscanf(numbers, "%d %d", &tells, &waits_for) != 2 || write(tells, &byte, 1) != 1) abort();
    if (read(waits_for, &byte, 1) != 1) abort();
}
