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
# what can be fitted is written beside what is refused
wrong calibrate cpu-example.csv --limit 10 --name part -o $T/part.json --cluster cpu-node --cluster-out $T/part.cluster.json
grep '^[a-z]*ed .*left' $T/report
grep -oE '^  "[a-z]+"|^      "[a-z]+"' $T/part.json | tr -d '\n'
grep -oE '^  "[a-z]+"' $T/part.cluster.json | tr -d '\n'
echo
wrong calibrate cpu-example.csv --limit 1 -o $T/none.json --cluster cpu-node --cluster-out $T/none.cluster.json > $T/long
tail -n 3 $T/long
ls $T/none* 2> /dev/null || echo "no cluster"
sed 's/^\(start\|issue\|host\|work,[hd]2\).*//' cpu-example.csv > $T/none.csv
cd $T
wrong calibrate none.csv --base cpu-generic --limit 1 -o none.device.json > long
tail -n 2 long
ls *none*
# texts that no JSON file can have, numbers that no device has
wrong calibrate none.csv --name "$(printf 'GPU\351')" -o never.json
wc -c < $T/report
sed "s/^# device=.*/$(printf '# device=GPU\351')/" none.csv > latin.csv
wrong calibrate latin.csv -o never.json
sed 's/^# device.sm_count=.*/# device.sm_count=99999/' none.csv > many.csv
wrong calibrate many.csv -o never.json
# points whose rates are beyond any memory's
sed -n 's/sm_count=1/kernel_start_s=1 ns/;/^#/p;/^measured/p' none.csv > fast.csv
for size in "1000000 2e-9" "10000000 1.3e-8" "1000000000 1.2e-6"; do
    echo "work,add,count=${size% *},f32,f32,2,1,,${size#* },${size#* },${size#* },20" >> fast.csv
done
wrong calibrate fast.csv -o never.json
ls never.json 2> /dev/null || echo "not written"
wrong bench --kinds matmull
wrong bench --dtype i32
wrong bench --backend abacus
wrong bench --copy-latency 5
wrong bench --kinds send
wrong bench --cluster-out here
wrong bench --cluster-out here.json --kinds add
wrong bench --kinds add --despite-noise
