#!/usr/bin/env bash
# deps.sh run|bench|test - makes sure that what a target needs is installed.
#
# Looks at commands and files only, so that a complete machine needs neither root nor a network. What is
# missing is installed by apt-get for root on Debian and its kin; elsewhere the command is shown.
set -u
target=${1:-run}
missing=()

have() {
    command -v "$1" >/dev/null 2>&1
}

# need PACKAGE... -- TEST...: the packages are missing when the test fails.
need() {
    local packages=()
    while [[ $1 != -- ]]; do
        packages+=("$1")
        shift
    done
    shift
    "$@" || missing+=("${packages[@]}")
}

have_c_compiler() {
    (have cc || have gcc || have clang) && [[ -e /usr/include/stdlib.h ]]
}

find_clang() {
    local name
    for name in clang clang-{20,19,18,17,16,15,14}; do
        if have "$name"; then
            echo "$name"
            return 0
        fi
    done
    return 1
}

have_tsan_of() {
    compgen -G "$("$1" -print-resource-dir)/lib/*/libclang_rt.tsan*.a" >/dev/null
}

need_cross() { # need_cross CPU DEBIAN_NAME, unless the machine itself is one
    [[ $(uname -m) == "$1" ]] && return
    need "gcc-$1-linux-gnu" -- have "$1-linux-gnu-gcc"
    need "libc6-dev-$2-cross" -- test -e "/usr/$1-linux-gnu/lib/libc.so"
    need qemu-user-static -- have "qemu-$1-static"
}

need cmake -- have cmake
need make -- have make
need gcc libc6-dev -- have_c_compiler
if [[ $target != run ]]; then # ccpigz and its rival
    need zlib1g-dev -- test -e /usr/include/zlib.h
    need libdeflate-dev -- test -e /usr/include/libdeflate.h
    need pigz -- have pigz
fi
if [[ $target == test ]]; then
    need g++ -- have c++
    need valgrind -- have valgrind
    need libc6-dbg -- test -d /usr/lib/debug/.build-id # valgrind wants the symbols of the dynamic linker
    need spin -- have spin
    if clang=$(find_clang); then
        version=$("$clang" -dumpversion)
        need "libclang-rt-${version%%.*}-dev" -- have_tsan_of "$clang"
    else
        missing+=(clang libclang-rt-dev)
    fi
    need_cross aarch64 arm64
    need_cross riscv64 riscv64
fi

if ((${#missing[@]} > 0)); then
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
    install=(apt-get install -y --no-install-recommends "${missing[@]}")
    if [[ $(id -u) != 0 ]] || ! have apt-get; then
        echo "Some packages are missing. On Debian and Ubuntu this installs them:"
        echo "    sudo ${install[*]}"
        exit 1
    fi
    echo "Installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    if ! { apt-get update -q && "${install[@]}"; }; then
        echo "The packages could not be installed; the command was: ${install[*]}"
        exit 1
    fi
fi

version=$(cmake --version | awk 'NR == 1 { print $3 }')
if [[ $(printf '%s\n' 3.25 "$version" | sort -V | head -n 1) != 3.25 ]]; then
    echo "CMake 3.25 or newer is needed; this is $version."
    exit 1
fi
