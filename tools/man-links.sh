#!/bin/sh
# man-links.sh FOLDER PAGE... - for every function and macro in the NAME or SYNOPSIS section of a page a file in FOLDER that sends
# man(1) to the page: with it `man cc_chan_send` shows cc_channel(3).
set -eu
folder=$1
shift
rm -rf "$folder"
mkdir -p "$folder"
for page; do
    name=$(basename "$page" .3)
    sed -n '/^\.Sh DESCRIPTION/q; s/^\.\(Nm\|Fn\|Fo\) "\{0,1\}\([A-Za-z_][A-Za-z_0-9]*\).*/\2/p' "$page" | while read -r call; do
        [ "$call" = "$name" ] || echo ".so man3/$name.3" >"$folder/$call.3"
    done
done
