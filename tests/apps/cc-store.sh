#!/usr/bin/env bash
# cc-store.sh PROGRAM - three nodes on Unix sockets that are killed repeatedly: no acknowledged write is lost.
set -u
store=$1
work=$(mktemp -d)
where=("unix:$work/0" "unix:$work/1" "unix:$work/2")
pids=()
number=0 failed=0

start() {
    "$store" serve "$work/d$1" "$1" "${where[@]}" 2>>"$work/log$1" &
    pids[$1]=$!
}
kill_node() {
    kill -9 "${pids[$1]}" 2>/dev/null
    wait "${pids[$1]}" 2>/dev/null
}
finish() {
    for i in 0 1 2; do kill_node "$i"; done
    rm -rf "$work"
}
trap finish EXIT

check() { # NAME STATUS
    number=$((number + 1))
    if [ "$2" -eq 0 ]; then echo "ok $number - $1"; else
        echo "not ok $number - $1"
        cat "$work"/log* 2>/dev/null | sed 's/^/# /' | tail -20
        failed=1
    fi
}

for i in 0 1 2; do start "$i"; done
"$store" put colour blue "${where[@]}"
check "a value is stored" $?
[ "$("$store" get colour "${where[@]}")" = blue ]
check "and read again" $?
"$store" get shape "${where[@]}"
[ $? -eq 1 ]
check "a key that is not there" $?

"$store" count "${STORE_COUNT:-40}" "${where[@]}" >"$work/counted" 2>&1 &
counter=$!
for round in 1 2 3; do
    for i in 0 1 2; do
        kill_node "$i"
        start "$i"
        sleep 0.3
    done
done
wait "$counter"
status=$?
[ $status -eq 0 ] || sed 's/^/# /' "$work/counted"
check "nothing acknowledged is lost while nodes are killed" $status
for i in 0 1 2; do kill_node "$i"; done
for i in 0 1 2; do start "$i"; done
[ "$("$store" get colour "${where[@]}")" = blue ]
check "a value survives the death of all" $?
"$store" nonsense 2>/dev/null
[ $? -eq 2 ]
check "usage" $?
echo "1..$number"
exit $failed
