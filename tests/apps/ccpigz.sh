#!/usr/bin/env bash
# ccpigz.sh PROGRAM [WORD] - tests ccpigz from outside, beside gzip and pigz; speaks TAP. With WORD only the cases whose
# name contains it.
#
# A case is a function case_NAME: it succeeds or it does not; what it prints is shown if not. 77 says that it was skipped,
# for the reason that it has printed.
# TEST_SLOWDOWN above 4 makes the corpus short, for sanitizers.
set -u
program=$(realpath "$1")
word=${2:-}
short=$((${TEST_SLOWDOWN:-1} > 4))
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'chmod -R u+rwx "$work" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C
# Its second of waiting at every end would be minutes here.
export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}atexit_sleep_ms=0

cc() { "$program" "$@"; }

# fails STATUS TEXT ARGS...: the program ends with that status, and its complaint contains the text.
fails() {
    local want=$1 text=$2 status
    shift 2
    cc "$@" >out.tmp 2>err.tmp </dev/null
    status=$?
    if ((status != want)) || { [[ -n $text ]] && ! grep -qF -- "$text" err.tmp; }; then
        echo "ccpigz $*: status $status instead of $want, or no '$text' in: $(cat err.tmp)"
        return 1
    fi
}

skip() {
    echo "$1"
    exit 77
}

has_sanitizer() { nm "$program" 2>/dev/null | grep -qE "__($1)_init"; }

same() { cmp "$1" "$2"; }
no_rest() { # no_rest NAMES: the directory d holds just these
    local found
    found=$(cd d && find . -mindepth 1 -printf '%P\n' | sort | tr '\n' ' ')
    [[ $found == "$* " || ($# == 0 && -z $found) ]] || { echo "d holds: $found"; return 1; }
}
fresh() { # a new directory d with a file of some text
    chmod -R u+rwx d 2>/dev/null
    rm -rf d
    mkdir d
    cp corpus/text d/f
}

make_corpus() {
    local n
    mkdir corpus
    : >corpus/empty
    printf x >corpus/one
    head -c 300000 /dev/zero >corpus/zeros
    head -c 200000 /dev/urandom >corpus/random
    seq 1 60000 >corpus/text
    for n in 32767 32768 32769 131071 131072 131073 262144 524287 524288 524289; do
        seq 1 200000 | head -c "$n" >"corpus/size$n"
    done
    awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%s%c", substr("abcabcabcabcdeadbeef", i % 7 + 1, i % 11), 65 + i % 26 }' >corpus/short_matches
    if ((!short)); then
        find /usr/bin /usr/share/doc -type f -size +8k 2>/dev/null | LC_ALL=C sort | awk 'NR % 23 == 0' | head -n 60 |
            xargs cat 2>/dev/null | head -c 4000000 >corpus/found
        cp "$(command -v bash)" corpus/binary
    fi
}

# ---- both ways ----

# round FILE ARGS...: what we make is read by us, by gzip and by pigz.
round() {
    local file=$1
    shift
    cc -c "$@" "$file" >x.gz && cc -dc x.gz | cmp - "$file" && gzip -dc x.gz | cmp - "$file" &&
        { [[ -z $pigz ]] || pigz -dc x.gz | cmp - "$file"; } || { echo "round $file $*"; return 1; }
}

case_round_trips() {
    local file args
    for file in corpus/*; do
        round "$file" || return 1
        round "$file" --engine=zlib -p 3 || return 1
        ((short)) || [[ $file == corpus/found ]] && continue
        for args in "-1" "-9" "--engine=zlib -1 -p 1" "--engine=zlib -9 -i -b 32" "-b 32 -p 8" "-0" "-R"; do
            # shellcheck disable=SC2086
            round "$file" $args || return 1
        done
    done
    for args in -2 -3 -4 -5 -7 -8 "--engine zlib -4 -b 64" "--engine zlib -2 -i" --fast --best; do
        # shellcheck disable=SC2086
        round corpus/text $args || return 1
    done
    "$program" -V | grep -q libdeflate || return 0
    for args in -10 -11 -12; do round corpus/text $args || return 1; done
}

case_every_file_with_odd_blocks() {
    local b p
    for b in 32 33 127 129; do
        for p in 1 2 5; do
            round corpus/size524289 --engine=zlib -b $b -p $p && round corpus/size524289 -b $b -p $p || return 1
        done
    done
}

case_as_small_as_pigz() {
    [[ -n $pigz ]] || skip "there is no pigz"
    local file ours theirs
    for file in corpus/text corpus/random corpus/size524289 corpus/zeros; do
        ours=$(cc --engine=zlib -nc "$file" | wc -c) theirs=$(pigz -nc "$file" | wc -c)
        ((ours <= theirs)) || { echo "$file: $ours bytes, pigz $theirs"; return 1; }
    done
}

case_reads_what_others_write() {
    local file level
    for file in corpus/*; do
        gzip -c "$file" >x.gz && cc -dc x.gz | cmp - "$file" || return 1
        [[ -z $pigz ]] && continue
        pigz -c "$file" >x.gz && cc -dc x.gz | cmp - "$file" || return 1
        pigz -ic -b 32 "$file" >x.gz && cc -dc x.gz | cmp - "$file" || return 1
        pigz -zc "$file" >x.zz && cc -dc x.zz | cmp - "$file" || return 1
    done
    for level in 1 2 3 4 5 7 8 9; do
        gzip -$level -c corpus/text >x.gz && cc -dc x.gz | cmp - corpus/text || return 1
    done
}

# One stream by several tasks: of every kind of block, with something behind it, damaged, and cut off.
case_split_streams() {
    local n p size levels="1 6" count=120000
    ((short)) && levels=6 count=50000
    seq 1 $count | awk '{ print $1 * 7919 % 1000003, $1 }' >numbers
    # shellcheck disable=SC2046
    cat numbers corpus/random corpus/zeros $(for _ in 1 2 3; do echo corpus/random corpus/zeros corpus/text; done) numbers corpus/s* >plain
    head -c $((count * 16)) /dev/zero >>plain
    head -c 700000 /dev/urandom >>plain
    seq 1 200000 >>plain
    split_agrees() { # split_agrees FILE EXPECTED ARGS...
        local file=$1 expected=$2
        shift 2
        cc --split=always "$@" -dc "$file" | cmp - "$expected" || { echo "split $file $*"; return 1; }
    }
    for n in $levels; do
        gzip -$n -c plain >x.gz
        for p in 1 $((n % 5 + 2)); do split_agrees x.gz plain -p $p || return 1; done
    done
    cc --engine=zlib -ic plain >x.gz && split_agrees x.gz plain -p 4 || return 1
    cc -zc plain >x.zz && split_agrees x.zz plain -p 3 || return 1
    cc --raw -c plain >x.raw && split_agrees x.raw plain -p 3 --raw || return 1
    cc -0c plain >x.gz && split_agrees x.gz plain -p 3 || return 1
    # Members, short and long, in front of and behind each other.
    gzip -c plain >long.gz
    for n in 1 2 3 4 5 6 7 8; do gzip -c corpus/one; done >short.gz
    cat short.gz long.gz long.gz short.gz long.gz short.gz >x.gz
    { printf xxxxxxxx; cat plain plain; printf xxxxxxxx; cat plain; printf xxxxxxxx; } >expected
    split_agrees x.gz expected -p 3 || return 1
    printf rubbish >>x.gz
    fails 2 "trailing garbage" --split=always -p 3 -t x.gz || return 1
    size=$(stat -c %s long.gz)
    local places="524288 $((size - 8))"
    ((short)) || places+=" 300000 700001 $((size - 300000)) $((size - 1))"
    for n in $places; do
        head -c "$n" long.gz >cut.gz
        fails 1 "unexpected end of file" --split=always -p 3 -t cut.gz || return 1
        cp long.gz bad.gz
        printf '\xa5\x5a\xff' | dd of=bad.gz bs=1 seek=$((n - 2)) conv=notrunc 2>/dev/null
        fails 1 "" --split=always -p 3 -t bad.gz || return 1
    done
}

case_zlib_and_raw() {
    local file
    for file in corpus/text corpus/empty corpus/size131073; do
        cc -zc "$file" >x.zz && cc -dc x.zz | cmp - "$file" || return 1
        [[ -z $pigz ]] || pigz -dc x.zz | cmp - "$file" || return 1
        cc --raw -c "$file" >x.raw && cc --raw -dc x.raw | cmp - "$file" || return 1
        # A gzip file is its raw data with ten bytes in front and eight behind.
        cc --engine=zlib -nc "$file" | tail -c +11 | head -c -8 | cmp - x.raw || return 1
    done
}

case_several_members() {
    cc -c corpus/text >m.gz
    gzip -c corpus/empty >>m.gz
    gzip -c corpus/one >>m.gz
    cc -c corpus/size524289 >>m.gz
    cat corpus/text corpus/one corpus/size524289 >expected
    cc -dc m.gz | cmp - expected || return 1
    head -c 3000 /dev/zero >>m.gz # padding is silent
    cc -dc m.gz >plain 2>err.tmp && same plain expected && [[ ! -s err.tmp ]] || return 1
    printf 'rubbish' >>m.gz
    fails 2 "trailing garbage ignored" -dc m.gz && same out.tmp expected && fails 2 "" -qt m.gz
}

case_pipes() {
    cc <corpus/text | cc -d | cmp - corpus/text || return 1
    cat corpus/text | cc -c - | cat | cc -dc - | cmp - corpus/text || return 1
    { head -c 100000 corpus/text; tail -c +100001 corpus/text; } | cc | gzip -dc | cmp - corpus/text || return 1
    gzip -c corpus/text | { head -c 1000; cat; } | cc -d | cmp - corpus/text
}

case_rsyncable_blocks_follow_the_content() {
    seq 1 300000 >a
    { echo "one more line"; cat a; } >b
    cc -Rnc -b 64 a >a.gz
    cc -Rnc -b 64 b >b.gz
    # Most of the compressed bytes are the same, at another place.
    [[ $(tail -c 100000 a.gz | head -c 99000 | md5sum) == $(tail -c 100000 b.gz | head -c 99000 | md5sum) ]]
}

# ---- files ----

case_replaces_the_file_and_keeps_what_belongs_to_it() {
    fresh
    chmod 640 d/f
    touch -d '2001-02-03 04:05:06 UTC' d/f
    cc d/f && no_rest f.gz && [[ $(stat -c '%a %Y' d/f.gz) == "640 981173106" ]] || return 1
    cc -d d/f.gz && no_rest f && same d/f corpus/text && [[ $(stat -c '%a %Y' d/f) == "640 981173106" ]]
}

case_keep_and_stdout() {
    fresh
    cc -k d/f && no_rest f f.gz && cc -dkf d/f.gz && no_rest f f.gz && same d/f corpus/text &&
        cc -dc d/f.gz | cmp - corpus/text && cc -c d/f d/f | cc -d | cmp - <(cat d/f d/f) && no_rest f f.gz
}

case_names_and_times() {
    fresh
    touch -d '2001-02-03 04:05:06 UTC' d/f
    cc d/f && mv d/f.gz d/other.gz && touch d/other.gz && cc -dN d/other.gz && no_rest f &&
        [[ $(stat -c %Y d/f) == 981173106 ]] || return 1
    cc -n d/f && mv d/f.gz d/other.gz && cc -dN d/other.gz && no_rest other || return 1
    # A name in a header does not lead out of the directory.
    printf '\x1f\x8b\x08\x08\0\0\0\0\0\x03../../evil\0\x03\0\0\0\0\0\0\0\0\0' >d/x.gz
    cc -dN d/x.gz && no_rest evil other
}

case_suffixes() {
    fresh
    cc -S .pack d/f && no_rest f.pack && cc -dS .pack d/f.pack && no_rest f || return 1
    cc d/f && mv d/f.gz d/f.tgz && cc -d d/f.tgz && no_rest f.tar || return 1
    mv d/f.tar d/f && cc d/f && cc -d d/f && no_rest f || return 1 # f means f.gz
    cc -z d/f && no_rest f.zz && cc -d d/f.zz && no_rest f || return 1
    cp d/f d/g.gz && fails 2 "suffix" d/g.gz && no_rest f g.gz && cp d/f d/g && fails 2 "unknown suffix" -d d/g
}

case_leaves_alone_what_exists() {
    fresh
    echo precious >d/f.gz
    fails 2 "already exists" d/f && no_rest f f.gz && [[ $(cat d/f.gz) == precious ]] || return 1
    cc -f d/f && no_rest f.gz && gzip -dc d/f.gz | cmp - corpus/text
}

case_links_and_directories() {
    fresh
    ln d/f d/g
    fails 2 "other link" d/f && no_rest f g && rm d/g && ln -s f d/g && fails 2 "symbolic link" d/g && no_rest f g &&
        cc -c d/g | gzip -dc | cmp - corpus/text && fails 2 "is a directory" d && fails 1 "No such file" d/none || return 1
    rm d/g
    mkdir -p d/a/b
    cp corpus/one d/a/b/x
    cp corpus/empty d/a/y
    cc -r d && no_rest a a/b a/b/x.gz a/y.gz f.gz && cc -dr d && no_rest a a/b a/b/x a/y f && same d/f corpus/text
}

case_several_files_and_one_bad() {
    fresh
    cp corpus/one d/g
    fails 1 "d/missing: No such file" d/f d/missing d/g && no_rest f.gz g.gz
}

case_lists() {
    fresh
    cc -k d/f
    local size
    size=$(stat -c %s corpus/text)
    cc -l d/f.gz | tail -n 1 | grep -qE "^ *$(stat -c %s d/f.gz) +$size +[0-9.]+% d/f$" || { cc -l d/f.gz; return 1; }
    cc -lv d/f.gz d/f.gz | grep -q totals && fails 1 "not in gzip" -l d/f
}

case_odd_options() {
    fails 1 "unknown option" -Q x && fails 1 "32 to 524288" -b 1 x && fails 1 "processes" -p 0 x && fails 1 "engine" --engine=none x &&
        fails 1 "levels" -13 x && fails 1 "value is missing" -p && fails 1 "ambiguous" --no x && cc --help | grep -q -- --rsyncable &&
        cc -V | grep -q zlib && cc -L >/dev/null && fails 1 "0 to 9" --engine=zlib -11 x && fails 1 "always or never" --split=perhaps x && echo -n hi | cc --std | cc --decomp | grep -q hi
}

case_says_what_it_does() {
    fresh
    cc -vv d/f 2>err.tmp && grep -q 'd/f: .*replaced with d/f.gz' err.tmp && cc -tv d/f.gz 2>&1 | grep -q 'd/f.gz: OK'
}

case_no_compressed_data_on_a_terminal() {
    command -v script >/dev/null || skip "there is no script(1) to make a terminal"
    script -qec "$program -c corpus/text" /dev/null </dev/null | grep -q 'not written to a terminal'
}

# ---- what can go wrong ----

case_cut_off_anywhere() {
    local n size args
    for args in "" "--engine=zlib" "-b 32"; do
        # shellcheck disable=SC2086
        cc $args -c corpus/size131073 >x.gz
        size=$(stat -c %s x.gz)
        for ((n = 0; n < size; n += n < (short ? 12 : 40) || n > size - 10 ? 1 : size / (short ? 5 : 30))); do
            head -c "$n" x.gz >cut.gz
            fails 1 "unexpected end of file" -t cut.gz || return 1
        done
    done
    fresh
    mv cut.gz d/cut.gz && fails 1 "d/cut.gz: unexpected end" -d d/cut.gz && no_rest cut.gz f
}

# A flipped bit is noticed, or changes nothing but the header's words.
case_flipped_bits() {
    local n size engine
    for engine in zlib auto; do
        if [[ $engine == zlib ]]; then cc --engine=zlib -c corpus/size32769 >x.gz; else cc -b 32 -c corpus/size32769 >x.gz; fi
        size=$(stat -c %s x.gz)
        for ((n = 0; n < size; n += n < (short ? 24 : 60) || n > size - 10 ? 1 : size / (short ? 10 : 50))); do
            cp x.gz y.gz
            printf "\\x$(printf %02x $((0x$(od -An -tx1 -j "$n" -N 1 x.gz | tr -d ' ') ^ (1 << (n % 8)))))" |
                dd of=y.gz bs=1 seek="$n" conv=notrunc 2>/dev/null
            cc -dc y.gz >plain 2>err.tmp
            case $? in
            0) same plain corpus/size32769 || return 1 ;;
            1 | 2) [[ -s err.tmp ]] || { echo "offset $n: silent"; return 1; } ;;
            *) echo "offset $n: died: $(cat err.tmp)"; return 1 ;;
            esac
        done
    done
}

case_wrong_check_values() {
    gzip -nc corpus/text >x.gz
    local size
    size=$(stat -c %s x.gz)
    { head -c $((size - 8)) x.gz; printf 'abcd'; tail -c 4 x.gz; } >y.gz
    fails 1 "the check value is wrong" -t y.gz || return 1
    { head -c $((size - 4)) x.gz; printf 'abcd'; } >y.gz
    fails 1 "the length is wrong" -t y.gz || return 1
    cc -zc corpus/text >x.zz
    { head -c -1 x.zz; printf 'x'; } >y.zz
    fails 1 "the check value is wrong" -t y.zz
}

case_not_compressed_at_all() {
    fails 1 "not in gzip or zlib format" -dc corpus/text && cc -dcf corpus/text | cmp - corpus/text && fails 1 "not in gzip" -t corpus/random
}

# The input stays open: an error must not wait for its end.
case_does_not_wait_for_the_rest_of_a_bad_pipe() {
    mkfifo pipe
    exec 9<>pipe
    head -c 1000 corpus/text >&9
    timeout 20 "$program" -t <pipe 2>err.tmp
    local status=$?
    exec 9>&-
    ((status == 1)) && grep -q 'not in gzip' err.tmp
}

case_full_disk() {
    "$program" -c corpus/random >/dev/full 2>err.tmp && return 1
    grep -q 'No space left' err.tmp || return 1
    cc -c corpus/random >x.gz
    "$program" -dc x.gz >/dev/full 2>err.tmp && return 1
    grep -q 'No space left' err.tmp || return 1
    fresh
    cp corpus/random d/r
    (
        trap '' XFSZ
        ulimit -f 16
        fails 1 "File too large" d/r
    ) && no_rest f r || return 1
    (
        ulimit -c 0 -f 16
        "$program" d/r
    ) 2>/dev/null
    (($? == 128 + 25)) && no_rest f r
}

case_no_permission() {
    local drop=()
    if [[ $(id -u) == 0 ]]; then
        command -v setpriv >/dev/null || skip "root may do everything, and there is no setpriv"
        drop=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    fi
    fresh
    chmod 755 . d
    chmod 000 d/f
    "${drop[@]}" "$program" d/f 2>err.tmp </dev/null
    (($? == 1)) && grep -q 'd/f: Permission denied' err.tmp || { cat err.tmp; return 1; }
    chmod 444 d/f
    chmod 555 d
    "${drop[@]}" "$program" d/f 2>err.tmp </dev/null
    (($? == 1)) && grep -q 'd/f.gz: cannot create: Permission denied' err.tmp && no_rest f || { cat err.tmp; return 1; }
}

# interrupted COMMAND...: starts it on a file that takes long, waits until it has opened its output, ends it by SIGTERM.
interrupted() {
    fresh
    rm d/f
    truncate -s 4G d/big # a hole: it takes no room, and minutes
    "$@" "$program" -9 -p 1 --engine=zlib d/big 2>/dev/null &
    local pid=$! opened=0
    while kill -0 "$pid" 2>/dev/null; do
        if find "/proc/$pid/fd" -lname '*/d/*' ! -lname '*/d/big' 2>/dev/null | grep -q .; then
            opened=1
            kill -TERM "$pid"
            break
        fi
    done
    wait "$pid" 2>/dev/null
    local status=$?
    ((opened)) || { echo "it was over too soon"; return 1; }
    ((status == 128 + 15)) && no_rest big || { echo "status $status"; return 1; }
}

case_interrupted() {
    ! has_sanitizer tsan || skip "the thread sanitizer holds a signal back while its thread waits in the kernel"
    interrupted env
}

# The same where files without a name are not to be had.
case_interrupted_with_a_temporary_name() {
    ! has_sanitizer 'asan|tsan' || skip "a sanitizer wants to be loaded before everything else"
    cat >no_tmpfile.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = va_arg(args, mode_t);
    va_end(args);
    if ((flags & O_TMPFILE) == O_TMPFILE) return errno = EOPNOTSUPP, -1;
    return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open"))(path, flags, mode);
}
END
    gcc -shared -fPIC -o no_tmpfile.so no_tmpfile.c 2>/dev/null || skip "there is no gcc"
    interrupted env LD_PRELOAD="$work/no_tmpfile.so" || return 1
    fresh
    LD_PRELOAD="$work/no_tmpfile.so" "$program" d/f && no_rest f.gz && gzip -dc d/f.gz | cmp - corpus/text || return 1
    cp corpus/text d/f
    LD_PRELOAD="$work/no_tmpfile.so" fails 2 "already exists" d/f && no_rest f f.gz && LD_PRELOAD="$work/no_tmpfile.so" "$program" -f d/f && no_rest f.gz
}

case_only_public_headers() {
    ! grep -nE '#include "[^"]*/' "$here"/../../apps/ccpigz/*.[ch]
}

# ---- run them ----

pigz=$(command -v pigz || true)
make_corpus
mapfile -t cases < <(declare -F | sed -n 's/^declare -f case_//p')
number=0 failed=0
for name in "${cases[@]}"; do
    [[ $name == *"$word"* ]] || continue
    number=$((number + 1))
    ("case_$name") >log.tmp 2>&1 </dev/null
    case $? in
    0) echo "ok $number $name" ;;
    77) echo "ok $number $name # SKIP $(tail -n 1 log.tmp)" ;;
    *)
        echo "not ok $number $name"
        sed 's/^/# /' log.tmp
        failed=1
        ;;
    esac
done
echo "1..$number"
exit "$failed"
