/* unwind_plain.c - unwind.c as users compile: -O2 -g (set in CMakeLists.txt), which omits frame pointers. */
#include "unwind.c"
