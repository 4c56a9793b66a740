#!/usr/bin/env bash
# check-install.sh BUILD_DIR: installs a build into a folder of its own, looks at what is there, compiles a program as a user would, by
# pkg-config and by CMake, and removes all of it again. The program's one frame is far larger than a stack's guard: compiled with the flags that we hand
# out, it must end with a report of its overflow and not corrupt other memory.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
cmake --install "$build" --prefix "$work/usr" >"$work/install.log" 2>&1 || { cat "$work/install.log"; exit 1; }
pc=$(dirname "$(find "$work/usr" -name ccc.pc)")

# What a package needs besides: the licence, the pages, and a page for each public call but those that only macros use.
for file in LICENSE README.md docs/hangs.md examples/hello.c; do
    [[ -n $(find "$work/usr" -path "*/doc/*/$file") ]] || { echo "$file is not installed"; exit 1; }
done
# A page that is installed links to nothing that is not.
docs=$(dirname "$(find "$work/usr" -path '*/doc/*/README.md')")
find "$docs" -name '*.md' | while read -r page; do
    grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -vE '^[a-z]+:' | while read -r link; do
        [[ -e $(dirname "$page")/$link ]] || { echo "${page#"$docs/"} links to $link, which is not installed"; exit 1; }
    done
done
nm --dynamic --defined-only "$(find "$work/usr" -name 'libccc.so' | head -n 1)" | awk '{ sub(/@.*/, "", $3); print $3 }' |
    grep -vxE 'cc_(cxx_attach|match|(deadline|defer|nursery|shield)_(enter|leave)|deadline_enter_ex|(nursery|task)_go|future_(await|await_until|end|failed|misused)|when_(choose|choose_ordered|changed|overflow))' | while read -r call; do
    [[ $call != cc_* || -n $(find "$work/usr" -name "$call.3") ]] || { echo "there is no page for $call"; exit 1; }
done

cat >"$work/gulp.c" <<'EOF'
#include <ccc/ccc.h>
static volatile unsigned n = 7;
__attribute__((noinline)) static unsigned gulp(unsigned i) {
    volatile unsigned char big[1024 * 1024];
    big[i] = 1;
    return big[i];
}
static void *other_fiber(void *arg) {
    return arg;
}
static void *task(void *arg) {
    return gulp(n) != 0 ? arg : NULL;
}
int main(void) {
    for (int i = 0; i < 8; i++) cc_run(other_fiber, NULL, NULL);
    return cc_run(task, NULL, NULL);
}
EOF

judge() { # WHAT PROGRAM
    local status=0
    "$2" >"$work/out" 2>&1 || status=$?
    if ((status != 139)) || ! grep -q 'stack overflow in fiber' "$work/out"; then
        echo "$1: the program ended with status $status and said:"
        cat "$work/out"
        exit 1
    fi
    echo "$1: ok"
}
ulimit -c 0

if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$pc
    # shellcheck disable=SC2046 # the flags are words
    "$compiler" -O1 "$work/gulp.c" -o "$work/by_pc" $(pkg-config --cflags --libs ccc)
    LD_LIBRARY_PATH=$(pkg-config --variable=libdir ccc) judge "pkg-config" "$work/by_pc"
else
    grep -q -- '-fstack-clash-protection' "$pc/ccc.pc" || { echo "ccc.pc: no -fstack-clash-protection"; exit 1; }
fi

cat >"$work/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(gulp C)
find_package(ccc REQUIRED)
add_executable(shared gulp.c)
target_link_libraries(shared ccc::ccc)
add_executable(static gulp.c)
target_link_libraries(static ccc::ccc_static)
EOF
cmake -S "$work" -B "$work/build" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/usr" \
    -DCMAKE_BUILD_TYPE=Release >"$work/cmake.log" 2>&1 && cmake --build "$work/build" >>"$work/cmake.log" 2>&1 ||
    { cat "$work/cmake.log"; exit 1; }
judge "CMake, shared" "$work/build/shared"
judge "CMake, static" "$work/build/static"

# TLS, where it was built: a program that asks for the component.
if [[ -e $pc/ccc-tls.pc ]]; then
    mkdir "$work/tls"
    cat >"$work/tls/tls.c" <<'EOF'
#include <ccc/cc_tls.h>
#include <string.h>
int main(void) {
    CCTls *tls;
    if (cc_tls_client(&tls, NULL) != 0) return 1;
    cc_tls_free(tls);
    return cc_tls_server(&tls, NULL) == 0 || strcmp(cc_tls_error(), "a server needs a certificate") != 0;
}
EOF
    cat >"$work/tls/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(tls C)
find_package(ccc REQUIRED COMPONENTS tls)
foreach(library ccc_tls ccc_tls_static)
    add_executable(with_${library} tls.c)
    target_link_libraries(with_${library} ccc::${library})
endforeach()
EOF
    cmake -S "$work/tls" -B "$work/tls/build" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/usr" >"$work/cmake.log" 2>&1 &&
        cmake --build "$work/tls/build" >>"$work/cmake.log" 2>&1 && "$work/tls/build/with_ccc_tls" && "$work/tls/build/with_ccc_tls_static" ||
        { cat "$work/cmake.log"; exit 1; }
    if command -v pkg-config >/dev/null; then
        # shellcheck disable=SC2046
        "$compiler" "$work/tls/tls.c" -o "$work/tls/by_pc" $(pkg-config --cflags --libs ccc-tls)
        LD_LIBRARY_PATH=$(pkg-config --variable=libdir ccc) "$work/tls/by_pc"
    fi
    nm --dynamic --defined-only "$(find "$work/usr" -name libccc_tls.so | head -n 1)" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | while read -r call; do
        [[ $call != cc_tls_* || -n $(find "$work/usr" -name "$call.3") ]] || { echo "there is no page for $call"; exit 1; }
        [[ $call == cc_tls_* ]] || { echo "libccc_tls.so exports $call"; exit 1; }
    done
    echo "TLS: ok"
fi

cp "$build/install_manifest.txt" "$work/manifest"
cmake -DMANIFEST="$work/manifest" -P cmake/uninstall.cmake >"$work/uninstall.log" 2>&1 || { cat "$work/uninstall.log"; exit 1; }
rest=$(find "$work/usr" -not -type d -o -name ccc | head -n 5)
[[ -z $rest ]] || { echo "left behind by the removal: $rest"; exit 1; }
echo "removal: ok"
