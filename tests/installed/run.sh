#!/usr/bin/env bash
# run.sh [BUILD] - programs that are built with a sanitizer against the installed library, as users do. TAP on
# standard output.
#
# Installs BUILD (build/release) under a temporary prefix. For gcc and clang, the shared and the static library: examples,
# which must print what they print elsewhere and nothing else; and programs with planted errors, which must be reported.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build/release}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
jobs=${JOBS:-$(nproc)}

# The second that the race detector waits at every end would be minutes here.
export TSAN_OPTIONS=atexit_sleep_ms=0
export ASAN_OPTIONS=detect_stack_use_after_return=0
examples=(pipeline fan_in worker_pool shared_counter parallel_map)

# report STATUS NAME LOG: one line of TAP, still without its number.
report() {
    if (($1 == 0)); then
        echo "ok - $2"
    else
        echo "not ok - $2"
        sed 's/^/# /' "$3" | head -n 60
    fi
}

# compile COMPILER SANITIZER shared|static OUT FILES...
compile() {
    local compiler=$1 sanitizer=$2 out=$4 libraries=("${shared[@]}")
    [[ $3 == shared ]] || libraries=("${static[@]}")
    shift 4
    "$compiler" -O1 -g "-fsanitize=$sanitizer" "${cflags[@]}" "$@" -o "$out" "${libraries[@]}" >"$out.log" 2>&1
}

# example NAME COMPILER SANITIZER shared|static OUT: builds it and runs it; nothing is reported.
example() {
    compile "$2" "$3" "$4" "$5" "examples/$1.c" || return
    timeout 120 "$5" >"$5.out" 2>"$5.log" && diff "examples/$1.out" "$5.out" >>"$5.log" && [[ ! -s $5.log ]]
}

# exceptions COMPILER SANITIZER shared|static OUT: the cases in which an exception leaves a call of the library.
exceptions() {
    local cxx=g++
    [[ $1 == gcc ]] || cxx=$1++
    "$1" -O1 -g "-fsanitize=$2" -D_GNU_SOURCE -c tests/harness/harness.c -o "$4.o" >"$4.log" 2>&1 &&
        compile "$cxx" "$2" "$3" "$4" -std=c++17 -Itests/harness tests/programs/exceptions.cpp "$4.o" &&
        TEST_TIMEOUT=3 timeout 300 "$4" through_calls >"$4.log" 2>&1
}

# planted WORD TEXT PROGRAM: the sanitizer ends the program, which is given that word, with a report that has the text.
planted() {
    ! timeout 120 "$3" "$1" >"$3.log" 2>&1 && grep -q -- "$2" "$3.log"
}

# line_of ERROR: where errors.c makes it.
line_of() { grep -n "error: $1 " tests/installed/errors.c | cut -d : -f 1; }

# silent WORD PROGRAM
silent() {
    timeout 120 "$2" "$1" >"$2.log" 2>&1 && ! grep -qE 'WARNING|ERROR|SUMMARY' "$2.log"
}

# All cases with one compiler and the shared or the static library.
combination() {
    local compiler=$1 library=$2 with="$1, $2" program=$work/$1-$2 sanitizer name word text
    if ! command -v "$compiler" >/dev/null; then
        echo "ok - $compiler # SKIP it is not installed"
        return
    fi
    for sanitizer in thread address; do
        for name in "${examples[@]}"; do
            example "$name" "$compiler" "$sanitizer" "$library" "$program-$name-$sanitizer"
            report $? "$name is silent with -fsanitize=$sanitizer ($with)" "$program-$name-$sanitizer.log"
        done
    done

    # Races between fibers, and orders between them. With the static library a few of them have to do.
    compile "$compiler" thread "$library" "$program-races" -D_GNU_SOURCE -Itests/harness \
        tests/programs/planted_races.c tests/harness/harness.c &&
        TEST_TIMEOUT=3 timeout 600 "$program-races" $([[ $library == shared ]] || echo join) >"$program-races.log" 2>&1
    report $? "races are reported, and what is ordered is not ($with)" "$program-races.log"

    # Exceptions pass through frames of the copy.
    for sanitizer in thread address; do
        exceptions "$compiler" "$sanitizer" "$library" "$program-exceptions-$sanitizer"
        report $? "exceptions pass through calls with -fsanitize=$sanitizer ($with)" "$program-exceptions-$sanitizer.log"
    done

    if ! compile "$compiler" address "$library" "$program-errors" tests/installed/errors.c; then
        report 1 "a program with errors is built ($with)" "$program-errors.log"
        return
    fi
    while read -r word text; do
        planted "$word" "SUMMARY: .*$text .*errors.c:$(line_of "$word")[: ]" "$program-errors"
        report $? "$text in a fiber is reported ($with)" "$program-errors.log"
    done <<'END'
heap heap-buffer-overflow
stack stack-buffer-overflow
freed heap-use-after-free
END
    while read -r word text; do
        planted "$word" "AddressSanitizer: $text" "$program-errors" && grep -q "errors.c:$(line_of "$word")" "$program-errors.log"
        report $? "$text in a call of the library is reported: $word ($with)" "$program-errors.log"
    done <<'END'
channel heap-use-after-free
nursery heap-use-after-free
mutex heap-use-after-free
receive heap-use-after-free
read heap-buffer-overflow
line use-after-poison
END
    ASAN_OPTIONS=detect_stack_use_after_return=1 planted returned \
        "SUMMARY: .*stack-use-after-return .*errors.c:$(line_of returned)[: ]" "$program-errors"
    report $? "stack-use-after-return in a fiber is reported ($with)" "$program-errors.log"
    planted leak "detected memory leaks" "$program-errors"
    report $? "a leak in a fiber is reported ($with)" "$program-errors.log"
    silent panic "$program-errors"
    report $? "frames that a panic leaves are not reported ($with)" "$program-errors.log"
    silent parked "$program-errors"
    report $? "what only parked fibers know is no leak ($with)" "$program-errors.log"
    # The leak sanitizer alone. It takes memory that was allocated on a stack that it does not know for reachable.
    compile "$compiler" leak "$library" "$program-leaks" tests/installed/errors.c && silent parked "$program-leaks"
    report $? "what only parked fibers know is no leak with -fsanitize=leak ($with)" "$program-leaks.log"
}

if ! cmake --install "$build" --prefix "$prefix" >"$work/install.log" 2>&1; then
    report 1 "install" "$work/install.log"
    echo "1..1"
    exit 1
fi
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name ccc.pc)")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir ccc)
read -r -a cflags < <(pkg-config --cflags ccc)
read -r -a shared < <(pkg-config --libs ccc)
shared+=("-Wl,-rpath,$libdir")
static=("$libdir/libccc.a" -pthread)

tools/check-symbols.sh "$libdir/libccc.a" "$libdir/libccc.so" >"$work/symbols.log" 2>&1
report $? "the libraries have the public functions of src/libccc.map, and no other names" "$work/symbols.log" >"$work/symbols.tap"

# Redirected calls, by the flags of pkg-config; and a program that links the static library beside them.
read -r -a posix < <(pkg-config --libs ccc-posix)
gcc -O2 -D_GNU_SOURCE -D_FORTIFY_SOURCE=2 -Itests/harness "${cflags[@]}" tests/programs/posix/posix.c \
    tests/harness/harness.c -o "$work/posix" "${posix[@]}" "-Wl,-rpath,$libdir" >"$work/posix.log" 2>&1 &&
    TEST_TIMEOUT=3 timeout 300 "$work/posix" >"$work/posix.log" 2>&1
report $? "calls of libc that ccc-posix redirects park" "$work/posix.log" >"$work/posix.tap"
gcc -O2 "${cflags[@]}" examples/hello.c -o "$work/both" "${posix[@]/%-lccc/$libdir/libccc.a}" -Wl,-u,__wrap_read \
    "$libdir/libccc_posix.a" "$libdir/libccc.a" -pthread >"$work/both.log" 2>&1 &&
    ! timeout 60 "$work/both" >"$work/both.log" 2>&1 && grep -q 'link libccc.so instead' "$work/both.log"
report $? "ccc-posix refuses libccc.a" "$work/both.log" >"$work/both.tap"

for compiler in gcc clang; do
    for library in shared static; do
        while (($(jobs -pr | wc -l) >= jobs + 1)); do wait -n; done
        combination "$compiler" "$library" >"$work/$compiler-$library.tap" &
    done
done
wait
cat "$work"/*.tap | awk '
    /^ok / { sub(/^ok/, "ok " ++n) }
    /^not ok / { sub(/^not ok/, "not ok " ++n); bad = 1 }
    { print }
    END { print "1.." n; exit bad }'
