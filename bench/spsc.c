/* spsc.c - what does it cost to send a value through a buffered channel? One producer, one consumer, 8 bytes, capacity
 * 128. */
#include "flow_body.h"

int main(int argc, char **argv) {
    return measure_flow(argc, argv, "spsc", 128, 5000000, 1);
}
