# points that other programs disturbed: the fits that refuse them say so, and --despite-noise goes on without them
cd $T
# every third median is five times as long and the slowest tenth eight times, products' fastest are all over the place
awk -F, -v OFS=, '/^#/ || /^measured/ { print; next }
    { n++ }
    n % 3 == 0 { $(NF - 3) *= 5 }
    $2 == "matmul" { $(NF - 2) *= 1 + n * n % 11; $(NF - 3) *= 11 }
    { $(NF - 1) = 8 * $(NF - 3) }
    { print }' $S/tests/data/calibration/cpu-example.csv > disturbed.csv
longhaul calibrate disturbed.csv -o never.json > report 2> said || echo "exit $?"
sed 's/: the fit lies .* from the worst//' said
ls
longhaul calibrate disturbed.csv --despite-noise -o fitted.json > report
grep -E '^(spread|fastest|refused) ' report
grep -c '"calibrated"' fitted.json
grep '"matmul' fitted.json || echo "nothing of products"
longhaul calibrate disturbed.csv --despite-noise --json > report.json
sed -n '/"fallen"/,/\]/p' report.json | grep -E 'name|to"' | tr -d ' \n'
echo
# the device is good for a prediction
longhaul predict --model longhaul-3m --cluster cpu-node --costs fitted.json --gpus 2 --seq 1K --dtype f32 --attention cpu --quick > step
grep -c '^step' step
# nor are links missing in a cluster: the preset has those that were refused
longhaul calibrate disturbed.csv --despite-noise -o links.device.json --cluster cpu-node --cluster-out links.json > report
grep -E '^(fastest|refused) .*links' report
longhaul list clusters ./links.json > list
# of points that nobody disturbed it changes nothing, what is refused of them too
for more in "" --despite-noise; do
    longhaul calibrate $S/tests/data/calibration/cpu-example.csv --name example $more -o example$more.json > report$more
done
cmp report report--despite-noise && cmp example.json example--despite-noise.json
grep -o '^spread .*times its p10' report
longhaul calibrate $S/tests/data/calibration/cpu-example.csv --limit 10 --despite-noise > note 2> said || echo "exit $?"
sed 's/: the fit lies .* from the worst//' said
