# The example of a processor into a device file, which `list` reads back.
cd $S/tests/data/calibration
longhaul calibrate cpu-example.csv --name example -o $T/example.json > $T/report
sed -n '/^[a-z].*: [0-9]* point/s/;.*//p' $T/report
grep -c '"source"' $T/example.json
longhaul calibrate cpu-example.csv -o $T/again.json --name example > $T/report2
cmp $T/report $T/report2
cmp $T/example.json $T/again.json
