/* yield.c - what does it cost to give the CPU to another fiber? Two fibers yield in turn. */
#include "yield_body.h"

int main(int argc, char **argv) {
    return measure_yields(argc, argv, "yield", 2);
}
