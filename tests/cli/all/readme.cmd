# What README.md prints is what the program prints on a terminal of 96 columns; UPDATE_GOLDEN=1 writes it there.
# docs_nightly.cmd has what takes longer.
on_terminal() { # COMMAND
    NO_COLOR=1 script -qec "stty cols 96; $1 2> $T/note" /dev/null < /dev/null | tr -d '\r'
}
command=$(sed -n 's/^    \$ \(longhaul predict .*\)/\1/p' $S/README.md)
on_terminal "$command" | sed 's/^./    &/' > $T/got
test -s $T/got
if test "$UPDATE_GOLDEN" = 1; then
    awk -v got=$T/got '/^    \$ longhaul predict / { print; while ((getline line < got) > 0) print line; skip = 1; next }
        /^[^ ]/ { if (skip) print ""; skip = 0 } !skip' $S/README.md > $T/README.md
    cp $T/README.md $S/README.md
fi
sed -n '/^    \$ longhaul predict /,/^[^ ]/p' $S/README.md | sed '1d; $d' | sed '$d' | diff - $T/got && echo "the first prediction"
longhaul sweep --cluster fpdt-a100-80g --gpus 4 --seq 256K --strategy fpdt --profile published --vary model=gpt-2.7b,gpt-6.7b --vary chunk=256K -o $T/chunks.csv 2> $T/note | grep '^Fastest' > $T/best
while read -r line; do grep -qF "    $line" $S/docs/sweeping.md || echo "docs/sweeping.md lacks $line"; done < $T/best && echo "the best chunk"
