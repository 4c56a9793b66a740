#!/bin/sh
# variants.sh FOLDER LIST PLAIN TSAN ASAN LSAN - four copies of the library, one object each: writes FOLDER/plain.o, tsan.o,
# asan.o and lsan.o, whose public functions have the prefixes that cmake/dispatch.c knows, and FOLDER/variant_names.h. LIST is
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

# seclude COPY: its other names become local, and the sanitizer's functions weak: a program may not have them. gcc and clang
# call the sanitizer's init function in a constructor of each object, which runs in every program. The copies share the
# pointer to the personality function that the compiler puts into a COMDAT group (DW.ref.NAME): with a local name the linker
# would drop it in all copies but one, and no exception could pass through the frames of the others.
seclude() {
    awk '{ print $2 }' "$folder/$1.renamed" >"$folder/$1.kept"
    "$NM" --defined-only "$folder/$1.o" | awk '$3 ~ /^DW\.ref\./ { print $3 }' >>"$folder/$1.kept"
    "$NM" --undefined-only "$folder/$1.o" | awk '$2 ~ /^__(tsan|asan)_(init|version_mismatch_check_v[0-9]+)$/ { print $2, "cc__variant_nothing" }' \
        >"$folder/$1.constructors"
    # Names that become one would be two symbols of that name.
    while read -r from to; do "$OBJCOPY" --redefine-sym "$from=$to" "$folder/$1.o"; done <"$folder/$1.constructors"
    "$OBJCOPY" --keep-global-symbols="$folder/$1.kept" --wildcard --weaken-symbol='__tsan_*' --weaken-symbol='__asan_*' \
        --weaken-symbol='Annotate*' "$folder/$1.o"
}

rename plain "$3"
rename tsan "$4"
rename asan "$5"
rename lsan "$6"
for copy in tsan asan lsan; do seclude "$copy"; done
sed 's/.*/DISPATCH(&)/' "$folder/public.names" >"$folder/variant_names.h"
