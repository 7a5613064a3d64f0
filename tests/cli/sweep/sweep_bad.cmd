bad() { longhaul sweep --model gpt2 --cluster ideal --gpus 4 "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
bad --seq 1K
bad --seq 1K --vary seq=1K,2K
bad --seq 1K --vary hp
bad --seq 1K --vary =3
bad --seq 1K --vary hp=
bad --seq 1K --vary hq=1,2
bad --seq 1K --vary hp=1,,2
bad --seq 1K --vary hp=1,2,1
bad --seq 1K --vary hp=1,two
bad --seq 1K --vary hp=1,2 --vary hp=4
bad --seq 1K --vary strategy=ulysses,foo
bad --seq 1K --vary profile=published,fo
longhaul sweep --model gpt2 --seq 1K --vary cluster=ideal,idael 2>&1 || echo "exit $?"
bad --vary seq=1K..4K
bad --vary seq=4K..1K:x2
bad --vary seq=1K..4K:x1
bad --vary seq=1001..4K:x1.5
bad --vary seq=1K..4K:-1K
bad --vary seq=1K..4K:
bad --vary seq=1..2M:+1 --vary hp=1,2 --vary dp=1,2 --vary cp=1,2
bad --seq 1K --vary zero=1..9
bad --seq 1K --vary exact=1,2
bad --seq 1K --vary jobs=1,2
bad --vary dp=1,2
# lists that are not varied
bad --seq 1K --chunk 8K,16K
bad --seq 1K --vary dp=1,2 --zero 1..3
bad --seq 1K --strategy ulysses,ring
bad --seq 1K --set layers=2,vocab=100
longhaul sweep --model gpt2,llama3-8b --cluster ideal --seq 1K 2>&1 || echo "exit $?"
longhaul sweep --model gpt2,layers=2 --cluster ideal --seq 1K --vary dp=1,2 2>&1 || echo "exit $?"
longhaul sweep --model gpt2 --cluster 1x4xh100,1x8xh100 --seq 1K --vary dp=1,2 2>&1 || echo "exit $?"
# numbers of the cluster
bad --seq 1K --vary nic.bandwith=1GB/s
bad --seq 1K --vary nic.bandwidth=100,200
bad --seq 1K --vary nic.bandwidth=100Gb/s,200
bad --seq 1K --vary nodes.x=1
bad --seq 1K --vary host.memory=1..x
bad --seq 1K --vary host.memory=1..4TB
longhaul sweep --model gpt2 --seq 1K --vary nic.latency=1,2us 2>&1 || echo "exit $?"
longhaul sweep --model gpt2 --seq 1K --cluster dgx-h100:nic.latency=1us --gpus 4 --vary nic.latency=1,2us | grep -o '^[12]us.*twice'
bad --seq 1K --vary dp=1,2 --part 1/2
bad --seq 1K --vary dp=1,2 --part 3/2 -o $T/a.csv
bad --seq 1K --vary dp=1,2 --part 2 -o $T/a.csv
bad --seq 1K --vary dp=1,2 --json
bad --seq 1K --vary dp=1,2 --set layers=0
bad --seq 1K --vary dp=1,2 -o $T
bad --seq 1K --vary dp=1,2 -o /dev/null
bad --seq 1K --vary dp=1,2 -o $T/none/a.csv
bad --seq 1K --vary dp=1,2 -o /proc/a.csv
printf 'a,b\n1,2\n' > $T/table.csv
bad --seq 1K --vary dp=1,2 -o $T/table.csv
printf 'a,b\n1,2\n' > $T/b.csv.part
bad --seq 1K --vary dp=1,2 -o $T/b.csv
longhaul sweep --model gpt2 --cluster ideal --gpus 4 --seq 1K --vary dp=1,2 -o $T/c.csv
bad --seq 2K --vary dp=1,2 -o $T/c.csv
# a file that the sweep read has changed
cp $S/models/presets/transformers/gpt2.json $T/m.json
longhaul sweep --model $T/m.json --cluster ideal --gpus 4 --seq 1K --vary dp=1,2 -o $T/d.csv
echo >> $T/m.json
longhaul sweep --model $T/m.json --cluster ideal --gpus 4 --seq 1K --vary dp=1,2 -o $T/d.csv || echo "exit $?"
bad --seq 1K --vary cp=2,4 -o $T/e.csv
longhaul sweep --model gpt2 --cluster ideal --gpus 4 --seq 1K --vary cp=1,2 -o $T/f.csv
# started by mpirun, and without the module for it
cp $(which longhaul) $T/longhaul
OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=2 LONGHAUL_DATA=$S $T/longhaul sweep --model gpt2 --cluster ideal --gpus 4 --seq 1K --vary dp=1,2 || echo "exit $?"
