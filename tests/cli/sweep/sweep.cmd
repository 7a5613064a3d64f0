# rows in the order of the grid, with the reason where there is no prediction
what="--profile published --model internlm-7b-mha --cluster loongtrain-a100 --gpus 8"
sweep="longhaul sweep $what --vary seq=64K..512K:x2 --vary hp=4,3,8"
figures() { sed 's/[0-9.]* tokens.*, a step of [0-9.]* m*s/N tokens, a step of N s/; s/\("[a-z_]*"\): [0-9.]*[.][0-9]*/\1: N/g'; }
$sweep -o $T/a.csv | figures
head -n 2 $T/a.csv
grep -v '^#' $T/a.csv | cut -d , -f 1-4 | sed 's/; did you.*//'
# the same bytes on standard output, and from one process or many
$sweep | cmp - $T/a.csv
$sweep --jobs 1 | cmp - $T/a.csv
$sweep --jobs 5 | cmp - $T/a.csv
# what a row says is what predict says
step=$(longhaul predict $what --seq 128K --hp 4 --quick --json 2> $T/note | sed -n 's/^  "step_s": \(.*\),/\1/p')
grep -q "^128K,4,fits,,$step," $T/a.csv && echo "as predict says"
# once more: nothing to do
cp $T/a.csv $T/kept.csv
$sweep -o $T/a.csv | figures
$sweep -o $T/a.csv --json | figures
cmp $T/a.csv $T/kept.csv
ls $T
# parts, done apart and joined
$sweep -o $T/b.csv --part 2/3
$sweep -o $T/b.csv --part 1/3
$sweep -o $T/b.csv | figures
grep -v '^#' $T/b.csv > $T/b.rows
grep -v '^#' $T/a.csv | cmp - $T/b.rows
# ranges and lists
axis() { longhaul sweep --model internlm-7b-mha --cluster ideal --gpus 4 "$@" | grep -v '^#' | cut -d , -f 1 | tr '\n' ' '; echo; }
axis --seq 1K --vary micro-batch=1..7:+3
axis --seq 1K --vary loss-chunks=1..4
axis --vary seq=1K..5K:x2
axis --vary seq=1K..4K:+1K
axis --vary seq=1500,2K
axis --vary seq=1k..4k:x2
axis --vary seq=1000..4000:x1.5
axis --seq 1K --vary 'set=layers=2;layers=4,vocab=1000'
# numbers of the cluster: the last unit is that of all without one, a cluster may be varied too, a sweep goes on
links="longhaul sweep --model llama3-8b --gpus 16 --seq 8K --hp 16"
fitting() { awk -F , -v from=$1 '!/^#/ && $(from) == "fits" { print $0 }' | cut -d , -f 1-$1; }
$links --cluster dgx-h100 --vary nic.bandwidth=400,800Gb/s --vary nics=4,8 -o $T/l.csv | sed 's/: .* with/:/'
awk -F , '!/^#/ && $3 == "fits" { print $1, $2, ($5 < before) ? "faster" : "slower or first"; before = $5 }' $T/l.csv
$links --cluster dgx-h100 --vary nic.bandwidth=400,800Gb/s --vary nics=4,8 -o $T/l.csv | sed 's/: .* with/:/'
$links --vary cluster=dgx-h100,dgx-a100 --vary nic.latency=5..20us:x2 | fitting 3
$links --cluster 2x8xh100:nics=4 --vary host.memory=1,2TB | fitting 2
step=$(longhaul predict --model llama3-8b --gpus 16 --seq 8K --hp 16 --cluster dgx-h100:nic.latency=9us --quick --json 2> $T/note | sed -n 's/^  "step_s": \(.*\),/\1/p')
$links --cluster dgx-h100 --vary nic.latency=9us | grep -q "^9us,fits,,$step," && echo "as predict says"
# what follows from a nominal number goes along: rates below those of the preset run too, and take longer
$links --cluster dgx-h100 --vary nic.bandwidth=100,200,400Gb/s |
    awk -F , '!/^#/ && $2 == "fits" { print $1, before == 0 ? "first" : $4 < before ? "faster" : "no faster"; before = $4 }'
# no point fits: the answer is no
longhaul sweep --model llama3-8b --cluster dgx-a100 --gpus 1 --vary seq=1M,2M -o $T/c.csv || echo "exit $?"
longhaul sweep --model llama3-8b --cluster dgx-a100 --gpus 1 --vary seq=1M --unfit-too |
    awk -F , '!/^#/ { print $2, $3, ($4 > 0) ? "timed" : "" }'
# ranks that share one GPU are varied as any other option: each point has its own
longhaul sweep --model gpt2 --set layers=1 --cluster dgx-h100 --jobs 1 --seq 1K --vary loopback=1,2,4 |
    awk -F , '!/^#/ && $2 == "fits" { print $1, ($4 > before) ? "longer" : "the same"; before = $4 }'
# of a part, what predict says of it: it has neither MFU nor, but for layers, causes
for scope in layer layers attention:bwd; do
    part=$(longhaul predict $what --seq 128K --hp 4 --scope $scope --json 2> $T/note | sed -n 's/^    "elapsed_s": \([^,]*\).*/\1/p')
    longhaul sweep $what --hp 4 --scope $scope --vary seq=128K |
        awk -F , -v scope=$scope -v part=$part '/^seq/ { for (i = 1; i <= NF; i++) at[$i] = i }
            /^128K/ { print scope, $at["step_s"] == part ? "as predict says" : "not as predict says",
                      $at["hfu"] $at["mfu_longhaul"] == "" ? "no MFU" : "MFU", $at["host_s"] == "" ? "no causes" : "causes" }'
done
# a model on a line, given or varied: its commas separate fields
small=layers=2,hidden=64,heads=4,ffn=128,vocab=256
longhaul sweep --model $small --cluster ideal --gpus 4 --seq 1K --vary dp=1,2 | sed '/^#/d' | cut -d , -f 1-2
for models in "$small" "$small;gpt2"; do
    longhaul sweep --cluster ideal --gpus 4 --seq 1K --vary "model=$models" | awk '!/^#/ { print $1 }' | cut -c 1-60
done
# a point has its own measured runs, too, though its model and cluster are those of the point before
what="--model llama3-8b --cluster dgx-h100 --nodes 1 --profile torchtitan"
longhaul predict $what --seq 8K --quick --record $T/record > $T/out
for factor in 1 2; do
    awk -v factor=$factor '{ match($0, /"step_s": *[0-9.e-]*/); split(substr($0, RSTART, RLENGTH), field, ":")
        sub(/"measured": *{"step_s": *null/, "\"measured\": {\"step_s\": " factor * field[2]); print }' $T/record > $T/runs$factor
done
interval() { awk -F , '!/^#/ && $2 == "fits" { print $5, $6 }'; }
longhaul sweep $what --seq 8K --jobs 1 --vary measured=$T/runs1,$T/runs2 | interval > $T/varied
for factor in 1 2; do longhaul sweep $what --measured $T/runs$factor --vary seq=8K | interval; done > $T/given
cmp $T/varied $T/given && uniq $T/varied | grep -c .
