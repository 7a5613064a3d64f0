# A rank whose products take 20 % longer, and copies that hold the host, are named in a real run. Products are paced by
# sleeping (slow_rank.c), so that a step takes about as long beside other programs. What these change are times of
# kernels: a fault has to be first of all other causes, with at least the larger half of what was put in.
cc -O2 -shared -fPIC -o $T/slow_rank.so $S/tests/cli/slow_rank.c -ldl
export PACE_MS=5 ASAN_OPTIONS=verify_asan_link_order=0
paced() { LD_PRELOAD=$T/slow_rank.so longhaul run "$@" > $T/out; }
first() { # CAUSE LEAST-MS EVEN FAULT
    longhaul compare $3 $4 --explain | awk -v cause="$1" -v least=$2 '
        /^ .* %  / {ms = $1; sub(/^ *[-+0-9.]* *[0-9]* %  /, ""); sub(/   *.*/, "")}
        /^clock$|^products$|^attention$|^memory-bound work$|^optimizer$/ {next}
        ms != "" && !n++ {print ($0 == cause && ms >= least ? cause : $0 " " ms)}'
}
ring="--model longhaul-3m --set layers=2 --seq 256 --gpus 2 --strategy ring --weights replicated --activations keep --dtype f32 --attention cpu --steps 3"
paced $ring -o $T/even
SLOWER=0.2 paced $ring -o $T/late
first 'late rank' 140 $T/even $T/late
# four copies of 262 KB at 2 MB/s
copies="--cluster cpu-node --model longhaul-3m --set layers=4 --seq 256 --gpus 1 --strategy local --weights replicated --activations offload --dtype f32 --attention cpu"
longhaul schedule $copies > $T/a.ir
sed 's/\(d2h .*bytes=[0-9]*\)/\1 blocking=1/' $T/a.ir > $T/blocking.ir
for name in a blocking; do paced $T/$name.ir --steps 3 --copy-rate "2 MB/s" -o $T/$name; done
first 'copy in the open' 262 $T/a $T/blocking
