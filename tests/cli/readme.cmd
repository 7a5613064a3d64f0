# What README.md prints is what the program prints, as a terminal of 116 columns wraps it; UPDATE_GOLDEN=1 writes it there.
# docs_nightly.cmd has what takes longer.
wrap() {
    awk 'function put(text, at) {
            for (; length(text) > 112; text = "           " substr(text, at + 1)) {
                for (at = 113; substr(text, at, 1) != " "; at--);
                print substr(text, 1, at - 1)
            }
            print text
        }
        /^           / && wide { sub(/^ */, " "); kept = kept $0; next }
        NR > 1 { put(kept) }
        { kept = $0; wide = length($0) > 110 }
        END { put(kept) }'
}
command=$(sed -n 's/^    \$ \(longhaul predict .*\)/\1/p' $S/README.md)
sh -c "$command" | wrap | sed 's/^/    /' > $T/got
test -s $T/got
if test "$UPDATE_GOLDEN" = 1; then
    awk -v got=$T/got '/^    \$ longhaul predict / { print; while ((getline line < got) > 0) print line; skip = 1; next }
        !/^    / { skip = 0 } !skip' $S/README.md > $T/README.md
    cp $T/README.md $S/README.md
fi
sed -n '/^    \$ longhaul predict /,/^$/p' $S/README.md | sed '1d; $d' | diff - $T/got && echo "the first prediction"
longhaul sweep --cluster fpdt-a100-80g --gpus 4 --seq 256K --strategy fpdt --profile published --vary model=gpt-2.7b,gpt-6.7b --vary chunk=256K -o $T/chunks.csv 2> $T/note | grep '^best' > $T/best
grep -F "    $(cat $T/best)" $S/docs/sweeping.md > $T/note && echo "the best chunk"
