# a dense timeline: of a lane with more than can be shown, each bin is shared by the classes as its time is
longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 8 --quick --seq 64K --strategy 2d --hp 2 --cp 4 -o $T/p > $T/note
longhaul plot timeline $T/p -o $T/page
test $(grep -c ',compute,' $T/p/ops.csv) -gt 5000 && echo "thousands of ops"
lanes() { sed -n "s/^lanes = '\(.*\)'/\1/p" $1/figure.gp; }
lanes $T/page
# boxes of a lane lie in order and apart: side by side, or on one another
awk -F, '$4 <= $3 || $6 <= $5 || $1 == lane && ($3 < start || $3 < end && $5 < high) { bad++ }
    { lane = $1; start = $3; end = $4; high = $6 } END { print bad + 0, "overlap" }' $T/page/data.csv
# of the compute lane the shares of attention (1) and of products (2) are those of its ops
share() { awk -F, -v lane=$2 '$1 == lane { s[$2] += ($4 - $3) * ($6 - $5); all += ($4 - $3) * ($6 - $5) }
    END { for (c = 1; c <= 2; c++) printf "class %d: %.0f hundredths of the lane\n", c, 100 * s[c] / all }' $1/data.csv; }
share $T/page $(($(lanes $T/page | wc -w) - 1))
awk -F, '$1 == 0 && $2 == "compute" { d = $11 - $10; all += d; if ($4 ~ /^attention/) a += d; if ($4 == "matmul") m += d }
    END { printf "ops: %.0f and %.0f hundredths\n", 100 * a / all, 100 * m / all }' $T/p/ops.csv
# short exchanges in an idle lane are wide enough to be seen: 1/900 of the window
longhaul plot timeline $T/p -o $T/part --from 0.5 --to 0.6
awk -F, '$2 == 5 { n++; narrow += $4 - $3 < 100 / 900 - 1e-6 } END { print (n > 5 ? "boxes" : "none"), narrow + 0, "too narrow" }' $T/part/data.csv
longhaul plot timeline $T/p -o $T/f.png && head -c 4 $T/f.png | tail -c 3
echo
# what repeats is drawn repeated, however wide the window: in each of 400 periods of three ops, and of 4000, the classes
# take what they took, within a bin of 1/500 of the window
for periods in 12 100 400 4000; do
    mkdir -p $T/periodic$periods
    awk -v periods=$periods 'BEGIN {
        print "rank,stream,op,kind,phase,region,layer,chunk,step,start_s,end_s,bytes,flops,micro"
        for (i = 0; i < periods; i++) {
            printf "0,compute,%d,attention,forward,attention,%d,-1,-1,%.9f,%.9f,0,0,0\n", 3 * i, i, i, i + 0.3
            printf "0,compute,%d,matmul,forward,linear,%d,-1,-1,%.9f,%.9f,0,0,0\n", 3 * i + 1, i, i + 0.3, i + 0.55
            printf "0,compute,%d,add,forward,linear,%d,-1,-1,%.9f,%.9f,0,0,0\n", 3 * i + 2, i, i + 0.55, i + 0.6
        }
    }' > $T/periodic$periods/ops.csv
    for to in 1 0.73 0.31; do
        end=$(awk -v p=$periods -v to=$to 'BEGIN { print p * to }')
        longhaul plot timeline $T/periodic$periods/ops.csv --to $end -o $T/repeated
        unit=$(sed -n "s/^to = //p" $T/repeated/figure.gp)
        # the areas of 10 equal parts of the window, by class
        awk -F, -v to=$unit -v periods=$periods -v part=$to '{
                for (k = int($3 / to * 10); k < 10 && k < $4 / to * 10; k++) {
                    a = $3 > k * to / 10 ? $3 : k * to / 10; b = $4 < (k + 1) * to / 10 ? $4 : (k + 1) * to / 10
                    if (b > a) area[k "," $2] += (b - a) * ($6 - $5) / (to / 10)
                }
            } END {
                split("0.3 0.25 0.05", want, " ")
                per = periods * part / 10 # periods of a tenth of the window: what may be cut off at its ends
                for (k = 0; k < 10; k++) for (c = 1; c <= 3; c++) {
                    d = area[k "," c] - want[c]; if (d < 0) d = -d
                    if (d > 0.04 + (per < 50 ? 1 / per : 0)) { bad++; print periods, part, k, c, area[k "," c] }
                }
                printf "%d periods, %.2f of them: %d tenths differ\n", periods, part, bad
            }' $T/repeated/data.csv
    done
done
# in a lane that is drawn op by op, every period has its boxes
longhaul plot timeline $T/periodic12/ops.csv -o $T/repeated
awk -F, '{ n[int($3 + 1e-9)]++ } END { for (k in n) { all++; if (n[k] != 3) bad++ } print all, "periods,", bad + 0, "lack a box" }' $T/repeated/data.csv
# a lane in which nothing takes time is left out
sed 's/^0,compute,\([0-9]*\),add,\(.*\),\([0-9.]*\),\([0-9.]*\),0,0,0$/0,comm.hp,\1,all_to_all,\2,\3,\3,0,0,0/' $T/periodic12/ops.csv > $T/idle.csv
longhaul plot timeline $T/idle.csv -o $T/idle && lanes $T/idle
# a receive from a later stage waits until that stage sends: most of the lane's boxes are waits (8), and what moves (5) takes as long as the send does
longhaul predict --model llama3-8b --set layers=8 --cluster dgx-h100 --gpus 8 --pp 2 --batch 8 --strategy ulysses --seq 8K --quick -o $T/stages > $T/note 2>&1
longhaul plot timeline $T/stages -o $T/waits > $T/note
lanes $T/waits
awk -F, '$2 == 8 { wait += $4 - $3 } END { print (wait > 0 ? "waits" : "no waits") }' $T/waits/data.csv
for lane in 0 1 2 3 4 5 6 7; do awk -F, '$1 == lane { s[$2] += $4 - $3 } END { if (s[8] > 0) print "lane", lane ":", (s[8] > 10 * s[5] ? "waits ten times as long as it receives" : s[8] " " s[5]) }' lane=$lane $T/waits/data.csv; done
