# The newest clang of this machine. Distributions install it under a versioned name, which a
# preset cannot search for; a toolchain file can.
find_program(CC_CLANG NAMES clang clang-20 clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 REQUIRED)
set(CMAKE_C_COMPILER ${CC_CLANG})
find_program(CC_CLANGXX NAMES clang++ clang++-20 clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14)
if(CC_CLANGXX)
    set(CMAKE_CXX_COMPILER ${CC_CLANGXX})
endif()
