# every figure, as SVG and PNG; what they say is in the data they are drawn from
bad() { longhaul plot "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
what="--model gpt2 --cluster ideal --gpus 4 --seq 1K"
longhaul predict $what --quick -o $T/p > $T/note
longhaul sweep --model internlm-7b-mha --cluster loongtrain-a100 --gpus 8 --vary seq=64K..512K:x2 --vary hp=2,8 -o $T/s.csv > $T/note
longhaul sweep --model internlm-7b-mha --cluster loongtrain-a100 --gpus 8 --vary seq=32K..128K:x2 -o $T/l.csv > $T/note
longhaul validate --source LoongTrain --table 2 --system ulysses -o $T/v.csv > $T/note
draw() { # FIGURE FILE OPTIONS: the words of the SVG that are no numbers
    longhaul plot "$@" -o $T/f.svg
    longhaul plot "$@" -o $T/f.png --dark
    test "$(head -c 4 $T/f.png | tail -c 3)" = PNG
    echo "$1: $(sed -n 's/.*<text>\([^<]*\)<.*/\1/p' $T/f.svg | grep '[a-z]' | grep -v '%' | tr '\n' ';')"
}
draw timeline $T/p
draw memory $T/p --title "gpt2's memory"
draw waterfall $T/p
draw sweep $T/s.csv -x seq
draw sweep $T/s.csv -y step_s
draw heatmap $T/s.csv
draw mfu $T/s.csv
draw mfu $T/l.csv
draw error $T/v.csv -y tgs | sed 's/tgs: .*error.*;//'
# options of one value stand in the title; a sweep of which nothing fits says so
longhaul sweep --model gpt2 --cluster ideal --gpus 4 --vary seq=1K,2K --vary dtype=bf16 --vary hp=1,2 -o $T/one.csv > $T/note
draw sweep $T/one.csv
draw heatmap $T/one.csv
longhaul sweep --model gpt-2.7b --cluster dgx-a100 --gpus 1 --vary seq=512K,1M --vary zero=1,2 -o $T/unfit.csv > $T/note || echo "nothing fits: exit $?"
draw sweep $T/unfit.csv
draw heatmap $T/unfit.csv
# the bars of a waterfall are those of the report
longhaul predict --model llama3-8b --cluster dgx-h100 --nodes 2 --seq 256K --quick --all -o $T/q | sed -n '/^Where/,/^What/s/^  .*  \([0-9.]*\) s .*/\1/p' | grep -v '^0[.]000' | sort > $T/report
test $(wc -l < $T/report) -ge 5
longhaul plot waterfall $T/q -o $T/f.svg
for part in $(cat $T/report); do grep -q "[ >]$part s" $T/f.svg || echo "not in the figure: $part"; done
# a recording of PyTorch's profiler: the classes of its kernels are coloured
longhaul plot timeline $S/tests/data/kineto/gpt.json -o $T/measured
cut -d , -f 2 $T/measured/data.csv | sort | uniq -c | tr -s ' '
# rows that do not count are drawn, and left out of the mean
sed 's/,ok$/,ok: seen elsewhere/' $T/v.csv | sed '2s/,ok: seen elsewhere$/,ok/' > $T/w.csv
longhaul plot error $T/w.csv -y tgs -o $T/f.svg
grep -o 'tgs: .* count[^<]*' $T/f.svg | sed 's/error .* %/error N %/'
# a folder: data and program, for gnuplot alone
longhaul plot heatmap $T/s.csv -o $T/folder
ls $T/folder
cut -d , -f 1,2 $T/folder/data.csv
cd $T/folder && LC_ALL=C.UTF-8 gnuplot figure.gp && grep -c '<svg' figure.svg

bad timelin $T/p -o $T/f.svg
bad timeline $T/p
bad timeline $T/p -o $T/f.jpg/x
bad timeline $T/none -o $T/f.svg
bad timeline $T/p -o $T/f.svg --rank 3
bad timeline $T/p -o $T/f.svg --from 5
bad memory $T/p -o $T/f.svg --memory pinned
bad waterfall $T/s.csv -o $T/f.svg
bad sweep $T/p/ops.csv -o $T/f.svg
bad sweep $T/s.csv -o $T/f.svg -x step_s
bad sweep $T/s.csv -o $T/f.svg -y step_ms
bad heatmap $T/l.csv -o $T/f.svg
bad error $T/v.csv -o $T/f.svg -y none
bad error $T/s.csv -o $T/f.svg
cd $T
(PATH=$(dirname $(which longhaul)); bad waterfall $T/p -o $T/f.svg)
bad waterfall $T/p -o /proc/f.svg
