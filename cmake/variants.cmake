# A copy of the library for each sanitizer, in the same archive and the same shared object (cmake/dispatch.c).
#
# Sets `library_objects` to the copies and the dispatch between them. The copies differ in one definition and in what the
# compiler adds; their public names get a prefix (cc__plain_, cc__tsan_, cc__asan_, cc__lsan_), and all other names of the sanitizers'
# copies become local.
include(CheckCSourceCompiles)

function(cc_can_dispatch result)
    set(CMAKE_REQUIRED_FLAGS "-fPIC")
    check_c_source_compiles("
        #include <features.h>
        #ifndef __GLIBC__
        #error no resolvers
        #endif
        #if !defined(__x86_64__) && !defined(__aarch64__)
        #error not tried
        #endif
        static void one(void) {}
        static void (*resolve(void))(void) { return one; }
        __attribute__((ifunc(\"resolve\"))) void f(void);
        int main(void) { f(); return 0; }" CC_HAVE_IFUNC)
    set(CMAKE_REQUIRED_FLAGS "-fsanitize=thread")
    check_c_source_compiles("
        #include <sanitizer/asan_interface.h>
        #include <sanitizer/lsan_interface.h>
        #include <sanitizer/tsan_interface.h>
        int main(void) { return 0; }" CC_HAVE_SANITIZERS)
    if(CC_HAVE_IFUNC AND CC_HAVE_SANITIZERS)
        set(${result} ON PARENT_SCOPE)
    else()
        set(${result} OFF PARENT_SCOPE)
    endif()
endfunction()

# One relocatable object out of a copy's objects.
function(cc_merge target output)
    add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${output} $<TARGET_OBJECTS:${target}>
        DEPENDS ${target} $<TARGET_OBJECTS:${target}>
        COMMAND_EXPAND_LISTS VERBATIM
        COMMENT "Merging ${target}")
endfunction()

# `plain`: the object that holds the ordinary copy.
function(cc_add_variants plain)
    set(folder ${PROJECT_BINARY_DIR}/variants)
    file(MAKE_DIRECTORY ${folder})

    cc_add_objects(ccc_tsan_objects)
    target_compile_definitions(ccc_tsan_objects PRIVATE CC_VARIANT=1)
    # Only lines and functions: a debugger that asks for a variable of the library means the ordinary copy's.
    target_compile_options(ccc_tsan_objects PRIVATE $<$<COMPILE_LANGUAGE:C>:-fsanitize=thread;-g1>)
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
        target_compile_options(ccc_tsan_objects PRIVATE $<$<COMPILE_LANGUAGE:C>:-Wno-tsan>)
    endif()
    cc_merge(ccc_tsan_objects ${folder}/tsan.merged.o)

    # Instrumented, so that uses of freed objects and bad buffers are found inside the library's calls. Its own globals and
    # frames are not checked: that takes constructors that call the sanitizer, and CC_SANITIZE does it in our tests.
    cc_add_objects(ccc_asan_objects)
    target_compile_definitions(ccc_asan_objects PRIVATE CC_VARIANT=2)
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
        set(heap_only --param=asan-globals=0 --param=asan-stack=0)
    else()
        set(heap_only "SHELL:-mllvm -asan-globals=0" "SHELL:-mllvm -asan-stack=0")
    endif()
    target_compile_options(ccc_asan_objects PRIVATE $<$<COMPILE_LANGUAGE:C>:-fsanitize=address;-g1> ${heap_only})
    cc_merge(ccc_asan_objects ${folder}/asan.merged.o)

    # Told of stacks and switches, and not instrumented: the leak sanitizer alone has no shadow memory.
    cc_add_objects(ccc_lsan_objects)
    target_compile_definitions(ccc_lsan_objects PRIVATE CC_VARIANT=3 CC_ASAN=1)
    target_compile_options(ccc_lsan_objects PRIVATE $<$<COMPILE_LANGUAGE:C>:-g1>)
    cc_merge(ccc_lsan_objects ${folder}/lsan.merged.o)

    foreach(copy tsan asan lsan)
        target_compile_options(ccc_${copy}_objects PRIVATE $<$<COMPILE_LANGUAGE:C>:${CC_VARIANT_OPTIONS}>)
    endforeach()

    set(merged ${folder}/tsan.merged.o ${folder}/asan.merged.o ${folder}/lsan.merged.o)
    set(objects ${folder}/plain.o ${folder}/tsan.o ${folder}/asan.o ${folder}/lsan.o)
    set(names ${folder}/variant_names.h)
    add_custom_command(
        OUTPUT ${objects} ${names}
        COMMAND ${CMAKE_COMMAND} -E env NM=${CMAKE_NM} OBJCOPY=${CMAKE_OBJCOPY}
                ${PROJECT_SOURCE_DIR}/cmake/variants.sh ${folder} ${PROJECT_SOURCE_DIR}/src/libccc.map ${plain} ${merged}
        DEPENDS ${PROJECT_SOURCE_DIR}/cmake/variants.sh ${PROJECT_SOURCE_DIR}/src/libccc.map ${plain} ${merged}
        VERBATIM
        COMMENT "Renaming the copies' public functions")
    set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    add_custom_target(ccc_variants DEPENDS ${objects} ${names})
    if(TARGET ccc_one_object) # Without it make, as opposed to ninja, would make that object twice, at the same time.
        add_dependencies(ccc_variants ccc_one_object)
    endif()

    add_library(ccc_dispatch OBJECT ${PROJECT_SOURCE_DIR}/cmake/dispatch.c)
    set_target_properties(ccc_dispatch PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
    target_include_directories(ccc_dispatch PRIVATE ${folder})
    # Resolvers run before anything is set up, a stack protector's canary included.
    target_compile_options(ccc_dispatch PRIVATE -Wall -Wextra -fno-stack-protector)
    add_dependencies(ccc_dispatch ccc_variants)
    set(library_objects ${objects} $<TARGET_OBJECTS:ccc_dispatch> PARENT_SCOPE)
endfunction()
