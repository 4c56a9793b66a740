#!/bin/sh
# variants.sh FOLDER LIST PLAIN TSAN ASAN - three copies of the library, one object each: writes FOLDER/plain.o, tsan.o and
# asan.o, whose public functions have the prefixes that cmake/dispatch.c knows, and FOLDER/variant_names.h. LIST is
# src/libccc.map: the objects have these public functions, and no others.
set -eu
folder=$1
sed -n 's/^ *\(cc_[a-z0-9_]*\);$/\1/p' "$2" | LC_ALL=C sort >"$folder/public.names"

public() { "$NM" --extern-only --defined-only "$1" | awk '$3 ~ /^cc_[^_]/ { print $3 }' | LC_ALL=C sort; }

# rename COPY OBJECT: its public functions get the prefix.
rename() {
    public "$2" >"$folder/$1.names"
    if ! diff "$folder/public.names" "$folder/$1.names" >&2; then
        echo "variants.sh: the copy $1 (>) has other public functions than src/libccc.map (<)." >&2
        exit 1
    fi
    awk -v copy="$1" '{ print $1, "cc__" copy "_" $1 }' "$folder/$1.names" >"$folder/$1.renamed"
    "$OBJCOPY" --redefine-syms="$folder/$1.renamed" "$2" "$folder/$1.o"
}

# seclude COPY: no other name of it is seen from outside; a sanitizer's functions are there or not. gcc and clang call
# __tsan_init in a constructor of each object, also in a program that has no such function.
seclude() {
    awk '{ print $2 }' "$folder/$1.renamed" >"$folder/$1.kept"
    "$OBJCOPY" --redefine-sym __tsan_init=cc__variant_nothing "$folder/$1.o"
    "$OBJCOPY" --keep-global-symbols="$folder/$1.kept" --wildcard --weaken-symbol='__tsan_*' --weaken-symbol='Annotate*' \
        "$folder/$1.o"
}

rename plain "$3"
rename tsan "$4"
rename asan "$5"
seclude tsan
seclude asan
sed 's/.*/DISPATCH(&)/' "$folder/public.names" >"$folder/variant_names.h"
