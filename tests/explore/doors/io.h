/* io.h - the scenario's side of the explorer's descriptors; their numbers are below 16. */
#ifndef EXPLORE_DOORS_IO_H
#define EXPLORE_DOORS_IO_H

#include <stdbool.h>

void door_open(int fd);
/* The same in blocking mode; and whether it is so now. */
void door_open_blocking(int fd);
bool door_blocks(int fd);
/* As if a peer had sent so many bytes. */
void door_put(int fd, unsigned bytes);
unsigned door_bytes(int fd);
/* So many requests to rings are answered with 7, those that come later as well. */
void door_answer(unsigned requests);

#endif
