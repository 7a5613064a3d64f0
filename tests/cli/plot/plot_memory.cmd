# FPDT, Fig. 13: the backward of one block in 2, 4 and 8 chunks, on one another; docs/plotting.md
for pair in 64K:2 32K:4 16K:8; do
    longhaul predict --model llama3-8b --cluster fpdt-a100-80g --nodes 1 --gpus 4 --strategy fpdt --profile published --seq 128K --chunk ${pair%:*} --scope layer -o "$T/${pair#*:} chunks" > $T/note
done
longhaul plot memory "$T/2 chunks" "$T/4 chunks" "$T/8 chunks" --window backward:layer=0 -o $T/f.svg
sed -n 's/.*<text>\([^<]*\)<.*/\1/p' $T/f.svg | grep '[a-z]' | sed 's/: [0-9.]* GiB//'
for f in $T/f.svg $S/docs/pictures/chunk-memory.svg; do grep -o '[248] chunks: [0-9.]* GiB' $f | sort -u > $T/peaks.$(basename $f); done
cmp $T/peaks.f.svg $T/peaks.chunk-memory.svg && echo "as in the document"
cp $T/f.svg $T/once.svg && longhaul plot memory "$T/2 chunks" "$T/4 chunks" "$T/8 chunks" --window backward:layer=0 -o $T/f.svg && cmp $T/f.svg $T/once.svg
# more chunks, less memory; what is drawn is what the trace has between the window's ends
longhaul plot memory "$T/2 chunks" "$T/4 chunks" "$T/8 chunks" --window backward:layer=0 -o $T/data
awk 'BEGIN { n = 0 } NF == 0 { n += 0.5; next } { split($0, f, ","); if (f[2] > top[n]) top[n] = f[2]; if (f[1] + 0 < last[n]) back++; last[n] = f[1] + 0 }
    END { print n + 1, "traces,", (top[0] > 1.1 * top[1] && top[1] > 1.05 * top[2] ? "each lower than the one before" : top[0] " " top[1] " " top[2]) ",", back + 0, "steps back" }' $T/data/data.csv
grep -v '^#' "$T/4 chunks/ops.csv" | awk -F, '$1 == 0 && $5 == "backward" && $7 == 0 { if (from == "" || $10 < from) from = $10; if ($11 > to) to = $11 }
    END { print from, to }' CONVFMT=%.17g OFMT=%.17g > $T/ends
read from to < $T/ends
longhaul plot memory "$T/4 chunks" --window backward:layer=0 -o $T/by-ops
longhaul plot memory "$T/4 chunks" --from $from --to $to -o $T/by-time
cmp $T/by-ops/data.csv $T/by-time/data.csv && echo "a window by ops is one by time"
longhaul plot timeline "$T/4 chunks" --window backward:chunk=2..3 -o $T/f.png && head -c 4 $T/f.png | tail -c 3
echo
longhaul plot memory "$T/4 chunks" --window op=100 -o $T/f.svg

bad() { longhaul plot "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
bad timeline "$T/2 chunks" "$T/4 chunks" -o $T/f.svg
bad memory "$T/2 chunks/memory.csv" --window backward -o $T/f.svg
bad memory "$T/2 chunks" --window backward --from 1 -o $T/f.svg
for window in backwards backward:layer=3 layer=x layer=2..1 layer=1:layer=2 backward:forward : op=99999999999999999999 kind=matmul; do
    bad memory "$T/2 chunks" "$T/4 chunks" --window $window -o $T/f.svg
done
bad memory "$T/2 chunks" $T/none -o $T/f.svg
