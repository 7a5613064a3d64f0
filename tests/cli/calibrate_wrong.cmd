# What cannot be fitted, with the reason and the exit code.
cd $S/tests/data/calibration
wrong() {
    code=0
    longhaul "$@" > $T/report 2> $T/messages || code=$?
    cat $T/messages
    echo "exit code $code"
}
wrong calibrate cpu-example.csv --limit 10
wrong calibrate cpu-example.csv --base a100-80g
wrong calibrate all_gather_2x4.txt
wrong calibrate all_reduce_8.txt -o $T/device.json
wrong calibrate all_reduce_8.txt --cluster dgx-h100
wrong calibrate all_reduce_8.txt --min-bytes 100000000
wrong calibrate no/such.csv
wrong calibrate
wrong bench --kinds matmull
wrong bench --dtype i32
wrong bench --backend abacus
wrong bench --copy-latency 5
wrong bench --kinds send
wrong bench --cluster-out here
wrong bench --cluster-out here.json --kinds add
wrong bench --kinds add --despite-noise
