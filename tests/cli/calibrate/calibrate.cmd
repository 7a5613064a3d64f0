# The example of a processor into a device file, which `list` reads back.
cd $S/tests/data/calibration
longhaul calibrate cpu-example.csv --name example -o $T/example.json > $T/report
sed -n '/^[a-z].*: [0-9]* point/s/;.*//p' $T/report
grep -c '"source"' $T/example.json
longhaul calibrate cpu-example.csv -o $T/again.json --name example > $T/report2
cmp $T/report $T/report2
cmp $T/example.json $T/again.json
# a cluster's file names its device from its own folder, wherever the program runs
mkdir -p $T/here $T/there
longhaul calibrate cpu-example.csv --limit 60 -o $T/here/mine.device.json --cluster cpu-node --cluster-out $T/here/mine.json > $T/report3
grep -o '"cost": .*json"' $T/here/mine.json
cd $T/there
longhaul predict --model longhaul-3m --cluster ../here/mine.json --attention cpu --gpus 1 --strategy local --seq 1K --quick | grep -c '^step'
