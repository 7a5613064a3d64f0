# Experts over ranks: states of memory are those worked out by hand, what is not modelled is refused by name
# Qwen3-30B-A3B: 28,991,029,248 parameters of experts and 1,541,093,376 others; 2 B of parameters, 4 B of gradients, and 12 B of the optimizer
# over the ranks that hold the same. 8 GPUs, ep 8: (18 x 3.624e9 + (6 + 12 / 8) x 1.541e9) B; 16 GPUs: 12 B over 2; ep 16: 18 x 1.812e9
for g in "1x8xb200 --ep 8" "2x8xb200 --ep 8" "2x8xb200 --ep 16"; do
  longhaul predict --model qwen3-30b-a3b --cluster $g --strategy local --seq 4K --weights zero1 --profile megatron-te --all 2> $T/note |
    grep -o "hp=1 dp=[0-9]* ep=[0-9]*\|at the peak parameters.*optimizer states [0-9.]* GiB"
done > $T/states
cat $T/states $T/note
# they are those of the table of docs/experts.md
sed 'N; s/hp=1 dp=\([0-9]*\) ep=\([0-9]*\)\n.*parameters \([^,]*\), gradients \([^,]*\), optimizer states \(.*\)/| \1 | \2 | \3 | \4 | \5 |/' $T/states > $T/rows
sed -n '/^| GPUs | ep/,/^$/p' $S/docs/experts.md | sed '1,2d; /^$/d' | diff - $T/rows && echo "$(grep -c . $T/rows) rows of the document"
refused() { longhaul "$@" 2>&1 || echo "exit $?"; }
what="predict --model qwen3-30b-a3b --cluster 2x8xh100 --quick"
refused predict --model qwen3-8b --cluster 2x8xh100 --quick --seq 32K --ep 2
refused $what --seq 32K --ep 3
refused $what --seq 32K --ep 32
refused $what --seq 32K --ep 16 --weights hsdp
# copies that do not divide over experts: some get one more
for m in "kimi-k2 --ep 32" "deepseek-v2 --ep 32" "qwen3-30b-a3b --ep 8 --ffn-chunks 3"; do
  longhaul predict --model $m --cluster dgx-h100 --nodes 32 --seq 128K --quick 2> $T/note | sed -n '/^model/p; /^tokens/p'
done
longhaul schedule --model deepseek-v2 --set layers=2 --cluster 1x8xh100 --seq 8K --ep 8 2> $T/note | grep -A1 -m1 "^routing" | cut -c1-100
refused $what --seq 32K --ep 2 --strategy megatron-sp
refused $what --seq 32K --ep 8 --strategy megatron-sp --tensor-plan replicated
longhaul $what --seq 1M --ep 8 --strategy fpdt 2> $T/note | grep ^layout
longhaul plan --model qwen3-30b-a3b --cluster 1x8xb200 --seq 4K --strategy local --weights zero1 --profile megatron-te --micro-batch 1 --top 1 2> $T/note |
  grep "^  longhaul predict"
longhaul $what --seq 1M --ep 16 --strategy 2d --hp 4 --json 2> $T/note | grep -o '"ep": [0-9]*'
# the host waits for the counts of dropless routing in each layer, and again where the forward is repeated
for p in neutral "megatron-te --activations keep" "megatron-te --activations full"; do
  longhaul schedule --model qwen3-30b-a3b --set layers=2 --cluster dgx-h100 --seq 4K --strategy local --ep 2 --weights zero1 --profile $p > $T/s.ir 2> $T/note
  grep -c host_sync $T/s.ir || true
done
# arguments of Megatron-LM, in which the preset is found; which layers have experts, and what is not read
args="--num-layers 48 --hidden-size 2048 --num-attention-heads 32 --group-query-attention --num-query-groups 4 --kv-channels 128 --ffn-hidden-size 6144
  --swiglu --normalization RMSNorm --norm-epsilon 1e-6 --disable-bias-linear --qk-layernorm --untie-embeddings-and-output-weights --position-embedding-type rope
  --rotary-base 1000000 --vocab-size 151936 --seq-length 4096 --max-position-embeddings 40960 --micro-batch-size 1 --global-batch-size 64 --attention-dropout 0
  --num-experts 128 --moe-router-topk 8 --moe-ffn-hidden-size 768 --moe-token-dispatcher-type alltoall --expert-model-parallel-size 8 --bf16"
longhaul predict --from "$args" --cluster 1x8xb200 --quick 2>&1 | sed -n '1,/--ep/p'
# how tokens travel, what an expert takes at most, and when shared experts are computed, in the words of three frameworks
said() { grep -o -- "--\(dispatcher\|expert-capacity\|expert-overlap\|shared-experts\) [a-z0-9.,-]*" | sort -u | tr '\n' ' '; echo; }
for a in "" "--moe-token-dispatcher-type allgather" "--moe-token-dispatcher-type flex --moe-enable-deepep" "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep" \
    "--moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity --moe-token-drop-policy position --moe-token-dispatcher-type alltoall" \
    "--moe-token-dispatcher-type alltoall --overlap-moe-expert-parallel-comm" \
    "--moe-token-dispatcher-type alltoall --overlap-moe-expert-parallel-comm --delay-wgrad-compute" \
    "--moe-token-dispatcher-type alltoall --moe-shared-expert-intermediate-size 768 --moe-shared-expert-overlap"; do
  longhaul predict --from "$(echo "$args" | sed 's/--moe-token-dispatcher-type alltoall//') $a" --cluster 1x8xb200 --quick 2>&1 | tr -s ' \\\n' ' ' | said
done
# the older form of module moe, beside core_attn or the modules that are named
for a in "" "--recompute-granularity selective --recompute-modules moe_act" "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"; do
  longhaul predict --from "$args $a --moe-layer-recompute" --cluster 1x8xb200 --quick 2>&1 | tr -s ' \\\n' ' ' |
    grep -o -e "--activations [a-z-]*" -e "--recompute-modules [a-z_,]*" -e "not modelled --moe-layer-recompute[^:]*: [^:]*: they are" | tr '\n' ' '
  echo
done
# what YaRN does to angles and scores
longhaul predict --from "$args --mscale 1.0 --mscale-all-dim 1.0 --yarn-beta-fast 32 --no-yarn-correction-range-round-to-int --softmax-scale 0.1" --cluster 1x8xb200 --quick 2>&1 | sed -n '/not modelled/,/^Fits/p' | grep -v ^Fits
# no capacity by a negative factor; what only one dispatcher takes, and what has no other form here
for a in "--moe-expert-capacity-factor -1 --moe-pad-expert-input-to-capacity" "--moe-enable-deepep" "--delay-wgrad-compute"; do
  longhaul predict --from "$args $a" --cluster 1x8xb200 --quick 2>&1 | sed -n '/not modelled/,/^Fits/p' | grep -v ^Fits
done
longhaul predict --from "$(echo "$args" | sed 's/-type alltoall/-type flex/') --moe-flex-dispatcher-backend ncclep" --cluster 1x8xb200 --quick 2>&1 |
  sed -n '/--ep/p; /not modelled/,/predicted/p'
refused predict --from "$args --moe-token-drop-policy last" --cluster 1x8xb200 --quick
refused predict --from "$args --moe-expert-capacity-factor 0" --cluster 1x8xb200 --quick
refused predict --from "$(echo "$args" | sed 's/-type alltoall/-type deepep/')" --cluster 1x8xb200 --quick
longhaul predict --from "$args --moe-layer-freq '([0]*3+[1]*45)' --moe-router-score-function sigmoid --moe-router-topk-scaling-factor 2.5" --cluster 1x8xb200 --quick 2>&1 |
  grep -o "dense_layers=[0-9]*\|router=[a-z]*\|router_norm=[a-z]*\|router_scale=[0-9.]*"
refused predict --from "$args --moe-layer-freq '([0]*3+[1]*58)'" --cluster 1x8xb200 --quick
refused predict --from "$args --moe-layer-freq 2" --cluster 1x8xb200 --quick
refused predict --from "$args --moe-router-score-function tanh" --cluster 1x8xb200 --quick
# shares of experts: what is printed of them, in text and JSON; files; what cannot be read
uneven="--model qwen3-30b-a3b --cluster 2x8xh100 --quick --seq 32K --ep 8"
longhaul predict $uneven --routing dirichlet:2,3 2> $T/note | grep ^routing
longhaul predict $uneven --routing dirichlet:2,3 --json 2> $T/note | sed -n '/"uneven_routing"/,/}/p'
printf 'layer,expert,share\n*,0,2\n*,1,1\n*,100,1\n*,101,1\n*,102,1\n*,103,1\n*,104,1\n*,105,1\n*,106,1\n' > $T/shares.csv
(cat $T/shares.csv; echo '*,0,2') > $T/twice.csv
longhaul predict $uneven --routing $T/shares.csv 2> $T/note | grep ^routing
cat $T/note
refused $what --seq 32K --routing $T/twice.csv
refused $what --seq 32K --routing dirichlet:0
refused predict --model llama3-8b --cluster 1x8xh100 --quick --seq 32K --routing dirichlet:1
# exchanges beside another micro-batch: what they gain, with one pass listed more where stages are interleaved, and what is refused
beside="predict --model qwen3-30b-a3b --cluster 1x8xb200 --quick --seq 4K --strategy local --ep 8 --profile megatron-te --zero 1 --activations keep --optimizer host"
for o in none micro-batch delayed-wgrad; do
  longhaul $beside --batch 64 --expert-overlap $o --all 2> $T/note | grep "^layout\|^step  \|waiting for all-to-all" | sed 's/ *#*$//'
done
# with one micro-batch there is nothing to overlap
for o in micro-batch delayed-wgrad; do longhaul $beside --batch 8 --expert-overlap $o 2>&1 | grep "^--expert-overlap" || echo "$o: no note"; done
# but shared experts, which torchtitan has beside the return of results, move before the exchanges
for o in none micro-batch; do
  longhaul predict --model deepseek-v3 --set layers=8 --cluster dgx-h100 --gpus 16 --quick --seq 4K --strategy local --ep 8 --pp 2 --pipeline interleaved --virtual-stages 2 --batch 16 --profile torchtitan \
    --weights zero1 --activations keep --expert-overlap $o 2>&1 | grep "^step  \|^--expert-overlap"
done
longhaul schedule --model qwen3-30b-a3b --set layers=4 --cluster 1x8xh100 --seq 4K --strategy local --ep 2 --pp 2 --pipeline interleaved --virtual-stages 2 --batch 16 --weights zero1 \
  --activations keep --expert-overlap delayed-wgrad > $T/s.ir 2> $T/note
longhaul check $T/s.ir | tail -1
with="$what --gpus 8 --seq 4K --ep 4 --batch 16 --expert-overlap micro-batch --strategy"
for a in "local --zero 1 --activations keep --pp 2" "local --zero 1 --activations keep --pp 2 --pipeline interleaved --virtual-stages 1" "local --zero 1 --activations keep --ffn-chunks 2" "local --zero 1 --activations keep --dispatcher allgather" \
    "local --zero 1 --activations keep --shared-experts both" "local --zero 1 --activations full" "local --zero 1 --recompute-modules moe" \
    "local --zero 3 --activations keep" "local --zero 2 --activations keep" "fpdt --zero 1 --activations keep"; do
  refused $with $a 2>&1 | grep error
done
# gradients of uneven counts, over ranks
cat > $T/small.json <<END
{"longhaul_transformer": 1, "name": "small", "layers": 2, "hidden": 32, "heads": 4, "kv_heads": 4, "head_dim": 8, "ffn": 48, "vocab": 64,
 "activation": "swiglu", "norm": "rmsnorm", "norm_eps": 1e-5, "positions": "rope", "rope_theta": 10000, "experts": 8, "experts_per_token": 2,
 "expert_ffn": 16, "router": "softmax", "bias_qkv": false, "bias_o": false, "bias_ffn": false, "tied_head": false, "sources": {"*": "made up"}}
END
longhaul run --check --model $T/small.json --cluster ideal --gpus 4 --seq 64 --ep 4 --routing dirichlet:1 2> $T/note | tail -1
longhaul schedule --model $T/small.json --cluster ideal --gpus 4 --seq 64 --ep 4 --routing dirichlet:1 2> $T/note > $T/s.ir
longhaul check $T/s.ir | grep ^routing
# Rows of tokens that travel between nodes widen the interval; within a node they are a mechanism that was never measured.
for ep in 8 16; do
  longhaul predict --model qwen3-30b-a3b --cluster dgx-h100 --nodes 2 --ep $ep --seq 4K --quick --json | grep -A1 '"feature": "\(exchange\|mechanism\)"' | grep -o 'ulysses with experts.*' | sort -u
done
# what no run has measured: experts whose ranks have other stages between them leave a node; a core plan counts with experts, too
for o in "--pp 2" "--pp 2 --stage-placement inner" "--core-plan per-document"; do
    longhaul predict --quick --model qwen3-30b-a3b --cluster dgx-h100 --gpus 16 --seq 32K --strategy ring --cp 2 --ep 8 --batch 16 $o 2> $T/note | grep -o 'never measured: .*ring with [a-z ]*' | grep -o 'ring with.*'
done
# copies above a capacity are dropped, and tokens travel in other ways, with exact gradients; what goes together is said
for o in "--expert-capacity 0.75" "--expert-capacity 1.5,pad,position" "--dispatcher allgather" "--dispatcher deepep"; do
  longhaul run --check --model $T/small.json --cluster ideal --gpus 4 --seq 64 --ep 4 --routing dirichlet:1 $o 2> $T/note | tail -1
  longhaul schedule --model $T/small.json --cluster ideal --gpus 4 --seq 64 --ep 4 --routing dirichlet:1 $o 2> $T/note > $T/s.ir
  grep ^routing $T/s.ir
  longhaul check $T/s.ir | grep ^routing
done
# how many copies are dropped, and that the fullest rank is held to the mean of what is left: half of all with even routing
for o in "--expert-capacity 0.5" "--expert-capacity 0.5,pad --routing dirichlet:2,3" "--expert-capacity 1,position --routing dirichlet:2,3" "--expert-capacity 1.25"; do
  longhaul predict $uneven $o 2>&1 | grep -o '[0-9.]* times the mean\|experts drop.*computed\|no expert has more.*dropped' | tr '\n' ' '
  echo "$o"
done
# DeepEP sends a token once to a rank: there is room for the fullest rank, which has 6 of 8 tokens
for o in alltoall deepep; do
  longhaul schedule --model qwen3-30b-a3b --set layers=1 --cluster dgx-h100 --seq 32K --strategy ulysses --hp 8 --ep 8 --dispatcher $o 2> $T/note | grep -o "all_to_all comm.ep .*bytes=[0-9]*" | head -1
done
wide="predict --model qwen3-30b-a3b --cluster dgx-h100 --nodes 8 --quick --seq 32K --ep 64 --profile megatron-te --strategy local"
for o in "" "--dispatcher allgather" "--dispatcher deepep" "--dispatcher hybridep" "--expert-capacity 2,pad"; do
  longhaul $wide $o 2> $T/note | sed -n 's/ (90.*//; /^step/p'
done
longhaul predict --model deepseek-v2-lite --cluster dgx-h100 --quick --seq 8K --ep 8 --profile megatron-te --strategy local --shared-experts both 2> $T/note | sed -n 's/ (90.*//; /^step/p'
longhaul predict --model deepseek-v2-lite --cluster dgx-h100 --quick --seq 8K --ep 8 --profile megatron-te --strategy local 2> $T/note | sed -n 's/ (90.*//; /^step/p'
refused $what --seq 32K --ep 8 --expert-capacity 1 --dispatcher deepep
refused $what --seq 32K --ep 8 --expert-capacity 1,padded
refused $what --seq 32K --ep 8 --expert-capacity 1,pad,pad
refused $what --seq 32K --ep 8 --expert-capacity 1,position,pad,position
longhaul $what --seq 32K --ep 8 --expert-capacity 123.456789,pad --json 2> $T/note | grep expert_capacity
# The fast end of a wide interval is the time of the model's flops at the device's peak, which is higher for products in 8 bits. Copies
# that experts drop do not count.
for o in "llama4-scout --nodes 8 --seq 128K --strategy ulysses" "llama4-scout --nodes 8 --seq 8K --strategy local --activations keep" "llama4-scout --nodes 8 --seq 8K --strategy local --activations keep --products fp8-tensor" \
         "qwen3-30b-a3b --nodes 2 --seq 8K --strategy local --activations keep --batch 64 --expert-capacity 0.1"; do
  longhaul predict --quick --cluster dgx-h100 --ep 16 --model $o 2> $T/note | grep "^step\|^MFU\|model flops"
done
refused predict --model deepseek-v2-lite --cluster dgx-h100 --quick --seq 8K --ep 8 --shared-experts both --dispatcher allgather
longhaul $what --seq 32K --dispatcher deepep --shared-experts both 2>&1 | grep "changes nothing"
# the search that is named keeps the work, its numbers and the code, and leaves out the layout
longhaul $what --gpus 8 --seq 8K --ep 8 --routing dirichlet:4 --expert-capacity 1.25 --products fp8-tensor --bf16-layers 2 --states bf16 --kernels compiled --checkpoint none 2> $T/note | grep 'longhaul plan'
longhaul $what --gpus 8 --seq 8K --ep 8 --dispatcher deepep --gradients fp32 2> $T/note | grep 'longhaul plan'
# chunks of Llama 4: core plans that only deal tokens are exact; those with tiles, and rows that ranks need, are refused
for o in "--core-plan chunks:16" "--core-plan blocks:16" "--rotate needed"; do
  longhaul run --check --model llama4-scout --set layers=4,hidden=64,heads=4,kv_heads=2,head_dim=16,ffn=64,vocab=96,experts=8,expert_ffn=32,shared_ffn=32,attention_window=64 \
    --seq 256 --gpus 4 --cluster ideal --strategy ring --cp 4 $o 2>&1 | tail -1
done
