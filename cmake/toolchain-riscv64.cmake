# Builds for riscv64 Linux with the distribution's cross compiler; runs the result under qemu's user mode,
# which finds the target's dynamic linker and C library below -L.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(CMAKE_C_COMPILER riscv64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-riscv64-static;-L;/usr/riscv64-linux-gnu)
