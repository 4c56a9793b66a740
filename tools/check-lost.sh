#!/usr/bin/env bash
# check-lost.sh BUILD_DIR - a program that ends without a shutdown leaves nothing that Valgrind takes for lost, or possibly so.
set -eu
cmake --build "$1" --target examples_hello
valgrind -q --fair-sched=yes --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible \
    --show-leak-kinds=definite,possible "$1/examples/hello"
