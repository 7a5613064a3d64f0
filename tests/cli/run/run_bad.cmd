# what cannot be run, and why
bad() { longhaul run "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
small="--model longhaul-3m --seq 64"
bad --seq 64
bad --model longhaul-3m
bad $small --backend cuba
bad $small --gpus 3 --hp 2
bad $small --nodes 2
bad $small --set vocab=100 --data $S/LICENSE
echo too short > $T/short
bad $small --data $T/short
bad $small --copy-rate 8
bad $small --cupti -o $T/trace
bad $S/tests/schedule/example.ir --check | head -n 1
bad $S/tests/schedule/example.ir --seq 64
# too large for any machine of today; its own figure is cut out
bad --model llama3-70b --seq 1M --gpus 64 | sed 's/this machine has.*GiB/this machine has N GiB/'
# a step that takes too long ends with where it was
bad --model longhaul-3m --seq 4K --timeout 0.05 | sed 's/ op [0-9]* (.*/ op N/'
# what a run refuses whatever its value is not in its help, and a launch file does not give it
for option in costs framework at-most measured; do
    bad $small --$option adapter
    longhaul help run | grep -e "--$option " || true
done
longhaul help --man | tr '\n' ' ' | grep -o 'cluster: as of predict, but for [^.]*measured' | tr -d '\\'
longhaul run --from $S/tests/data/launch/axolotl-llama3-70b-qlora.yaml --model longhaul-3m --gpus 1 --batch 1 --steps 1 2> $T/note | cut -d ';' -f 1 | grep '^ran'
