# Faults put into a simulated step on purpose are named first: a rank whose kernels take 20 % longer, NICs at half
# rate, copies that hold the host.
first() { longhaul compare "$@" --explain | sed -n '/share  cause/{n;p;}' | sed 's/^ *[-+0-9.]* *[-0-9]* %  //; s/ *$//'; }
step="longhaul predict --model llama3-8b --set layers=4 --seq 64K --quick"
$step --nodes 1 --cluster dgx-h100 --strategy ulysses --exact -o $T/a > $T/out
$step --nodes 1 --cluster dgx-h100 --strategy ulysses --late-rank 3:20% -o $T/late > $T/out
longhaul compare $T/a $T/late --explain
$step --nodes 2 --cluster dgx-h100 --strategy ring -o $T/ring > $T/out
$step --nodes 2 --cluster "dgx-h100:nic.bandwidth=25 GB/s" --strategy ring -o $T/nic > $T/out
first $T/ring $T/nic
longhaul schedule --model llama3-8b --set layers=4 --seq 64K --nodes 1 --cluster dgx-h100 --strategy ulysses --activations offload -o $T/a.ir
sed 's/\(d2h .*bytes=[0-9]*\)/\1 blocking=1/' $T/a.ir > $T/blocking.ir
for name in a blocking; do longhaul predict $T/$name.ir --cluster dgx-h100 --quick -o $T/ir-$name > $T/out; done
first $T/ir-a $T/ir-blocking
# a recording of the profiler, and the same as JSON and on the page
longhaul compare $S/tests/data/kineto/llama.predicted.csv $S/tests/data/kineto/llama.json --explain
longhaul compare $T/a $T/late --explain --json | sed -n '/"causes"/,/}/p' | sed 's/[0-9]\.[0-9]*/N/g'
longhaul report $T/a $T/late -o $T/page.html > $T/out
grep -o 'late rank</td>' $T/page.html
# what does not fit
try() { "$@" 2>&1 || echo "exit $?"; }
try longhaul compare $T/a $T/late $T/late
try longhaul compare $T/a $T/late $T/late --explain
try longhaul compare $T/a $T/late --explain --by kind
try longhaul compare $T/ring $S/tests/data/kineto/llama.json $S/tests/data/kineto/gpt.json --explain
try longhaul predict --model llama3-8b --set layers=4 --seq 64K --nodes 1 --cluster dgx-h100 --late-rank 8:20%
try longhaul predict --model llama3-8b --set layers=4 --seq 64K --nodes 1 --cluster dgx-h100 --late-rank 1:20
