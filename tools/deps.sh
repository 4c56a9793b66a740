#!/usr/bin/env bash
# deps.sh run|bench|test|install - makes sure that what a target needs is installed.
#
# Looks at commands and files only, so that a complete machine needs neither root nor a network. What is
# missing is installed by apt-get for root on Debian and its kin; elsewhere the command is shown. libc++, the rivals of
# the measurements and the servers of the recipes are welcome, not needed: a machine without them measures ours.
set -u
target=${1:-run}
missing=() welcome=()

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

# want PACKAGE... -- TEST...: the same for optional packages.
want() {
    local packages=()
    while [[ $1 != -- ]]; do
        packages+=("$1")
        shift
    done
    shift
    "$@" || welcome+=("${packages[@]}")
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

have_clang_format() {
    have clang-format-14 || have clang-format
}

have_libcxx() {
    local found
    found=$("$1" -print-file-name=libc++.so) && [[ $found != libc++.so && -e $found ]]
}

have_tools() {
    local tool
    for tool in "$@"; do have "$tool" || return 1; done
}

have_all() {
    local file
    for file in "$@"; do [[ -e $file ]] || return 1; done
}

have_metrics_parser() {
    python3 -c 'import prometheus_client' 2>/dev/null || /usr/bin/python3 -c 'import prometheus_client' 2>/dev/null
}

have_pip() {
    python3 -m pip --version >/dev/null 2>&1
}

need_cross() { # need_cross CPU DEBIAN_NAME, unless the machine itself is one
    [[ $(uname -m) == "$1" ]] && return
    need "gcc-$1-linux-gnu" -- have "$1-linux-gnu-gcc"
    need "libc6-dev-$2-cross" -- test -e "/usr/$1-linux-gnu/lib/libc.so"
    need qemu-user-static -- have "qemu-$1-static"
}

have_go() {
    have go || [[ -x /usr/local/go/bin/go ]] || compgen -G '/usr/lib/go-*/bin/go' >/dev/null
}

# Tokio needs a Rust of the last two years; Debian 12 has one beside its default, under another name.
have_cargo() {
    local version
    version=$(cargo --version 2>/dev/null | awk '{ print $2 }')
    [[ -n $version && $(printf '%s\n' 1.71 "$version" | sort -V | head -n 1) == 1.71 ]]
}

cargo_packages() {
    if [[ -n $(apt-cache madison cargo-web 2>/dev/null) ]]; then
        echo cargo-web rustc-web
    else
        echo cargo rustc
    fi
}

need cmake -- have cmake
need make -- have make
need gcc libc6-dev -- have_c_compiler
if [[ $target != run && $target != install ]]; then # ccpigz and its rival
    need zlib1g-dev -- test -e /usr/include/zlib.h
    need libdeflate-dev -- test -e /usr/include/libdeflate.h
    need pigz -- have pigz
fi
if [[ $target == test ]]; then
    need g++ -- have c++
    need pkg-config -- have pkg-config
    need ninja-build -- have ninja
    need valgrind -- have valgrind
    need libc6-dbg -- test -d /usr/lib/debug/.build-id # valgrind wants the symbols of the dynamic linker
    need spin -- have spin
    need gdb -- have gdb
    need clang-format-14 -- have_clang_format
    if clang=$(find_clang); then
        version=$("$clang" -dumpversion)
        need "libclang-rt-${version%%.*}-dev" -- have_tsan_of "$clang"
        want libc++-dev libc++abi-dev -- have_libcxx "$clang"
    else
        missing+=(clang libclang-rt-dev)
        welcome+=(libc++-dev libc++abi-dev)
    fi
    need_cross aarch64 arm64
    need_cross riscv64 riscv64
    # The recipes: libraries of others, and their servers.
    want libpq-dev postgresql -- have_all /usr/include/postgresql/libpq-fe.h /usr/lib/postgresql/*/bin/postgres
    want libc-ares-dev -- have_all /usr/include/ares.h
    want libhiredis-dev redis-server -- have_all /usr/include/hiredis/hiredis.h /usr/bin/redis-server
    want libmariadb-dev mariadb-server -- have_all /usr/include/mariadb/mysql.h /usr/sbin/mariadbd
    want libcurl4-openssl-dev libssl-dev openssl nginx-light -- have_all /usr/include/*/curl/curl.h /usr/include/openssl/ssl.h /usr/sbin/nginx
    want curl socat ncat iperf3 -- have_tools curl socat ncat iperf3
    want libsqlite3-dev -- have_all /usr/include/sqlite3.h
    want bpftrace -- have bpftrace                         # the scripts for the probes
    want python3 chromium -- have_tools python3 chromium # the live page
    want python3-prometheus-client -- have_metrics_parser
    want python3-pip -- have_pip
fi

if [[ $target == bench ]]; then
    need python3 -- have python3
    want g++ -- have g++
    want libboost-fiber-dev -- test -e /usr/include/boost/fiber/all.hpp
    want libtbb-dev -- test -e /usr/include/oneapi/tbb/version.h
    want golang-go -- have_go
    want libssl-dev openssl nginx-light -- have_all /usr/include/openssl/ssl.h /usr/sbin/nginx
    want librsvg2-bin fonts-dejavu-core -- have rsvg-convert
    if ! have_cargo && have apt-get; then
        [[ $(id -u) != 0 ]] || apt-get update -q >/dev/null
        mapfile -t packages < <(cargo_packages | tr ' ' '\n')
        want "${packages[@]}" -- false
    fi
fi

if ((${#missing[@]} > 0)); then
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
    install=(apt-get install -y --no-install-recommends "${missing[@]}")
    # An installation changes nothing but its prefix.
    if [[ $target == install || $(id -u) != 0 ]] || ! have apt-get; then
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

if ((${#welcome[@]} > 0)); then
    install=(apt-get install -y --no-install-recommends "${welcome[@]}")
    if [[ $(id -u) != 0 ]] || ! have apt-get; then
        echo "Some packages that one can do without are not here. On Debian and Ubuntu this installs them: sudo ${install[*]}"
    else
        echo "Installing ${welcome[*]}"
        export DEBIAN_FRONTEND=noninteractive
        # A server that is installed for a test is not to be started as a service.
        policy=/usr/sbin/policy-rc.d
        if [[ ! -e $policy ]]; then
            printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
            trap 'rm -f "$policy"' EXIT
        fi
        { apt-get update -q && "${install[@]}"; } || echo "Not all of them could be installed; the command was: ${install[*]}"
    fi
fi

# What reads our files and speaks to our servers without a line of ours: for the tests alone, below build/.
modules=build/python
has_modules() {
    PYTHONPATH=$modules python3 -c 'import perfetto.protos.perfetto.trace.perfetto_trace_pb2, tlslite' 2>/dev/null
}
if [[ $target == test ]] && have python3 && ! has_modules; then
    echo "Installing perfetto and tlslite-ng for python3, in $modules"
    timeout 120 python3 -m pip install -q --no-input --retries 1 --timeout 10 --disable-pip-version-check --root-user-action=ignore \
        --target "$modules" perfetto tlslite-ng || echo "They could not be installed: the tests that use them are skipped."
fi

version=$(cmake --version | awk 'NR == 1 { print $3 }')
if [[ $(printf '%s\n' 3.25 "$version" | sort -V | head -n 1) != 3.25 ]]; then
    echo "CMake 3.25 or newer is needed; this is $version."
    exit 1
fi
