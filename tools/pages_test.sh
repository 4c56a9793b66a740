#!/usr/bin/env bash
# pages_test.sh - check-names.sh, check-rules.sh and check-format.sh notice what they are for: each on a small tree with a fault in it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# A tree without faults.
fresh() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree"/{src/room,include/ccc,docs,tests/unit}
    cp "$here/../.clang-format" "$work/tree/"
    cd "$work/tree" || exit 1
    printf '/* room.c - one room.\n *\n * ROOM-1  Everything is counted.\n * ROOM-2  Nothing is lost.\n */\n' >src/room/room.c
    printf 'static int counted;\n\nint cc__room_count(void) {\n    /* ROOM-1 */\n    return getenv("CC_ROOMS") ? counted : 0; /* ROOM-2 */\n}\n' >>src/room/room.c
    printf '/* Any context. */\nint cc_rooms(void);\n' >include/ccc/cc_rooms.h
    printf '# Room\n\n`cc__room_count` in `room/room.c` counts (`counted`, ROOM-1..2); see `CC_ROOMS`,\n`src/*/room.c` and `cc_rooms()`.\n' >src/room/README.md
    printf '# Hacking\n\n| `ROOM-` | `room/` | rooms |\n' >HACKING.md
}
# expect SCRIPT TEXT: it fails, and says the text; without TEXT it says nothing.
expect() {
    local out status
    out=$("$here/$1" "$work/tree" 2>&1)
    status=$?
    out=$(grep -v 'names.allow:' <<<"$out") # of the real tree
    if [[ -z ${2:-} ]] && ! [[ $out =~ [a-z] ]]; then return; fi
    if [[ -n ${2:-} && $status != 0 && $out == *"$2"* ]]; then return; fi
    echo "FAILED: $1 should say '${2:-nothing}', but says (status $status):"
    sed 's/^/    /' <<<"$out"
    failed=1
}

fresh
expect check-names.sh
expect check-rules.sh
expect check-format.sh

echo 'The word `cc__room_size` is gone.' >>src/room/README.md
expect check-names.sh 'src/room/README.md:5: `cc__room_size` is not in the code'
fresh
sed -i 's/counted;/number;/; s/? counted/? number/' src/room/room.c
expect check-names.sh 'src/room/README.md:3: `counted` is not in the code'
fresh
mv src/room/room.c src/room/house.c
expect check-names.sh 'there is no file `room/room.c`'
expect check-names.sh 'there is no file `src/*/room.c`'
fresh
sed -i 's/CC_ROOMS/CC_HALLS/' src/room/room.c
expect check-names.sh '`CC_ROOMS` is not in the code'
fresh
echo '/* As cc_halls does. */' >>include/ccc/cc_rooms.h
expect check-names.sh 'include/ccc/cc_rooms.h:3: `cc_halls` is nowhere in the code'
fresh
printf 'Two lines hold `one\nspan cc__gone`.\n' >docs/page.md
expect check-names.sh 'docs/page.md:1: `cc__gone` is nowhere in the code'

fresh
printf '[room](../src/room/README.md), [gone](../src/gone.md)\n' >docs/page.md
expect check-names.sh 'docs/page.md:1: the link leads to `src/gone.md`, which does not exist'
fresh
sed -i 's/ROOM-2  Nothing/ROOM-1  Nothing/' src/room/room.c
expect check-rules.sh 'src/room/room.c:4: ROOM-1 is defined in src/room/room.c:3, too'
expect check-rules.sh 'ROOM-2 is cited, but no comment defines it'
fresh
sed -i 's|/\* ROOM-2 \*/||' src/room/room.c
sed -i 's/ROOM-1..2/ROOM-1/' src/room/README.md
expect check-rules.sh 'src/room/room.c:4: ROOM-2 is defined, but nothing cites it'
fresh
echo 'See HALL-7.' >>src/room/README.md
expect check-rules.sh 'src/room/README.md:5: HALL-7 is cited'
fresh
sed -i '$d' HACKING.md
expect check-rules.sh 'the table of rules lacks ROOM-'
fresh
sed -i 's/`ROOM-`/`ROOM-`, `HALL-`/' HACKING.md
expect check-rules.sh 'no rule HALL-1 is defined anywhere'
fresh
sed -i 's|`room/`|`hall/`|' HACKING.md
expect check-rules.sh 'ROOM- is defined in src/room/room.c, which the table does not say'

fresh
printf 'int  odd( void );\n' >>src/room/room.c
[[ $(clang-format-14 --version 2>/dev/null || clang-format --version) != *'version 14'* ]] ||
    expect check-format.sh 'src/room/room.c:12: is not formatted'
fresh
printf '/* %s */\n' "$(printf 'word %.0s' {1..30})" >>src/room/room.c
expect check-format.sh 'src/room/room.c:12: the comment reaches column'
exit $failed
