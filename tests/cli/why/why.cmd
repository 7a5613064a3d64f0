# what filled memory; with a configuration, what would have fitted
snapshot=$S/tests/data/snapshots/oom.pickle
longhaul why $snapshot
# what PyTorch itself wrote, beside what its message said: 256 MiB asked for, 44 free, 671.24 allocated, 244.76 unallocated
longhaul why $S/tests/data/snapshots/recorded.pickle
longhaul why $S/tests/data/snapshots/recorded.pickle --json | head -11
# places are lines of Python where a stack has any: the model's first, then the framework's
longhaul why $S/tests/data/snapshots/sites.pickle | sed -n '/^allocated at/,/^$/p'
run="--profile published --model llama3-8b --cluster dgx-a100 --gpus 8 --seq 256K --zero 1"
longhaul why $snapshot $run --top 100 > $T/ranked
sed -n 's/^\(needed\|step\|would have fitted\) .*/\1/p' $T/ranked
grep -o '^--loss-chunks 8 ' $T/ranked
sed -n 's/.* \([-+][0-9.]*\) % *[0-9.]*$/\1/p' $T/ranked | sort -g -c && echo "the fastest first"
longhaul why $snapshot $run --top 2 --json | grep -v '[0-9][.][0-9]' | grep -v predicted | sed -n '1,16p'
longhaul why $snapshot --model llama3-8b --cluster dgx-a100 --gpus 1 --seq 4M > $T/out || echo "exit $?"
sed -n '$ s/of [0-9]* options/of N options/p' $T/out
# our own predictions as snapshots
longhaul predict --model internlm-7b-mha --cluster loongtrain-a100 --gpus 8 --seq 64K --quick -o $T/p --emit-snapshot --emit-chakra > $T/note
longhaul predict --model internlm-7b-mha --cluster loongtrain-a100 --gpus 8 --seq 64K --quick -o $T/q --emit-snapshot --emit-chakra > $T/note
ls $T/p
for file in snapshot.pickle chakra.0.et chakra.7.et; do cmp $T/p/$file $T/q/$file; done
arena=$(sed -n 's/# arena_bytes.hbm=//p' $T/p/memory.csv)
longhaul why $T/p/snapshot.pickle --json | grep -q "\"reserved_bytes\": $arena," && echo "the segment is the arena"
peak=$(sed -n 's/.*"peak_bytes": \(.*\),/\1/p' $T/p/prediction.json)
longhaul why $T/p/snapshot.pickle --json | grep -q "\"active_bytes\": $peak," && echo "its blocks are the peak"
head -c 33 $T/p/chakra.0.et | tail -c 26 | tr -c 'a-z0-9. _' '?'; echo
bad() { longhaul "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
bad why $T/none
bad why $T/p/ops.csv
head -c 1000 $snapshot > $T/cut
bad why $T/cut
bad why $S/tests/fuzz/corpus/pickle/class
printf '\200\002]q\000.' > $T/empty
bad why $T/empty
printf '\200\002}q\000.' > $T/dict
bad why $T/dict
bad why $snapshot --model llama3-8b
bad predict --emit-chakra
printf '\200\002]q\000}q\001(X\012\000\000\000total_sizeq\002K\001X\006\000\000\000blocksq\003]q\004}q\005(X\004\000\000\000sizeq\006M\000\002X\005\000\000\000stateq\007X\020\000\000\000active_allocatedq\010uaua.' > $T/short
bad why $T/short
printf '\200\002]q\000}q\001X\004\000\000\000sizeq\002K\001sa.' > $T/bare
bad why $T/bare
