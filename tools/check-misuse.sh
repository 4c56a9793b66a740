#!/usr/bin/env bash
# check-misuse.sh - docs/misuse.md and the tests: every test that it names exists, every number of tests/refused is named,
# and every sentence of a panic is in the test that is named beside it.
set -u
cd "$(dirname "$0")/.." || exit 1
page=docs/misuse.md
awk -v page="$page" '
    function text_of(path,   line, text) {
        if (!(path in known)) {
            while ((getline line <("tests/" path)) > 0) text = text "\n" line
            close("tests/" path)
            known[path] = text
        }
        return known[path]
    }
    function complain(what) { print page ":" NR ": " what; bad = 1 }
    /^## / { part = $0 }
    /^\|/ && /`(refused|unit|programs)\// {
        fields = split($0, field, / *\| */)
        sentence = part ~ /sentence/ ? field[3] : ""
        tests = split(field[fields - 1], test, /, */)
        for (i = 1; i <= tests; i++) {
            if (split(test[i], word, / /) != 2) { complain("no test: " test[i]); continue }
            path = word[1]; gsub(/`/, "", path)
            text = text_of(path)
            if (text == "") { complain("there is no tests/" path); continue }
            wanted = path ~ /^refused/ ? "REFUSED == " word[2] "[^0-9]" : "[^a-z_]" word[2] "[^a-z_]"
            if ((text "\n") !~ wanted) complain("tests/" path " has no " word[2])
            if (sentence != "" && index(text, sentence) == 0 && system("grep -rqF -- \"" sentence "\" src") != 0) complain("nobody says: " sentence)
            if (named[path " " word[2]]++ && path ~ /^refused/) complain(path " " word[2] " is named twice")
        }
    }
    END {
        while (("ls tests/refused/*.h" | getline file) > 0) {
            path = substr(file, 7)
            text = text_of(path)
            while (match(text, /REFUSED == [0-9]+/)) {
                number = substr(text, RSTART + 11, RLENGTH - 11)
                text = substr(text, RSTART + RLENGTH)
                if (!((path " " number) in named)) { print page ": tests/" path " " number " is not named"; bad = 1 }
            }
        }
        exit bad
    }' "$page"
