/* cfi.h - call-frame information: how to get from a frame to its caller's.
 *
 * Compilers describe this for every instruction in .eh_frame, as rows of a table, encoded as small programs. A row says
 * how to compute the CFA, the stack pointer at the call of the function, and where the caller's registers are saved.
 */
#ifndef CC_INSPECT_LINUX_CFI_H
#define CC_INSPECT_LINUX_CFI_H

#include "arch/registers.h"

enum cfi_rule {
    CFI_SAME,           /* the register has not changed */
    CFI_UNDEFINED,      /* its value is lost; for the return address: there is no caller */
    CFI_OFFSET,         /* saved at CFA + value */
    CFI_VAL_OFFSET,     /* is CFA + value */
    CFI_REGISTER,       /* is in register `value` */
    CFI_EXPRESSION,     /* saved at the result of the expression at address `value` */
    CFI_VAL_EXPRESSION, /* is the result of that expression */
};

struct cfi_row {
    uintptr_t function, end; /* the code that the row belongs to */
    uint8_t cfa;             /* CFI_REGISTER: the CFA is cfa_register + cfa_value; CFI_EXPRESSION: see above */
    uint8_t cfa_register;
    uint8_t return_column;
    bool signal_frame; /* its caller was interrupted and did not call */
    int64_t cfa_value;
    int64_t value[CC_REGISTERS];
    uint8_t rule[CC_REGISTERS]; /* enum cfi_rule */
};

/* The row for the instruction at pc, from the search table (.eh_frame_hdr) of its object. False: there is none, or it
 * is damaged or uses an unsupported feature. Any thread, not in signal handlers; takes 3 kB of stack at most, allocates
 * nothing, and reads only by os/safe_copy.h. */
bool cc__cfi_find(uintptr_t table, uintptr_t pc, struct cfi_row *row);
/* The same from the record (FDE) of the function. */
bool cc__cfi_read(uintptr_t table, uintptr_t fde, uintptr_t pc, struct cfi_row *row);

/* The same from the object that has code at pc. Caches rows until an object is loaded or unloaded. */
bool cc__cfi_row(uintptr_t pc, struct cfi_row *row);

/* ---- the loaded objects: program, shared libraries, vDSO (objects.c) ---- */

/* The address of the search table (.eh_frame_hdr) of the object that has code at pc; 0: there is no such object, or it
 * has no table. The object may be unloaded at any moment. Any thread, not in signal handlers; allocates nothing. */
uintptr_t cc__objects_table(uintptr_t pc);

/* For an object without a table: the address of the FDE of the function at pc; 0: unknown. */
uintptr_t cc__objects_record(uintptr_t pc);

/* Changes whenever an object is loaded or unloaded. */
uint64_t cc__objects_epoch(void);

#endif
