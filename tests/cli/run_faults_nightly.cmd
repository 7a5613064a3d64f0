# One rank whose products take 20 % longer, and copies that hold the host, are named first in a real run, on a machine that does nothing else.
ring="--model longhaul-3m --set layers=4 --seq 1K --gpus 2 --strategy ring --weights replicated --activations keep --dtype f32 --attention cpu --steps 9"
cc -O2 -shared -fPIC -o $T/slow_rank.so $S/tests/cli/slow_rank.c -ldl
longhaul run $ring -o $T/even > $T/out
export SLOWER=0.2 ASAN_OPTIONS=verify_asan_link_order=0
LD_PRELOAD=$T/slow_rank.so longhaul run $ring -o $T/late > $T/out
longhaul compare $T/even $T/late --explain | sed -n '/share  cause/{n;p;}' | grep -o 'late rank'
copies="--cluster cpu-node --model longhaul-3m --set layers=4 --seq 512 --gpus 1 --strategy local --weights replicated --activations offload --dtype f32 --attention cpu"
longhaul schedule $copies > $T/a.ir
sed 's/\(d2h .*bytes=[0-9]*\)/\1 blocking=1/' $T/a.ir > $T/blocking.ir
for name in a blocking; do longhaul run $T/$name.ir --steps 3 --copy-rate "10 MB/s" -o $T/$name > $T/out; done
longhaul compare $T/a $T/blocking --explain | sed -n '/share  cause/{n;p;}' | grep -o 'copy in the open'
