#!/usr/bin/env bash
# ccpigz.sh PROGRAM [WORD] - tests ccpigz against gzip and pigz; TAP. With WORD only the cases whose
# name contains it.
#
# TEST_SLOWDOWN above 4 makes the corpus short, for sanitizers.
set -u
. "$(dirname "$0")/cases.sh"
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

# An ordinary program has the name too, as a weak one: the library asks for it.
has_sanitizer() { nm "$program" 2>/dev/null | grep -qE " [^w] __($1)_init"; }

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

# Data that do not compress: several tasks find nothing to start at, and one continues alone. The CPU time is compared with that of one task.
case_split_gives_up() {
    local alone split
    head -c $((short ? 6000000 : 24000000)) /dev/urandom >plain
    gzip -1c plain >x.gz
    cpu() { # cpu ARGS...: hundredths of a second, the least of three runs: others on the machine make it more
        local seconds now least=1000000
        for _ in 1 2 3; do
            seconds=$({ TIMEFORMAT='%3U %3S'; time "$program" "$@" -dc x.gz >out; } 2>&1) && cmp out plain || return 1
            now=$(awk '{ printf "%d", ($1 + $2) * 100 }' <<<"$seconds")
            ((now >= least)) || least=$now
        done
        echo "$least"
    }
    alone=$(cpu -p 1) && split=$(cpu -p 4 --cpus 4 --split=always) || return 1
    ((split <= 4 * alone + 20)) || { echo "$split hundredths of a second instead of $alone"; return 1; }
}

# A name in the header that is the file's own; a first byte of a member that is not there; bits that give powers away.
case_nothing_is_lost() {
    fresh
    gzip -nc d/f >plain.gz
    { printf '\x1f\x8b\x08\x08\0\0\0\0\0\x03f.gz\0'; tail -c +11 plain.gz; } >d/f.gz
    cp d/f.gz own.gz
    rm d/f
    fails 1 "its stored name is its own" -dNf d/f.gz && cmp own.gz d/f.gz && no_rest f.gz || return 1
    { cat plain.gz; printf '\x1f'; } >d/f.gz
    fails 1 "unexpected end of file" -d d/f.gz && no_rest f.gz || return 1
    fresh
    chmod 6755 d/f
    cc d/f && [[ $(stat -c %a d/f.gz) == 755 ]] && chmod 6755 d/f.gz && cc -d d/f.gz && [[ $(stat -c %a d/f) == 755 ]] || return 1
    for option in -V -L --help; do
        "$program" $option >/dev/full 2>err.tmp && { echo "$option to a full device"; return 1; }
        grep -q 'cannot write' err.tmp || return 1
    done
    return 0
}

# With standard input and standard error closed, messages go nowhere: not into the output.
case_closed_descriptors() {
    fresh
    gzip -c d/f >d/x.gz
    printf rubbish >>d/x.gz
    "$program" -d d/x.gz <&- 2>&-
    (($? == 2)) && same d/x corpus/text || return 1
    "$program" -c d/f <&- >x.gz 2>&- && gzip -dc x.gz | same - corpus/text || return 1
    "$program" -c d/f >&- 2>err.tmp && return 1
    grep -q 'cannot write' err.tmp
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
        cc --cpus 8 --split=always "$@" -dc "$file" | cmp - "$expected" || { echo "split $file $*"; return 1; }
    }
    for n in $levels; do
        gzip -$n -c plain >x.gz
        for p in 1 $((n % 5 + 2)); do split_agrees x.gz plain -p $p --cpus $p || return 1; done
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

# Stored blocks are read to where they belong. Matches reach into them, across the ends of pieces and chunks, and coded blocks
# follow that make a pipeline of what was none.
case_stored_blocks() {
    local i maker at file workers
    : >noise
    for ((i = 0; i < 12; i++)); do
        head -c $((90000 + i * 7919)) /dev/urandom >part
        cat part >>noise
        tail -c $((15000 + i * 1500)) part >>noise
    done
    cat noise corpus/text noise >stored
    for maker in "gzip" "$program --engine=zlib" "$program" ${pigz:+"pigz"}; do
        for file in noise stored; do
            $maker -c $file >x.gz
            for workers in 1 2 4; do
                cc -p $workers --cpus=4 -dc x.gz | same - $file || { echo "$maker, $file, $workers"; return 1; }
                cat x.gz | cc -p $workers --cpus=4 -d | same - $file || { echo "$maker, $file, $workers, pipe"; return 1; }
            done
        done
    done
    gzip -c noise >x.gz
    for at in 40 70000 131072 400001 $(($(stat -c %s x.gz) - 4)); do
        head -c "$at" x.gz >cut.gz
        cc -dc cut.gz >out 2>err.tmp && return 1
        grep -q 'unexpected end' err.tmp && cmp -n "$(stat -c %s out)" out noise || return 1
        (($(stat -c %s out) > at - 4096)) || { echo "of $at bytes only $(stat -c %s out) came out"; return 1; }
    done
}

# So much that a pipeline is made of it, which is then left in every way: at the end, by an error of the data, of the output.
case_long_streams() {
    local maker workers
    head -c 1500000 /dev/urandom | base64 -w 0 >long
    for maker in "gzip" "$program" "$program -z"; do
        $maker -c long >x.gz
        for workers in 1 2 4; do
            echo "$maker, $workers"
            cc -p $workers --cpus=4 -dc x.gz >out && same out long || return 1
            cat x.gz | cc -p $workers --cpus=4 -d | same - long || return 1
            cc -p $workers --cpus=4 -dc x.gz | { sleep 0.1; cat; } | same - long || return 1
            "$program" -p $workers --cpus=4 -dc x.gz >/dev/full 2>err.tmp && return 1
            grep -q 'No space left' err.tmp || return 1
            head -c 1200000 x.gz >cut.gz
            "$program" -p $workers --cpus=4 -dc cut.gz >out 2>err.tmp && return 1
            grep -q 'unexpected end' err.tmp && cmp -n "$(stat -c %s out)" out long || return 1
            (($(stat -c %s out) > 1000000)) || { echo "only $(stat -c %s out) bytes came out"; return 1; }
        done
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

# What a block makes of the same bytes depends on the block before it, unless it is told not to.
case_dictionary_and_independent_blocks() {
    local tail_of
    seq 1 20000 | head -c 16384 >a
    seq 500000 600000 | head -c 16384 >b
    seq 800000 900000 | head -c 16384 >c
    cat b a a c >aa # a window has 32 KiB, less a little
    cat a b a c >ba
    (($(cc --engine=zlib -nc -b 32 aa | wc -c) + 2000 < $(cc --engine=zlib -inc -b 32 aa | wc -c))) || { echo "no carry-over"; return 1; }
    tail_of() { cc --engine=zlib --raw -c "$@" | tail -c 7000 | md5sum; }
    [[ $(tail_of -i -b 32 aa) == "$(tail_of -i -b 32 ba)" ]] || { echo "not independent"; return 1; }
    [[ $(tail_of -b 32 aa) != "$(tail_of -b 32 ba)" ]]
}

# More tasks than processors, both ways: the same bytes come out whatever the number.
case_any_number_of_workers() {
    local p engine want
    for engine in zlib auto; do
        local args=()
        [[ $engine == zlib ]] && args=(--engine=zlib)
        want=$(cc "${args[@]}" -nc -b 32 -p 1 corpus/size524289 | md5sum)
        for p in 1 2 3 8 40; do
            [[ $(cc "${args[@]}" -nc -b 32 -p $p --cpus $p corpus/size524289 | md5sum) == "$want" ]] || { echo "$engine -p $p"; return 1; }
            cc "${args[@]}" -nc -b 32 corpus/size524289 | cc -dc -p $p --cpus $p | cmp - corpus/size524289 || return 1
        done
    done
    cc -nc -p 1 corpus/text | cmp - <(cc -nc -p 8 --cpus 1 corpus/text)
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

# Odd names, links that lead nowhere or in a loop, links to one file, a pipe: files are done, the rest is left alone.
case_recursion_through_odd_trees() {
    local name names=(' a b ' $'line\nbreak' '-dash' 'quo"te'"'" $'\xff\xfe' 'star*' '.hidden' 'é')
    fresh
    rm d/f
    mkdir -p d/sub/deep "d/ odd dir"
    for name in "${names[@]}"; do echo "$name" >"d/ odd dir/$name"; done
    cp corpus/one d/sub/deep/x
    ln -s .. d/sub/circle
    ln -s nowhere d/sub/dangling
    ln -s deep/x d/sub/to-file
    mkfifo d/sub/pipe
    cp corpus/text d/sub/first && ln d/sub/first d/sub/second
    fails 2 "is a symbolic link" -r d || return 1
    grep -qF 'd/sub/pipe: is not a directory or a regular file' err.tmp && grep -qF 'd/sub/first: has 1 other link' err.tmp || { cat err.tmp; return 1; }
    for name in "${names[@]}"; do
        [[ ! -e "d/ odd dir/$name" ]] && gzip -dc <"d/ odd dir/$name.gz" | cmp - <(echo "$name") || { echo "name $name"; return 1; }
    done
    [[ -f d/sub/deep/x.gz && -L d/sub/circle && -L d/sub/dangling && -L d/sub/to-file && -p d/sub/pipe && ! -e d/sub/to-file.gz ]] || return 1
    same d/sub/first corpus/text && [[ $(stat -c %h d/sub/second) == 2 ]] || return 1
    cc -dr d || return 1
    for name in "${names[@]}"; do [[ $(cat "d/ odd dir/$name") == "$name" ]] || return 1; done
    (cd "d/ odd dir" && "$program" -- -dash && "$program" -d -- -dash.gz && [[ $(cat -- -dash) == -dash ]])
}

# What pigz does with the same arguments: the same files afterwards, and a status that is 0 or not, as its. Left out is where
# we go with gzip: files with other links are not touched, and garbage behind the data is a warning.
case_does_as_pigz_does() {
    [[ -n $pigz ]] || skip "there is no pigz"
    make_twin() {
        rm -rf "$1"
        mkdir -p "$1/sub"
        (
            cd "$1" || exit 1
            seq 1 3000 | tee f g nosuffix sub/x ./-dash >plain.gz
            gzip -nk g
            head -c 3000 g.gz >cut.gz
            cat g.gz g.gz >two.gz
            { cat g.gz; head -c 100 /dev/zero; } >padded.gz
            : | tee empty >nothing.gz
            ln -s f link
            ln -s .. sub/circle
        )
    }
    local args ours theirs
    while read -r args; do
        make_twin ours
        make_twin theirs
        # shellcheck disable=SC2086
        ours=$(cd ours && { "$program" $args >../ours.out 2>/dev/null </dev/null; echo "$(($? != 0)) $(find . | sort | tr '\n' ' ')"; })
        # shellcheck disable=SC2086
        theirs=$(cd theirs && { pigz $args >../theirs.out 2>/dev/null </dev/null; echo "$(($? != 0)) $(find . | sort | tr '\n' ' ')"; })
        [[ $ours == "$theirs" ]] || { printf 'ccpigz %s\n%s\n%s\n' "$args" "$ours" "$theirs"; return 1; }
        [[ $args != *d*c* ]] || cmp ours.out theirs.out || { echo "ccpigz $args"; return 1; }
    done <<'END'
f
-k f
f g
-f g
-c f
-dc g.gz
-d g.gz
-df g.gz
-t g.gz two.gz padded.gz
-t cut.gz
-d cut.gz
-dc cut.gz
link
-f link
-c link
-d link
sub
-r sub
-rk .
empty
-d nothing.gz
-t nothing.gz
plain.gz
-d plain.gz
-dcf plain.gz
-d nosuffix
nosuffix missing f
-l g.gz two.gz
-l plain.gz
-dc two.gz
-dc padded.gz
-- -dash
-S .x f
-z f
-dN g.gz
-d two.gz padded.gz
-q g
-d f
-d sub
-tr .
-b 31 f
-p 0 f
--fast f
--best f
--keep --stdout f
--decompress --stdout g.gz
-i f
-R f
END
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

# Of several members all are counted; of one that is longer than 4 GiB the trailer knows the length modulo 2^32 only.
case_lists_several_members_and_long_ones() {
    cc -c -b 32 corpus/size524289 >m.gz
    gzip -c corpus/one >>m.gz
    cc -l m.gz | tail -n 1 | grep -qE "^ *$(stat -c %s m.gz) +524290 " || { cc -l m.gz; return 1; }
    ((!short)) || skip "several gigabytes are too many here; the rest is fine"
    local size=4296000000 # 4 GiB and a bit
    head -c $size /dev/zero | cc -1 --engine=zlib >long.gz || return 1
    [[ $(tail -c 4 long.gz | od -An -tu4 | tr -d ' ') == $((size % (1 << 32))) ]] || { echo "trailer"; return 1; }
    cc -l long.gz | tail -n 1 | grep -qE " $size " || { cc -l long.gz; return 1; }
    { head -c -4 long.gz; printf '\0\0\0\0'; } >bad.gz
    fails 1 "the length is wrong" -t bad.gz
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

# Every byte of a small file, turned round: said to be bad, or none but the header's words differ.
case_every_byte_of_a_small_file() {
    local n size kind status
    seq 1 60 >small
    head -c 32800 /dev/zero >zeros
    for kind in gzip zlib members; do
        case $kind in
        gzip) cc --engine=zlib -c small >x.gz && cp small plain ;;
        zlib) cc -zc small >x.gz && cp small plain ;;
        members) cc -nc -b 32 zeros >x.gz && cp zeros plain ;;
        esac
        size=$(stat -c %s x.gz)
        for ((n = 0; n < size; n += short ? 7 : 1)); do
            cp x.gz y.gz
            printf "\\x$(printf %02x $((0x$(od -An -tx1 -j "$n" -N 1 x.gz | tr -d ' ') ^ 255)))" | dd of=y.gz bs=1 seek="$n" conv=notrunc 2>/dev/null
            cc -dc y.gz >out 2>err.tmp
            status=$?
            if ((status == 0)); then
                # Time, extra flags, system and name of a header mean nothing to the data; nor does an extra field.
                same out plain && [[ $kind == members || ($kind == gzip && n -ge 4 && n -lt 16) ]] || { echo "$kind, byte $n: not noticed"; return 1; }
            elif ((status > 2)) || [[ ! -s err.tmp ]]; then
                echo "$kind, byte $n: status $status, $(cat err.tmp)"
                return 1
            fi
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

# A file system that is really full: the error says so, and what was there is there.
case_full_file_system() {
    fresh
    [[ $(id -u) == 0 ]] && mount -t tmpfs -o size=160k none d 2>/dev/null || skip "no file system can be mounted here"
    head -c 120000 corpus/random >d/r
    fails 1 "d/r.gz: cannot write: No space left" d/r && no_rest r && cmp -n 120000 d/r corpus/random
    local status=$?
    rm -f d/*
    if ((status == 0)); then
        gzip -c corpus/zeros >d/z.gz
        fails 1 "d/z: cannot write: No space left" -d d/z.gz && no_rest z.gz
        status=$?
    fi
    umount d
    return $status
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

# interrupted SIGNAL WAY COMMAND...: starts it on a file that takes long, waits until it has opened its output, ends it by the
# signal. It dies of it, the input is as it was, and nothing else is there.
interrupted() {
    local name=$1 way=$2 input number before
    shift 2
    number=$(kill -l "$name")
    fresh
    rm d/f
    if [[ $way == compress ]]; then
        input=big
        truncate -s 4G d/big # a hole: it takes no room, and minutes
        set -- "$@" "$program" -9 -p 1 --engine=zlib d/big
    else
        input=big.gz
        [[ -f big.gz ]] || { head -c 64M /dev/zero | gzip -c >one.gz && for _ in $(seq 1 200); do cat one.gz; done >big.gz; }
        cp big.gz d/big.gz # 12.5 GiB
        set -- "$@" "$program" -d d/big.gz
    fi
    before=$(stat -c '%s %Y %i' "d/$input")
    "$@" 2>/dev/null &
    local pid=$! opened=0
    while kill -0 "$pid" 2>/dev/null; do
        if find "/proc/$pid/fd" -lname '*/d/*' ! -lname "*/d/$input" 2>/dev/null | grep -q .; then
            opened=1
            kill -"$name" "$pid"
            break
        fi
    done
    wait "$pid" 2>/dev/null
    local status=$?
    ((opened)) || { echo "it was over too soon"; return 1; }
    ((status == 128 + number)) && no_rest $input && [[ $(stat -c '%s %Y %i' "d/$input") == "$before" ]] || { echo "$name, $way: status $status"; return 1; }
}

case_interrupted() {
    ! has_sanitizer tsan || skip "the thread sanitizer holds a signal back while its thread waits in the kernel"
    local name
    # A shell's background jobs ignore SIGINT, and what was ignored before stays so; env makes it the default again.
    for name in TERM HUP INT; do
        interrupted $name compress env --default-signal=INT || return 1
        interrupted $name decompress env --default-signal=INT || return 1
    done
    interrupted TERM compress nohup env
}

# A signal at every call that makes, changes, names or removes a file: before and after each of them there is the whole input
# or the whole output, and nothing else. FILE_CALLS=1: without files that have no name.
case_interrupted_at_every_step() {
    ! has_sanitizer 'asan|tsan' || skip "a sanitizer wants to be loaded before everything else"
    cat >killer.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static atomic_int steps;
static void step(void) {
    const char *at = getenv("KILL_AT");
    if (at != NULL && atomic_fetch_add(&steps, 1) + 1 == atoi(at)) raise(atoi(getenv("KILL_BY")));
}
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRAP(name, parameters, ...) \
    int name parameters { step(); int rc = REAL(name)(__VA_ARGS__); int e = errno; step(); errno = e; return rc; }
WRAP(linkat, (int a, const char *b, int c, const char *d, int f), a, b, c, d, f)
WRAP(link, (const char *a, const char *b), a, b)
WRAP(rename, (const char *a, const char *b), a, b)
WRAP(unlink, (const char *a), a)
WRAP(fchmod, (int a, mode_t b), a, b)
WRAP(futimens, (int a, const struct timespec b[2]), a, b)
WRAP(mkostemp, (char *a, int b), a, b)
ssize_t write(int fd, const void *data, size_t size) {
    if (fd > 2) step();
    ssize_t n = REAL(write)(fd, data, size);
    if (fd > 2) step();
    return n;
}
int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = va_arg(args, mode_t);
    va_end(args);
    if ((flags & O_TMPFILE) == O_TMPFILE && getenv("FILE_CALLS") != NULL) return errno = EOPNOTSUPP, -1;
    return REAL(open)(path, flags, mode);
}
END
    gcc -shared -fPIC -w -o killer.so killer.c -ldl 2>/dev/null || skip "there is no gcc"
    local n by named existing status found
    for named in "" 1; do
        for existing in 0 1; do
            by=(15 1 2)
            for ((n = 1; n < 200; n++)); do
                fresh
                ((existing)) && echo precious >d/f.gz
                env --default-signal=INT LD_PRELOAD="$work/killer.so" KILL_AT=$n KILL_BY="${by[n % 3]}" ${named:+FILE_CALLS=1} \
                    "$program" -f d/f 2>/dev/null
                status=$?
                found=$(cd d && find . -mindepth 1 -printf '%P\n' | sort | tr '\n' ' ')
                case $found in
                "f ") ;;
                "f.gz " | "f f.gz ") ;;
                *) echo "step $n, status $status: $found"; return 1 ;;
                esac
                [[ ! -e d/f ]] || same d/f corpus/text || return 1
                if [[ -e d/f.gz ]] && ! gzip -dc d/f.gz 2>/dev/null | cmp -s - corpus/text; then
                    ((existing)) && [[ -e d/f && $(cat d/f.gz) == precious ]] || { echo "step $n: half a file"; return 1; }
                fi
                ((status == 0)) && break
                ((status == 128 + by[n % 3])) || { echo "step $n: status $status"; return 1; }
            done
            ((n > 8 && n < 200)) || { echo "only $n steps"; return 1; }
        done
    done
}

# preload NAME: builds NAME.so from the C text on standard input, to be loaded before the program.
preload() {
    ! has_sanitizer 'asan|tsan' || skip "a sanitizer wants to be loaded before everything else"
    cat >"$1.c"
    gcc -shared -fPIC -o "$1.so" "$1.c" 2>/dev/null || skip "there is no gcc"
}

# The same where files without a name are not to be had; and what has failed leaves nothing behind there either.
case_interrupted_with_a_temporary_name() {
    preload no_tmpfile <<'END'
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
    interrupted TERM compress env LD_PRELOAD="$work/no_tmpfile.so" && interrupted HUP decompress env LD_PRELOAD="$work/no_tmpfile.so" || return 1
    fresh
    LD_PRELOAD="$work/no_tmpfile.so" "$program" d/f && no_rest f.gz && gzip -dc d/f.gz | cmp - corpus/text || return 1
    cp corpus/text d/f
    LD_PRELOAD="$work/no_tmpfile.so" fails 2 "already exists" d/f && no_rest f f.gz && LD_PRELOAD="$work/no_tmpfile.so" "$program" -f d/f && no_rest f.gz || return 1
    cp corpus/random d/r
    (
        trap '' XFSZ
        ulimit -f 16
        LD_PRELOAD="$work/no_tmpfile.so" fails 1 "File too large" d/r
    ) && no_rest f.gz r
}

# The second block cannot be read: nothing of the file is taken for the whole.
case_input_that_fails() {
    preload bad_disk <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>
static int is_bad(size_t n) {
    static int blocks;
    return n >= 32768 && ++blocks > 1;
}
ssize_t read(int fd, void *to, size_t n) {
    if (is_bad(n)) return errno = EIO, -1;
    return ((ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read"))(fd, to, n);
}
ssize_t readv(int fd, const struct iovec *parts, int count) {
    if (is_bad(parts[0].iov_len)) return errno = EIO, -1;
    return ((ssize_t(*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "readv"))(fd, parts, count);
}
END
    fresh
    cp corpus/random d/r
    LD_PRELOAD="$work/bad_disk.so" fails 1 "d/r: cannot read: Input/output error" --engine=zlib -b 32 d/r && no_rest f r || return 1
    LD_PRELOAD="$work/bad_disk.so" fails 1 "d/r: cannot read: Input/output error" -b 32 -p 3 d/r && no_rest f r || return 1
    cc d/r
    LD_PRELOAD="$work/bad_disk.so" fails 1 "Input/output error" -d d/r.gz && no_rest f r.gz
}

# What is small is done without any thread but the first one; what is not says why it cannot be done.
case_small_files_start_no_threads() {
    preload no_threads <<'END'
#include <errno.h>
#include <pthread.h>
int pthread_create(pthread_t *a, const pthread_attr_t *b, void *(*c)(void *), void *d) {
    (void)a, (void)b, (void)c, (void)d;
    return EAGAIN;
}
END
    alone() { LD_PRELOAD="$work/no_threads.so" "$program" -p 2 "$@"; }
    local file engine engines=zlib i
    "$program" -V | grep -q libdeflate && engines+=" libdeflate"
    head -c 100000 corpus/text >small
    for file in small corpus/empty corpus/one; do
        for engine in $engines; do
            alone --engine=$engine -c $file >x.gz && gzip -dc <x.gz | same - $file || return 1
            alone -dc x.gz | same - $file || return 1
            cat x.gz | alone -d | same - $file || return 1
        done
    done
    head -c 3000000 /dev/urandom >large # nothing but stored blocks
    gzip -c large >x.gz
    alone -dc x.gz | same - large || return 1
    # -p 1 uses one CPU, for pipes and members too.
    alone -p 1 -c large >x.gz && gzip -dc <x.gz | same - large || return 1
    for ((i = 0; i < 20; i++)); do cat corpus/text; done >long
    for engine in $engines; do
        cat long | alone -p 1 --engine=$engine -c | cat >x.gz && gzip -dc <x.gz | same - long || return 1
        cat x.gz | alone -p 1 -d | same - long || return 1
    done
    # Only one can decode this, and nothing is written.
    for ((i = 0; i < 40; i++)); do cat corpus/text corpus/random; done | gzip -1 -c >x.gz
    alone -t x.gz || return 1
    LD_PRELOAD="$work/no_threads.so" fails 1 "cannot start: Resource temporarily unavailable" -p 2 -kf large || return 1
    [[ ! -e large.gz ]]
}

case_only_public_headers() {
    ! grep -nE '#include "[^"]*/' "$here"/../../apps/ccpigz/*.[ch]
}

# ---- run them ----

pigz=$(command -v pigz || true)
make_corpus
run_cases "$word"
