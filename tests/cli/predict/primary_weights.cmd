# --primary-weights quantised: linear layers keep 8- or 4-bit copies and no 16-bit parameters, and these are gathered. The
# Hopper GPU needs a transposed copy of each, and mxfp8 has two copies anyway.
P='--model llama3-8b --strategy local --batch 16 --seq 8K --gradients 16bit --activations keep'
state() {
    longhaul predict --quick $P --profile megatron-te --weights zero1 "$@" --json 2>/dev/null | python3 -c '
import json, sys
p = json.load(sys.stdin)
print("%-70s step %.3f s, parameters %.2f GiB" % (
    " ".join(sys.argv[1:]), p["step_s"], p["memory"]["at_peak"]["peak_parameter_bytes"] / 2**30))' "$@"
}
for o in 'gb300 --products fp8-tensor' 'dgx-h100 --products fp8-delayed' 'gb300 --products mxfp8' 'gb300 --products nvfp4'; do
    state --gpus 8 --cluster $o
    state --gpus 8 --cluster $o --primary-weights quantised
    state --gpus 8 --cluster $o --primary-weights quantised --param-gather overlap
done
longhaul predict --quick $P --profile megatron-te --weights zero1 --gpus 8 --cluster gb300 --products fp8-tensor --primary-weights quantised --param-gather overlap 2>/dev/null | grep ^layout
# the schedules obey the rules: one all-reduce of the largest elements, then a cast and a gather of each layer group's part
M='--model layers=3,hidden=64,heads=4,ffn=128,vocab=96 --cluster cpu-node --seq 256 --strategy local --profile megatron-te'
for o in '--gpus 2 --products fp8-tensor' '--gpus 1 --products fp8-tensor' '--gpus 2 --products nvfp4' '--gpus 2 --products mxfp8 --param-gather overlap' '--gpus 4 --pp 2 --products fp8-delayed --activations full' '--gpus 2 --products fp8-tensor --bf16-layers 1'; do
    longhaul schedule $M --batch 8 --micro-batch 1 --weights zero1 $o --primary-weights quantised > $T/primary.ir
    longhaul check $T/primary.ir | tail -1
    sed -n 's/.*op [^ ]* \(quantise\|all_gather\|all_reduce\) .*\(writes \(amax\|w_\)[a-z_]*\).*/\1 \2/p' $T/primary.ir | sort | uniq -c
done
X=$(echo "$M" | sed 's/vocab=96/&,experts=4,experts_per_token=2,expert_ffn=48/')
longhaul schedule $X --gpus 4 --ep 2 --batch 8 --weights zero1 --products fp8-tensor --primary-weights quantised > $T/experts.ir
longhaul check $T/experts.ir | tail -1
longhaul schedule $X --gpus 2 --batch 8 --weights zero1 --products fp8-tensor --primary-weights quantised > $T/experts.ir
longhaul check $T/experts.ir | tail -1
# they are not executed
longhaul run --check $M --dtype bf16 --gpus 2 --batch 4 --weights zero1 --products fp8-tensor --primary-weights quantised || echo "exit $?"
# parameters that are gathered beside the next forward are exact
for o in '--gpus 4 --batch 4 --weights zero1' '--gpus 4 --batch 4 --weights zero1 --shard 2' '--gpus 4 --batch 4 --pp 2 --weights zero1' '--gpus 4 --batch 8 --weights zero2'; do
    longhaul run --check $M --dtype bf16 $o --param-gather overlap 2>&1 | tail -1
done
# what is not modelled is refused by name
W='--profile megatron-te --weights zero1'
for o in "$W --primary-weights quantised" "$W --products fp8-row --primary-weights quantised" '--weights zero1 --products fp8-tensor --primary-weights quantised --profile torchtitan' "$W --products fp8-tensor --primary-weights quantised --optimizer host" '--param-gather overlap --weights zero3' "$W --param-gather overlap --states bf16" "$W --param-gather overlap --optimizer host"; do
    longhaul predict --quick $P --cluster dgx-h100 --gpus 8 $o || echo "exit $?"
done
# settings of frameworks
F='pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 --vocab-size 512 --bf16 --use-distributed-optimizer --transformer-impl transformer_engine'
for o in '--overlap-param-gather --overlap-grad-reduce' '--fp8-format hybrid --fp8-recipe tensorwise --fp8-param-gather' '--fp4-format e2m1 --fp4-param-gather --overlap-param-gather --overlap-grad-reduce' '--fp8-format e4m3 --fp8-recipe blockwise --fp8-param-gather' '--fp8-format e4m3 --fp8-recipe mxfp8 --fp8-dot-product-attention'; do
    longhaul predict --quick --from "$F $o" --cluster gb300 --gpus 8 2>$T/note | sed -n 's/^layout.*weights/weights/p'
    grep -h -e 'param-gather' -e 'fp8-dot' $T/note || true
done
# sharded parameters are gathered in 8 bits: a byte an element where 16 bits send two, quantised before each gather by torchao
# and once a step by Megatron-FSDP
Z='--strategy local --weights zero3 --products fp8-tensor --primary-weights quantised --gpus 2 --batch 8 --micro-batch 1'
M3=${M%--strategy*}
for o in '--profile torchtitan' '--profile torchtitan --activations full' '--profile megatron-te' '--profile torchtitan --bf16-layers 1' '--profile torchtitan --weights hsdp --shard 2 --gpus 4'; do
    echo "$o"
    longhaul schedule $M3 $(echo "$Z $o" | sed 's/--weights zero3 \(.*--weights hsdp\)/\1/; s/--gpus 2 \(.*--gpus 4\)/\1/') > $T/sharded.ir
    longhaul check $T/sharded.ir | tail -1
    sed -n 's/.*op [^ ]* \(quantise\|all_gather\|all_reduce\) .*\(writes \(amax\|w_\|gathered\)[a-z_]*\).*/\1 \2/p' $T/sharded.ir | sort | uniq -c
done
longhaul run --check $M3 --strategy local --profile torchtitan --weights zero3 --dtype bf16 --gpus 2 --batch 4 --products fp8-tensor --primary-weights quantised || echo "exit $?"
longhaul predict --quick $P --cluster dgx-h100 --gpus 8 --profile megatron-te --weights zero3 --products mxfp8 --primary-weights quantised || echo "exit $?"
# torchtitan's files: the all-gather, and micro-batches of the pipeline, as many as stages where the degree is in [experimental]
titan() {
    printf '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nbatch_size = 32\nseq_len = 8192\n[float8]\n' > $T/titan.toml
    printf 'enable_float8_linear = true\nenable_fsdp_float8_all_gather = true\n%s\n[experimental]\n%s\n' "$1" "$2" >> $T/titan.toml
    longhaul predict --quick --from $T/titan.toml --cluster dgx-h100 --nodes 4 --gpus 32 2>$T/note | sed -n 's/^layout  *//p'
    grep -h -A2 -e 'not modelled.*float8' -e 'not modelled.*microbatch' $T/note || true
}
titan 'precompute_float8_dynamic_scale_for_fsdp = true' ''
titan 'precompute_float8_dynamic_scale_for_fsdp = false' 'pipeline_parallel_degree = 4'
titan '' 'pipeline_parallel_degree = 4
pipeline_parallel_microbatches = 16'
