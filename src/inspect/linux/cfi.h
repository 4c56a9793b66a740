/* cfi.h - call-frame information: how to get from a frame to its caller's.
 *
 * Compilers describe it for every instruction, in .eh_frame: as rows of a table, packed into small programs. A row says
 * how the CFA, the stack pointer at the call of the function, is computed, and where the caller's registers are saved.
 */
#ifndef CC_INSPECT_LINUX_CFI_H
#define CC_INSPECT_LINUX_CFI_H

#include "arch/registers.h"

enum cfi_rule {
    CFI_SAME,           /* the register has not changed */
    CFI_UNDEFINED,      /* its value is lost; of the return address: there is no caller */
    CFI_OFFSET,         /* saved at CFA + value */
    CFI_VAL_OFFSET,     /* is CFA + value */
    CFI_REGISTER,       /* is in register `value` */
    CFI_EXPRESSION,     /* saved where the expression at address `value` says */
    CFI_VAL_EXPRESSION, /* is what that expression says */
};

struct cfi_row {
    uintptr_t function, end; /* the code that the row belongs to */
    uint8_t cfa;             /* CFI_REGISTER: the CFA is cfa_register + cfa_value; CFI_EXPRESSION: see above */
    uint8_t cfa_register;
    uint8_t return_column;
    bool signal_frame; /* its caller was interrupted, and did not call */
    int64_t cfa_value;
    int64_t value[CC_REGISTERS];
    uint8_t rule[CC_REGISTERS]; /* enum cfi_rule */
};

/* The row for the instruction at pc, from the search table (.eh_frame_hdr) of its object. False: there is none, or it
 * is damaged, or needs what we do not know. Any thread, not for signal handlers; takes 3 kB of stack at most, allocates
 * nothing, and reads by os/safe_copy.h only. */
bool cc__cfi_find(uintptr_t table, uintptr_t pc, struct cfi_row *row);
/* The same from the record (FDE) of the function. */
bool cc__cfi_read(uintptr_t table, uintptr_t fde, uintptr_t pc, struct cfi_row *row);

/* The same from whichever object has code at pc. Remembers rows for as long as no object comes or goes. */
bool cc__cfi_row(uintptr_t pc, struct cfi_row *row);

/* ---- the loaded objects: program, shared libraries, vDSO (objects.c) ---- */

/* Where the search table (.eh_frame_hdr) of the object lies that has code at this address; 0: there is no such object,
 * or it has no table. The object may be unloaded at any moment. Any thread, not for signal handlers; allocates
 * nothing. */
uintptr_t cc__objects_table(uintptr_t pc);

/* Of an object without a table: where the record of the function at pc lies; 0: it is not known. */
uintptr_t cc__objects_record(uintptr_t pc);

/* Changes whenever an object is loaded or unloaded. */
uint64_t cc__objects_epoch(void);

#endif
