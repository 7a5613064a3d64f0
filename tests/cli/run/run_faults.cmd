# Faults put into a real run on purpose are named first, beside a real run without them: links at half rate, and
# one rank whose products take five times as long. The faults are large, since other programs may use the machine;
# run_faults_nightly has a rank that is 20 % slower and copies that hold the host.
first() { longhaul compare "$@" --explain | sed -n '/share  cause/{n;p;}' | sed 's/^ *[-+0-9.]* *[-0-9]* %  //; s/ *[:,]* rank [0-9].*//; s/, measured.*//; s/rank .*$/rank/'; }
ring="--model longhaul-3m --set layers=2 --seq 512 --gpus 2 --strategy ring --weights replicated --activations keep --dtype f32 --attention cpu --steps 3"
longhaul run $ring --message-rate "10 MB/s" -o $T/links > $T/out
longhaul run $ring --message-rate "5 MB/s" -o $T/half > $T/out
first $T/links $T/half
cc -O2 -shared -fPIC -o $T/slow_rank.so $S/tests/cli/slow_rank.c -ldl
longhaul run $ring -o $T/even > $T/out
export SLOWER=4 ASAN_OPTIONS=verify_asan_link_order=0
LD_PRELOAD=$T/slow_rank.so longhaul run $ring -o $T/late > $T/out
first $T/even $T/late
