/* exception.c - a C++ exception that leaves a protected call becomes a panic.
 *
 * The function below is the personality of cc__guard's frame (arch/guard.S). The unwinder calls it twice: to search for
 * a handler, and, after the destructors of all frames in between have run, to install it (README.md).
 */
#include "fiber/cxx.h"
#include "panic/panic.h"

#include <unwind.h>

_Unwind_Reason_Code cc__guard_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class language,
                                          struct _Unwind_Exception *exception, struct _Unwind_Context *context);

/* For arch/guard.S, by name. */
__attribute__((used)) _Unwind_Reason_Code cc__guard_personality(int version, _Unwind_Action actions,
                                                                _Unwind_Exception_Class language,
                                                                struct _Unwind_Exception *exception,
                                                                struct _Unwind_Context *context) {
    char text[CC_PANIC_MESSAGE_MAX];
    (void)language;
    if (version != 1) return _URC_FATAL_PHASE1_ERROR;
    if (actions & _UA_FORCE_UNWIND) return _URC_CONTINUE_UNWIND; /* pthread_exit, pthread_cancel */
    if (actions & _UA_SEARCH_PHASE) return _URC_HANDLER_FOUND;
    if (!(actions & _UA_HANDLER_FRAME)) return _URC_CONTINUE_UNWIND;
    cc__cxx_consume(exception, context, text, sizeof text);
    cc__panic_exception(text);
}
