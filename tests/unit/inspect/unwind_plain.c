/* unwind_plain.c - unwind.c as users compile: -O2 -g, which keeps no frame pointers. CMakeLists.txt sees to that. */
#include "unwind.c"
