# however run, bench and calibrate end, what they wrote before is kept whole
tiny="--model longhaul-3m --set layers=1,hidden=64,head_dim=8,ffn=96 --seq 64 --gpus 2"
end() { # waits for it; $code says how it ended
    code=0
    wait $pid 2> $T/note || code=$?
}
# the number of lines of a file that match, 0 before it is there
lines() { grep -a -c "$1" "$2" 2> $T/note || true; }
kept() { cmp $T/before.$1 $T/$1 && echo "$1 is as it was"; }

# points that were measured are in the file, and the file says how many of them there are
for signal in INT TERM; do
    longhaul bench --kinds add,cast,gelu -o $T/$signal.csv > $T/out 2> $T/err &
    pid=$!
    while test "0$(lines '^work,' $T/$signal.csv)" -lt 2; do sleep 0.01; done
    kill -$signal $pid
    end
    echo "$signal: exit $code"
    rows=$(grep -c '^[a-z]*,\(add\|cast\|gelu\),' $T/$signal.csv)
    sed -n "s/: $rows of [0-9]* points/: N of M points/p" $T/err
    test "$(grep '^# points=' $T/$signal.csv | cut -d ' ' -f 2)" = points=$rows || echo "it does not say $rows"
done
: > $T/err # what the one before wrote is not this one's
longhaul bench --kinds add --json > $T/points.json 2> $T/err &
pid=$!
while test "0$(lines . $T/err)" -lt 3; do sleep 0.01; done
kill -TERM $pid
end
echo "JSON: exit $code"
tail -n 1 $T/err | sed 's/: [0-9]* of [0-9]* points/: N of M points/'
grep -c '"points": "[0-9]* of [0-9]*"' $T/points.json

# One that ends before anything was measured has lost nothing. Its note that --within leaves out all points waits for a
# full pipe, when its signals are caught already.
mkfifo $T/full
exec 9<> $T/full
for output in --json "--cluster-out $T/none.json"; do
    dd if=/dev/zero of=$T/full bs=4096 oflag=nonblock 2> $T/note || true
    longhaul bench --within 1e-9 $output > $T/out 2> $T/full &
    pid=$!
    until grep -q '^SigCgt:.*[4-7c-f]...$' /proc/$pid/status; do test -e /proc/$pid || break; sleep 0.01; done
    kill -TERM $pid
    cat <&9 > $T/drained &
    drain=$!
    end
    echo "nothing measured: exit $code"
    while test "0$(lines ended $T/drained)" -lt 1; do sleep 0.01; done
    kill $drain
    wait $drain 2> $T/note || true # it must not drain what fills the pipe for the next one
    grep -a -o 'bench: .*' $T/drained
done
exec 9<&-

# a step that is killed leaves the folder of an earlier one as it was
longhaul run $tiny --steps 2 -o $T/run > $T/out
cp -r $T/run $T/before.run
for signal in INT TERM; do
    longhaul run $tiny --steps 20000 -o $T/run > $T/out 2> $T/err &
    pid=$!
    while test "$(ls /proc/$pid/task | wc -l)" -lt 6; do sleep 0.01; done # ranks and their streams
    kill -$signal $pid
    end
    echo "run: exit $code"
    cat $T/err
done
diff -r $T/before.run $T/run && ls -A $T/run

# one that is ended while it writes the folder, too: a pipe that nobody reads holds it when all is ready
longhaul run $tiny --steps 1 -o $T/piped > $T/out
rm $T/piped/trace.json
mkfifo $T/piped/trace.json
cat $T/piped/*.csv | cksum > $T/before.piped
for signal in INT TERM KILL; do
    env --default-signal=INT longhaul run $tiny --steps 1 -o $T/piped > $T/out 2> $T/err &
    pid=$!
    until ls -A $T/piped | grep -q '^[.]longhaul-.*tmp$'; do sleep 0.01; done
    kill -$signal $pid
    end
    echo "run that writes, $signal: exit $code"
    test $signal != KILL || rm $T/piped/.longhaul-$pid-*.tmp
    cat $T/piped/*.csv | cksum | cmp - $T/before.piped && ls -A $T/piped
done
rm -r $T/piped $T/before.piped

# a disk that is full: as if nothing had been written
full() { # BLOCKS ...
    (ulimit -f $1 && shift && longhaul "$@" > /dev/null) && echo "taken: $*" || echo "  exit $?: $*"
}
full 8 run $tiny --steps 1 -o $T/run 2>&1
diff -r $T/before.run $T/run
full 128 run $tiny --steps 1 -o $T/run 2>&1
diff -r $T/before.run $T/run && ls -A $T/run
full 128 run $tiny --steps 1 -o $T/new 2>&1
longhaul calibrate $S/tests/data/calibration/cpu-example.csv -o $T/device.json > $T/out
cp $T/device.json $T/before.device.json
full 8 calibrate $S/tests/data/calibration/cpu-example.csv -o $T/device.json 2>&1
kept device.json
echo links > $T/links.json && cp $T/links.json $T/before.links.json
bad() { longhaul "$@" > /dev/null && echo "taken: $*" || echo "  exit $?: $*"; }
bad calibrate $S/tests/data/calibration/cpu-example.csv --limit 60 -o $T/device.json --cluster cpu-node \
    --cluster-out /proc/cluster.json 2>&1
kept device.json
bad calibrate $S/tests/data/calibration/cpu-example.csv --limit 60 -o /dev/full --cluster cpu-node \
    --cluster-out $T/links.json 2>&1
kept links.json

# a place that cannot be written into is found before the work, not after it
longhaul run $tiny --steps 1000000 -o /proc/none || echo "  exit $?"
longhaul run $tiny --steps 1000000 -o $T/device.json || echo "  exit $?"
ls -A $T
