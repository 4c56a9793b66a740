/* mpmc.c - what does a value cost when four producers and four consumers share one channel of capacity 128? */
#include "flow_body.h"

int main(int argc, char **argv) {
    return measure_flow(argc, argv, "mpmc", 128, 4000000, 4);
}
