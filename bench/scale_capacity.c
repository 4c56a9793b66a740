/* scale_capacity.c - how much does a larger buffer save? One producer, one consumer; the parameter is the capacity. */
#include "flow_body.h"

int main(int argc, char **argv) {
    size_t capacity = argc > 3 ? (size_t)bench_number(argv[3], "a capacity") : 16;
    return measure_flow(argc, argv, "scale_capacity", capacity, 2000000, 1);
}
