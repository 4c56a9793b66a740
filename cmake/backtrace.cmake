# Looks for libbacktrace beside the compiler. Sets `backtrace_object`, a file that the library consists of besides its
# own objects, and `backtrace_include`, and defines CC_BACKTRACE for all of this tree; nothing of that when it is not
# wanted, not there, or cannot become part of a shared library.
include(CheckCSourceCompiles)

set(backtrace_object)
set(backtrace_include)

function(cc_find_backtrace)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libbacktrace.a
        OUTPUT_VARIABLE archive OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    cmake_path(GET archive PARENT_PATH folder)
    if(NOT IS_ABSOLUTE "${archive}" OR NOT EXISTS ${archive} OR NOT EXISTS ${folder}/include/backtrace.h)
        return()
    endif()
    # Copied, because that folder holds gcc's own versions of the C library's headers too, which clang must not see.
    set(include ${PROJECT_BINARY_DIR}/backtrace)
    file(COPY ${folder}/include/backtrace.h ${folder}/include/backtrace-supported.h DESTINATION ${include})
    # In a shared object: the archive must be position independent.
    set(CMAKE_REQUIRED_FLAGS "-fPIC -shared -Wl,-z,text -Wl,--no-undefined")
    set(CMAKE_REQUIRED_INCLUDES ${include})
    set(CMAKE_REQUIRED_LIBRARIES ${archive})
    check_c_source_compiles("
        #include <backtrace-supported.h>
        #include <backtrace.h>
        #if !BACKTRACE_SUPPORTED || !BACKTRACE_SUPPORTS_THREADS
        #error not for us
        #endif
        void *use(void *s) {
            backtrace_syminfo(s, 0, 0, 0, 0);
            return backtrace_pcinfo(s, 0, 0, 0, 0) ? s : backtrace_create_state(0, 1, 0, 0);
        }" CC_HAVE_BACKTRACE)
    if(NOT CC_HAVE_BACKTRACE)
        return()
    endif()

    set(object ${PROJECT_BINARY_DIR}/ccc_backtrace.o)
    set(wanted)
    set(renamed)
    set(kept)
    foreach(name create_state pcinfo syminfo)
        list(APPEND wanted -Wl,-u,backtrace_${name})
        list(APPEND renamed --redefine-sym backtrace_${name}=cc__backtrace_${name})
        list(APPEND kept --keep-global-symbol=cc__backtrace_${name})
    endforeach()
    # It opens files through a function of ours, which knows when not to (inspect/linux/symbol.c).
    list(APPEND renamed --redefine-sym open=cc__symbol_open)
    add_custom_command(
        OUTPUT ${object}
        COMMAND ${CMAKE_C_COMPILER} -r -nostdlib ${wanted} ${archive} -o ${object}
        COMMAND ${CMAKE_OBJCOPY} --strip-debug ${renamed} ${object}
        COMMAND ${CMAKE_OBJCOPY} ${kept} ${object}
        DEPENDS ${archive}
        VERBATIM
        COMMENT "Taking what is needed out of libbacktrace")
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    add_custom_target(ccc_backtrace_object DEPENDS ${object})
    set(backtrace_object ${object} PARENT_SCOPE)
    set(backtrace_include ${include} PARENT_SCOPE)
endfunction()

if(NOT CC_BACKTRACE STREQUAL "OFF")
    cc_find_backtrace()
    if(NOT backtrace_object AND NOT CC_BACKTRACE STREQUAL "AUTO")
        message(FATAL_ERROR "CC_BACKTRACE is ${CC_BACKTRACE}, but ${CMAKE_C_COMPILER} has no libbacktrace that can be used.")
    endif()
endif()
if(backtrace_object)
    target_compile_definitions(ccc_flags INTERFACE CC_BACKTRACE=1)
    message(STATUS "Names of addresses: libbacktrace")
else()
    message(STATUS "Names of addresses: the dynamic linker's")
endif()
