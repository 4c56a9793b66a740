# cases.sh - sourced by the scripts of this folder, before they enter a folder of their own: runs their cases; TAP.
#
# A case is a function case_NAME: it succeeds, or fails and its output is shown, or exits with 77 and a reason.
# shellcheck shell=bash
# ends STATUS TEXT ARGS...: $program exits with that status, and prints the text. `matches`: grep's option for the text.
matches=-F
ends() {
    local want=$1 text=$2 status
    shift 2
    timeout 120 "$program" "$@" >out.tmp 2>&1 </dev/null
    status=$?
    if ((status != want)) || ! grep -q "$matches" -- "$text" out.tmp; then
        echo "$(basename "$program") $*: status $status instead of $want, or no '$text' in: $(cat out.tmp)"
        return 1
    fi
}

# Whether `go tool trace` is there, and reads the traces of Go 1.22 as text; if not it says why.
have_go_trace() {
    local version
    command -v go >/dev/null || { echo 'go is not installed: nobody but cc-trace has read the traces'; return 1; }
    version=$(go version | sed -n 's/^go version go1\.\([0-9]*\).*/\1/p')
    ((${version:-99} >= 23)) || { echo "go is 1.$version, and reads no such traces before 1.23: nobody but cc-trace has read them"; return 1; }
}

# Called at the end of each case, however it ends; a script may have its own.
after_case() { :; }

# run_cases WORD: those whose name contains it, each in a shell of its own. Ends the script.
run_cases() {
    local name number=0 failed=0
    for name in $(declare -F | sed -n 's/^declare -f case_//p'); do
        [[ $name == *"$1"* ]] || continue
        number=$((number + 1))
        (trap after_case EXIT && "case_$name") >log.tmp 2>&1 </dev/null
        case $? in
        0) echo "ok $number - $name" ;;
        77) echo "ok $number - $name # SKIP $(tail -n 1 log.tmp)" ;;
        *)
            failed=1
            echo "not ok $number - $name"
            sed 's/^/# /' log.tmp
            ;;
        esac
    done
    echo "1..$number"
    exit "$failed"
}
