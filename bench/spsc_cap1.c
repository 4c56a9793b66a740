/* spsc_cap1.c - the same with capacity 1: each value may cost a switch. */
#include "flow_body.h"

int main(int argc, char **argv) {
    return measure_flow(argc, argv, "spsc_cap1", 1, 2000000, 1);
}
