/* yield1k.c - the same with 1000 fibers, whose stacks and records no longer fit into the first-level cache. */
#include "yield_body.h"

int main(int argc, char **argv) {
    return measure_yields(argc, argv, "yield1k", 1000);
}
