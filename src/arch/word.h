/* word.h - words that somebody else writes or reads, by single instructions that no compiler makes of C11 atomics.
 *
 * Only where CC_WORDS_IN_ASM is 1; sync/atomic.h has the rest. The words are plain memory to the CPU.
 */
#ifndef CC_ARCH_WORD_H
#define CC_ARCH_WORD_H

#include "base/attr.h"

#ifdef __x86_64__
#include "arch/x86_64/word.h"
#endif

#endif
