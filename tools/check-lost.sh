#!/usr/bin/env bash
# check-lost.sh BUILD_DIR - a program that ends without a shutdown leaves nothing that Valgrind takes for lost, or possibly
# so: one whose tasks have ended, and one in which fibers wait, sleep, and are ready to run.
set -eu
cmake --build "$1" --target examples_hello ccc_static
program=$1/left_at_exit
"${CC:-cc}" -g -pthread -Iinclude -x c - -x none "$1/libccc.a" -o "$program" <<'END'
#include <ccc/ccc.h>
#include <stdio.h>
static void *wait_for_ever(void *ch) {
    int value;
    (void)cc_chan_recv(ch, &value, sizeof value);
    return NULL;
}
static void *tick(void *arg) {
    while (cc_sleep_ms(1) == 0) continue;
    return arg;
}
int main(void) {
    CCChan *ch = cc_chan_create(sizeof(int), 0);
    for (int i = 0; i < 10; i++)
        if (cc_spawn(NULL, wait_for_ever, ch, NULL) != 0 || cc_spawn(NULL, tick, NULL, NULL) != 0) return 1;
    puts("fibers are left");
    return 0;
}
END
for each in "$1/examples/hello" "$program"; do
    CC_WORKERS=3 valgrind -q --fair-sched=yes --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible \
        --show-leak-kinds=definite,possible "$each"
done
