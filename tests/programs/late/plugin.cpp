/* plugin.cpp - C++ code, and with it the C++ runtime, that late_cxx.c loads while workers run. */
#include <ccc/ccc.h>

#include <exception>
#include <stdexcept>

/* Waits in a catch block; `rounds` waits. NULL: all was as it should be. */
extern "C" __attribute__((visibility("default"))) void *plugin_catches(void *rounds) {
    if (std::current_exception() != nullptr) return (void *)"an exception of another fiber";
    try {
        throw std::runtime_error("late");
    } catch (std::exception &e) {
        for (intptr_t i = 0; i < (intptr_t)rounds; i++) cc_yield();
        try {
            throw;
        } catch (std::runtime_error &again) {
            if (&again != &e) return (void *)"another exception came back";
        }
    }
    return (void *)(std::current_exception() != nullptr ? "something is left" : nullptr);
}

extern "C" __attribute__((visibility("default"))) void *plugin_throws(void *) {
    throw std::runtime_error("late and never caught");
}
