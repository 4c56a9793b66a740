#!/usr/bin/env bash
# check-format.sh [ROOT] - C files look as clang-format makes them, and comments stay within its column limit, which it leaves alone.
#
# The versions of clang-format differ in details, so only version 14 counts; CLANG_FORMAT names the program. With another version
# only the comments are checked. Exits with 1 after listing what is wrong, as FILE:LINE: what to do.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1
program=${CLANG_FORMAT:-$(command -v clang-format-14 || command -v clang-format)}
[[ -n $program ]] || { echo "clang-format is not installed: apt-get install clang-format-14"; exit 1; }
version=$("$program" --version | sed -n 's/.*version \([0-9]*\).*/\1/p')
folders=()
for folder in src include posix tls tests bench examples apps; do [[ -d $folder ]] && folders+=("$folder"); done
limit=$(sed -n 's/^ColumnLimit: *//p' .clang-format)
status=0 wrong=
if [[ $version != 14 ]]; then
    echo "note: this is clang-format $version, and the tree is formatted by version 14: only comments are checked"
else
    wrong=$(find "${folders[@]}" \( -name '*.[ch]' -o -name '*.[ch]pp' \) -print0 | LC_ALL=C sort -z | xargs -0 -P 2 -n 60 "$program" --dry-run -Werror 2>&1 |
        sed -n 's/^\([^: ]*:[0-9]*\):[0-9]*: error: .*/\1/p' | LC_ALL=C sort -u -t: -k1,1 -k2,2n | awk -F: '!seen[$1]++')
fi
if [[ -n $wrong ]]; then
    sed "s|\$|: is not formatted: run make format, or $(basename "$program") -i on this file|" <<<"$wrong"
    status=1
fi
# By characters. A comment is what stands after /* up to */; a line of code alone is clang-format's affair.
long=$(find "${folders[@]}" \( -name '*.[ch]' -o -name '*.[ch]pp' \) -print0 | LC_ALL=C sort -z | LC_ALL=C xargs -0 awk -v limit="$limit" '
    FNR == 1 { inside = 0 }
    {
        line = $0
        gsub(/[\200-\277]/, "", line) # of a character of UTF-8 only the first byte counts
        comment = inside
        rest = $0
        while (rest != "") {
            if (inside) { if ((at = index(rest, "*/")) == 0) break; inside = 0 }
            else { if ((at = index(rest, "/*")) == 0) break; inside = 1; comment = 1 }
            rest = substr(rest, at + 2)
        }
        if (comment && length(line) > limit) print FILENAME ":" FNR ": the comment reaches column " length(line) ": break it before " limit + 1
    }')
if [[ -n $long ]]; then
    echo "$long"
    status=1
fi
exit $status
