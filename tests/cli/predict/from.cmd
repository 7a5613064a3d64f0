# --from: what is read, what wins, what is refused, and that plan --emit is read back
bad() { longhaul "$@" --quick 2>&1 >/dev/null | sed -n '/error/p' | sed "s|$T/||g"; }
of() { longhaul "$@" 2>&1 >/dev/null | sed "s|$T/||g; /^note: /d"; }
D=$S/tests/data/launch
titan=$D/torchtitan-llama3-8b.toml
small="--cluster dgx-h100 --nodes 1"
# options win, and what they replace is said; both ways of naming a file do
of predict $titan $small --quick --seq 16K --zero 2 | sed -n '1,/given/p'
longhaul predict --from $titan $small --quick 2> $T/err > $T/a
longhaul predict $titan $small --quick 2> $T/err > $T/b
cmp $T/a $T/b
# the line that is printed is the same prediction
longhaul predict $(sed -n '2,/[^\\]$/p' $T/err | sed 's/ \\$//') $small --quick > $T/c 2> $T/note
cmp $T/a $T/c && echo "the line predicts the same"
# a search takes the model, the length, the batch and the machine; a sweep what it does not vary
of plan --from $titan $small --set layers=2 --strategy local --top 1 | sed -n '1,/looked/p'
longhaul sweep --from $titan $small --vary seq=4K,8K 2> $T/err | cut -d, -f 1-3 | grep -v '^# identity='
longhaul schedule --from $titan $small --set layers=1 2> $T/err | head -2
# a line of arguments, and a model of its own on one line
of predict --from '--num-layers 2 --hidden-size 256 --num-attention-heads 4 --vocab-size 1000 --seq-length 1024 --bf16 --no-such-thing 3' $small --quick
longhaul predict --model layers=2,hidden=256,heads=4,ffn=1024,vocab=1000 --seq 1K --strategy local $small --quick 2> $T/err | sed -n 's/,.*//; s/^model  *//p'
bad predict --model layers=2,hidden=256,heads=4,ffn=1024 --seq 1K $small
bad predict --model layers=2,hiden=256 --seq 1K $small
# what is written is read back, as files
for f in megatron deepspeed; do
    longhaul plan --longest --model llama3-8b --set layers=2,vocab=4096 --cluster dgx-h100 --gpus 2 --tp 2 --weights zero1 --strategy megatron-sp --profile $f --emit $f > $T/$f 2> $T/err
    longhaul predict --from $T/$f --cluster dgx-h100 --gpus 2 --set vocab=4096 --quick 2>&1 > /dev/null | sed -n '2,/[^\\]$/p' | sed 's/ --seq [0-9]*/ --seq N/'
done
# faults: where, what, the value, what would be right
file() { cat > $T/$1; }
printf '[training\nseq_len = 1\n' | file a.toml; bad predict $T/a.toml $small
printf '[training]\nseq_len = many\n' | file a.toml; bad predict $T/a.toml $small
printf '[training]\nseq_len = "many"\n' | file a.toml; bad predict $T/a.toml $small
printf '[training]\nseq_len = 1\nseq_len = 2\n' | file a.toml; bad predict $T/a.toml $small
printf '[[training]]\n' | file a.toml; bad predict $T/a.toml $small
printf 'a: &x 1\nb: *x\n' | file a.yaml; bad predict $T/a.yaml $small
printf 'a: [1\n' | file a.yaml; bad predict $T/a.yaml $small
printf 'a: 1\n' | file a.yaml; bad predict $T/a.yaml $small
printf '{"train_batch_size": "x"}' | file a.json; bad predict $T/a.json $small
printf 'echo hello\n' | file a.sh; bad predict $T/a.sh $small
printf 'torchrun x.py --seq-length "4\n' | file a.sh; bad predict $T/a.sh $small
printf 'if true; then\ntorchrun x.py --seq-length 4\n' | file a.sh; bad predict $T/a.sh $small
printf 'torchrun x.py --seq-length\n' | file a.sh; bad predict $T/a.sh $small
: | file a.sh; bad predict $T/a.sh $small
bad predict $T/none.toml $small
bad predict $titan --from $D/megatron-gpt2-345m.sh $small
printf 'torchrun x.py --num-layers 2 --hidden-size 64 --num-attention-heads 2 --num-experts 8\n' | file a.sh; bad predict $T/a.sh $small
printf '[parallelism]\ndata_parallel_shard_degree = 4\ntensor_parallel_degree = 4\n[model]\nflavor = "8B"\n' | file a.toml; bad predict $T/a.toml $small
printf '{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}}' | file a.json
printf 'deepspeed x.py --deepspeed --num-layers 2 --hidden-size 64 --num-attention-heads 2 --zero-stage 2\n' | file a.sh
bad predict $T/a.sh --from $T/a.json $small
# scripts: what is known only when they run
file a.sh <<'END'
#!/bin/bash
#SBATCH --nodes=2
TP=${TP:-2}; PP=$2
ARGS=(--num-layers 2 --hidden-size 256 --num-attention-heads 4 --vocab-size 1000 "--seq-length 1024") # sizes
[[ $TP -gt 1 && $TP -le 8 ]] && ARGS+=(--sequence-parallel)
if [ -e flag ]; then ARGS+=(--swiglu); fi
case $MODE in big) TP=8 ;; esac
for i in 1 2; do echo $i; done
ARGS+=(--micro-batch-size $(( TP * 2 )) --global-batch-size 32 --lr $(cat lr))
srun bash -c "torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES x.py ${ARGS[*]} --tensor-model-parallel-size 2 --pipeline-model-parallel-size $PP --bf16 \$EXTRA"
END
of predict $T/a.sh --cluster dgx-h100 --quick

# a program that is the first word of its command; := sets a variable
cat >$T/b.sh <<'END'
false && : "${LENGTH:=4096}"
: "${LENGTH:=1024}" ${LENGTH:=2048}
./pretrain_gpt.py --num-layers 2 --hidden-size 512 --num-attention-heads 8 --seq-length $LENGTH \
    --max-position-embeddings $LENGTH --micro-batch-size 1 --global-batch-size 8 --bf16
END
of predict $T/b.sh $small --set vocab=32000 --quick

# an error of a setting that the file does not have is an error of the file
bad predict --from '--num-layers 2 --hidden-size 256 --num-attention-heads 4 --seq-length 1024 --pipeline-model-parallel-size 4096 --context-parallel-size 4096 --bf16' $small --set vocab=1000
bad predict --from '--num-layers 2 --hidden-size 256 --num-attention-heads 4 --seq-length 1024 --tensor-model-parallel-size 4096 --context-parallel-size 4096 --bf16' $small --set vocab=1000
sed 's/^\[parallelism\]/&\ndata_parallel_replicate_degree = 2097152/; /^data_parallel_/{/2097152/!d}' $titan > $T/many.toml
bad predict $T/many.toml $small
