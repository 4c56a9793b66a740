/* target.h - the table of CPUs: which folder of arch/ to use. A new CPU is a folder and a line here.
 *
 *   #include CC_TARGET(context.h)
 *
 * CC_TARGET_SELF: the folder has the optional self.h. CC_TARGET_UNKNOWN: the CPU is not supported, and CC_ARCH_UCONTEXT
 * has to be defined.
 */
#ifndef CC_ARCH_TARGET_H
#define CC_ARCH_TARGET_H

#define CC_TARGET_TEXT(path) #path

/* clang-format off */
#if defined(__x86_64__) && defined(__LP64__)
#define CC_TARGET(file) CC_TARGET_TEXT(arch/x86_64/file)
#define CC_TARGET_SELF 1
#elif defined(__aarch64__)
#define CC_TARGET(file) CC_TARGET_TEXT(arch/aarch64/file)
#elif defined(__riscv) && __riscv_xlen == 64
#define CC_TARGET(file) CC_TARGET_TEXT(arch/riscv64/file)
#else
#define CC_TARGET(file) CC_TARGET_TEXT(arch/generic/file)
#define CC_TARGET_UNKNOWN 1
#endif
/* clang-format on */

#endif
