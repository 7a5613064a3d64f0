#!/usr/bin/env bash
# calls.sh SOURCE BUILD: fails if sources call each other in a circle. Each object names the symbols that it defines and
# those that it takes from others (nm); tsort names the members of a circle.
set -euo pipefail
source=$1
cd "$2/CMakeFiles"
objects=$(mktemp) pairs=$(mktemp) loops=$(mktemp)
trap 'rm -f "$objects" "$pairs" "$loops"' EXIT

for layer in base traces models schedule sim exec predict cli; do
    find . -path "./*.dir/$layer/*" -name '*.o'
done | sort | while IFS= read -r object; do
    file=${object#./*.dir/}
    # an object outlives a source that was moved
    if [ -e "$source/${file%.o}" ]; then printf '%s\n' "$object"; fi
done > "$objects"
if [ ! -s "$objects" ]; then
    echo "no objects found below '$2/CMakeFiles'" >&2
    exit 1
fi

xargs nm -A -P < "$objects" | awk '
    { sub(/^\.\/[^\/]*\.dir\//, "", $1); sub(/\.o:$/, "", $1); file[NR] = $1; symbol[NR] = $2; type[NR] = $3 }
    $3 ~ /^[TDBRCVW]$/ { definer[$2] = $1 }
    END {
        for (i = 1; i <= NR; i++)
            if (type[i] ~ /^[Uvw]$/ && symbol[i] in definer && definer[symbol[i]] != file[i])
                print file[i], definer[symbol[i]]
    }' | sort -u > "$pairs"

if ! tsort "$pairs" > /dev/null 2> "$loops"; then
    echo "sources that call each other in a circle:" >&2
    cat "$loops" >&2
    exit 1
fi
echo "$(wc -l < "$objects") sources, $(wc -l < "$pairs") pairs of which one calls the other, no circle"
