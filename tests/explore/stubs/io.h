/* io.h - the scenario's side of the explorer's descriptors; their numbers are below 16. */
#ifndef EXPLORE_STUBS_IO_H
#define EXPLORE_STUBS_IO_H

#include <stdbool.h>

void stub_open(int fd);
/* The same in blocking mode; and whether it is so now. */
void stub_open_blocking(int fd);
bool stub_blocks(int fd);
/* As if a peer had sent so many bytes. */
void stub_put(int fd, unsigned bytes);
unsigned stub_bytes(int fd);
/* So many requests to rings are answered with 7, those that come later as well. */
void stub_answer(unsigned requests);

#endif
