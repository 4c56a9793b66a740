/* operand.h - one name of the command line: what is done with it. */
#ifndef CCPIGZ_OPERAND_H
#define CCPIGZ_OPERAND_H

#include "options.h"

/* "-" is standard input to standard output. Reports errors itself. Fibers; switches. */
void operand_run(const struct options *options, const char *name);

#endif
