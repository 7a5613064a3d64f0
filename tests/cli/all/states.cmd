# what AdamW keeps of a parameter: 12, 4 or 6.03 bytes of 8.03e9 parameters over 8 ranks, and what runs refuse
what="--model llama3-8b --cluster dgx-h100 --gpus 8 --seq 64K"
for states in fp32 bf16 8bit; do
    longhaul predict $what --states $states --quick --all | grep -o 'optimizer on device[a-z0-9 ]*,\|optimizer states [0-9.]* GiB'
done
longhaul sweep $what --vary states=fp32,bf16,8bit -o $T/s.csv 2> $T/note | sed -n 2p | sed 's/ in .*csv//'
bad() { longhaul "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
bad run --model longhaul-3m --seq 64 --states 8bit
longhaul schedule --model longhaul-3m --set layers=1 --seq 64 --cluster ideal --gpus 2 --states 8bit --attention cpu -o $T/8.ir
longhaul check $T/8.ir | tail -n 1
bad run $T/8.ir | sed "s|$T/||; s/op [0-9]*/op N/"
bad predict $what --states bf16 --dtype f16
# steps too small for bf16 parameters are lost, in the run as in the reference: the loss is that of the next batch
small="--model longhaul-3m --set layers=2,hidden=64,head_dim=8,ffn=96 --seq 64 --gpus 2"
longhaul run $small --states bf16 --data $S/LICENSE --steps 5 --check | tail -n 1 | sed 's/within [^ ]*/within E/'
longhaul run $small --states bf16 --zero 1 --poison --check | tail -n 1
# a framework's own settings
longhaul plan --model llama3-8b --cluster dgx-h100 --gpus 8 --seq 64K --strategy ring --states bf16 --emit torchtitan 2> $T/note | grep '^dtype\|8 bits'
