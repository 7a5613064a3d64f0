# a dense timeline: thousands of ops to the page, and each bin has the class that runs longest in it
longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 8 --quick --seq 64K --strategy 2d --hp 2 --cp 4 -o $T/p > $T/note
longhaul plot timeline $T/p -o $T/page
test $(grep -c ',compute,' $T/p/ops.csv) -gt 5000 && echo "thousands of ops"
# boxes of a lane lie in order and apart
awk -F, '$4 <= $3 || $1 == lane && $3 < end { bad++ } { lane = $1; end = $4 } END { print bad + 0, "overlap" }' $T/page/data.csv
# of the compute lane: attention (1) in each of 32 layers, both ways, and matmuls (2) between
awk -F, '$1 == 5 { boxes[$2]++; s[$2] += $4 - $3; all += $4 - $3 }
    END { for (c = 1; c <= 2; c++) printf "class %d: %s, %.0f tenths of the lane\n", c, (boxes[c] >= 64 ? "64 boxes or more" : boxes[c] " boxes"), 10 * s[c] / all }' $T/page/data.csv
# short exchanges in an idle lane are wide enough to be seen: 1/600 of the window
longhaul plot timeline $T/p -o $T/part --from 0.5 --to 0.6
awk -F, '$1 == 3 { n++; narrow += $4 - $3 < 100 / 600 - 1e-6 } END { print n, "boxes of comm.hp,", narrow + 0, "too narrow" }' $T/part/data.csv
longhaul plot timeline $T/p -o $T/f.png && head -c 4 $T/f.png | tail -c 3
echo
# a receive from a later stage waits until that stage sends: most of the lane's boxes are waits (8), and what moves (5) takes as long as the send does
longhaul predict --model llama3-8b --set layers=8 --cluster dgx-h100 --gpus 8 --pp 2 --batch 8 --strategy ulysses --seq 8K --quick -o $T/stages > $T/note 2>&1
longhaul plot timeline $T/stages -o $T/waits > $T/note
awk -F, '$2 == 8 { wait += $4 - $3 } END { print (wait > 0 ? "waits" : "no waits") }' $T/waits/data.csv
for lane in 0 1 2 3 4 5 6 7; do awk -F, '$1 == lane { s[$2] += $4 - $3 } END { if (s[8] > 0) print "lane", lane ":", (s[8] > 10 * s[5] ? "waits ten times as long as it receives" : s[8] " " s[5]) }' lane=$lane $T/waits/data.csv; done
