/* probe.h - static probes (USDT), which bpftrace, perf, SystemTap and gdb find by name in a running program.
 *
 * A probe is a nop and an ELF note that says where it is and in which registers its arguments are (readelf -n lists
 * them). A tool that uses it writes a breakpoint there; until then it costs only the nop. docs/man/ccc.7 lists the
 * probes; their names and arguments are stable.
 *
 * The notes have SystemTap's format, written without its header, which would be another dependency.
 */
#ifndef CC_BASE_PROBE_H
#define CC_BASE_PROBE_H

#include <stdint.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(CC_EXPLORED)
#ifdef __clang__ /* which writes every argument to memory if allowed to */
#define CC_PROBE_PLACE "nr"
#else
#define CC_PROBE_PLACE "nor"
#endif

/* Sizes of name and description, and the type; the name; where the probe is, the base that it is relative to (none)
 * and the switch that turns it on (none); provider, probe, and the arguments' sizes and places. */
#define cc__probe_note(name, arguments, ...)                        \
    __asm__ volatile("990:\tnop\n"                                  \
                     "\t.pushsection .note.stapsdt, \"\", %%note\n" \
                     "\t.balign 4\n"                                \
                     "\t.4byte 992f - 991f, 994f - 993f, 3\n"       \
                     "991:\t.asciz \"stapsdt\"\n"                   \
                     "992:\t.balign 4\n"                            \
                     "993:\t.8byte 990b, 0, 0\n"                    \
                     "\t.asciz \"ccc\"\n"                           \
                     "\t.asciz \"" #name "\"\n"                     \
                     "\t.asciz \"" arguments "\"\n"                 \
                     "994:\t.balign 4\n"                            \
                     "\t.popsection"                                \
                     :                                              \
                     : __VA_ARGS__)
#define cc__probe1(name, a) cc__probe_note(name, "8@%0", CC_PROBE_PLACE((uint64_t)(a)))
#define cc__probe2(name, a, b) \
    cc__probe_note(name, "8@%0 8@%1", CC_PROBE_PLACE((uint64_t)(a)), CC_PROBE_PLACE((uint64_t)(b)))
#define cc__probe3(name, a, b, c)                                                                        \
    cc__probe_note(name, "8@%0 8@%1 8@%2", CC_PROBE_PLACE((uint64_t)(a)), CC_PROBE_PLACE((uint64_t)(b)), \
                   CC_PROBE_PLACE((uint64_t)(c)))
#else
#define cc__probe1(name, a) ((void)(a))
#define cc__probe2(name, a, b) ((void)(a), (void)(b))
#define cc__probe3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#endif

#endif
