/* guard.S - cc__guard (escape.h): calls a function and stops C++ exceptions that leave it.
 *
 * The frame has its own personality, cc__guard_personality (panic/exception.c). The table after it is for the C++
 * runtime's personality, which ours calls to check for a std::exception. Its one type is the word cc__cxx_std_exception
 * (fiber/cxx.c). The landing pad is never jumped to; it only has to exist.
 *
 * One file for all CPUs, so that the portable context switch can use it too. */
#include "arch/target.h"

#ifndef CC_TARGET_UNKNOWN
        .text
        .globl  cc__guard
        .hidden cc__guard
        .hidden cc__guard_personality
        .hidden cc__cxx_std_exception
        .type   cc__guard, STT_FUNC
        .p2align 4
cc__guard:
        .cfi_startproc
        .cfi_personality 0x1b, cc__guard_personality
        .cfi_lsda 0x1b, .Ltable
#include CC_TARGET(guard.inc)
.Lend:
        .cfi_endproc
        .size   cc__guard, . - cc__guard

        .section .gcc_except_table, "a"
        .p2align 2
.Ltable:
        .byte   0xff                    /* landing pads count from the function's start */
        .byte   0x9b                    /* types: relative, 4 bytes, to a word that holds the address */
        .byte   21                      /* bytes from here to .Ltypes; not every assembler subtracts here */
        .byte   0x03                    /* call sites: 4 bytes each */
        .byte   13                      /* bytes of them */
        .4byte  0
        .4byte  .Lend - cc__guard
        .4byte  .Lend - cc__guard - 1
        .byte   1                       /* the first action */
        .byte   1                       /* catches type 1 */
        .byte   0                       /* and no other */
        .p2align 2
        .4byte  cc__cxx_std_exception - .
.Ltypes:
#endif

        .section .note.GNU-stack, "", %progbits
