# Settings of frameworks. What a framework has no setting for stands in comments.
fields=layers=4
model="--model llama3-8b --cluster dgx-h100"
# implementations are the frameworks' own, where nothing else is asked for
longest() {
    case " $* " in *" --profile "*) ;; *) set -- --profile published "$@" ;; esac
    case " $* " in
    *" torchtitan "*) longhaul plan --longest $model "$@" ;; # whose flavors are whole models
    *) longhaul plan --longest $model --set $fields "$@" ;;
    esac
}

# one configuration, whatever becomes of it
longest --gpus 8 --strategy ring --cp 2 --pp 2 --batch 8 --pipeline interleaved --profile torchtitan --emit torchtitan | grep -v '^seq_len'
longest --gpus 4 --strategy 2d --cp 2 --hp 2 --checkpoint offload --emit megatron | grep -vE '^--(seq|max-pos)'
longest --gpus 4 --strategy 2d --cp 2 --hp 2 --checkpoint offload --emit deepspeed | grep -vE '^--(seq|max-pos)'

# the model, where it is not the one above: sizes, biases, norms, positions, a tied head
of() { # MODEL FRAMEWORK
    longhaul plan --longest --model $1 --set layers=2 --cluster dgx-h100 --gpus 1 --strategy local --emit $2 |
        grep -E 'layers|hidden|heads|kv-ch|group|swiglu|bias|norm|posi|rotary|vocab|tie|flavor|settings make|llama3|dim=|biases'
}
longhaul plan --longest --model llama3-70b --cluster dgx-h100 --nodes 4 --tp 8 --weights zero3 --strategy megatron-sp --emit torchtitan | grep flavor
of gpt2 megatron
of qwen2-7b megatron
of qwen2-7b deepspeed
# torchtitan's models are flavors: of llama3, and of qwen3
qwen3="heads=32,kv_heads=8,head_dim=128,vocab=151936,qk_norm=true,rope_theta=1000000,norm_eps=1e-6"
flavor() { longhaul plan --longest --model $* --cluster dgx-h100 --gpus 8 --strategy local --weights zero3 --profile torchtitan --emit torchtitan 2>&1 | grep -E '^name|flavor|vocabulary|error'; }
flavor layers=36,hidden=4096,ffn=12288,$qwen3
flavor layers=36,hidden=2560,ffn=9728,tied_head=true,$qwen3
flavor layers=36,hidden=4096,ffn=12288,${qwen3%,rope*}
flavor layers=4,hidden=4096,ffn=12288,$qwen3
flavor qwen2-7b
flavor gpt2
flavor gpt-oss-20b --set vocab=1000
longhaul plan --longest --model layers=28,hidden=1024,heads=16,ffn=3072,kv_heads=8,head_dim=128,vocab=151936,qk_norm=true,tied_head=true,rope_theta=1000000,norm_eps=1e-6 --cluster dgx-h100 --gpus 8 --pp 2 --batch 8 --strategy local --profile torchtitan --emit torchtitan 2>&1 | grep Qwen3

# degrees multiply to the GPUs; what is not expressed, row by row of the table
gaps() { # FRAMEWORK OPTIONS
    echo "$*"
    longest --emit "$@" | sed -n '/^# not expr/,/^[^#]/p' | grep '^#  '
}
gaps torchtitan --gpus 8 --hp 2 --weights hsdp --shard 4 --optimizer host --dtype f16
longest --emit torchtitan --gpus 8 --hp 2 --weights hsdp --shard 4 | grep degree
gaps torchtitan --gpus 8 --hp 4 --weights hsdp --shard 2 --activations selective-offload
longest --emit torchtitan --gpus 8 --hp 4 --weights hsdp --shard 2 | grep degree
gaps torchtitan --gpus 8 --strategy ring --cp 8 --layout striped --attention cudnn --weights zero1
gaps torchtitan --gpus 8 --strategy ring --cp 4 --window 2 --weights zero2
gaps torchtitan --nodes 2 --pp 2 --hp 1 --batch 8 --pipeline zb-1p --compile --profile torchtitan --stage-placement inner
gaps torchtitan --gpus 8 --strategy megatron-sp --tp 4 --weights hsdp --shard 1 --profile torchtitan
gaps torchtitan --gpus 8 --strategy megatron-sp --tp 4 --weights hsdp --shard 1 --profile torchtitan --dtype f32
whole=$model
model="--model layers=6,hidden=256,heads=16,ffn=768,vocab=2048,rope_theta=500000 --cluster dgx-h100" # the flavor debugmodel
gaps torchtitan --gpus 8 --strategy ring --cp 4 --weights hsdp --shard 1 --profile torchtitan
gaps torchtitan --gpus 4 --strategy megatron-sp --tp 4 --loss-chunks 8 --ffn-chunks 8 --profile torchtitan
model=$whole
gaps megatron --gpus 8 --strategy megatron-sp --tp 2 --pp 2 --pipeline gpipe --batch 4 --weights zero3
gaps megatron --gpus 8 --strategy 2d --cp 2 --hp 2 --rotate all-gather --placement context-first --compile
fields=layers=4,kv_heads=4
gaps megatron --gpus 8 --hp 8 --profile megatron-te
fields=layers=7
gaps megatron --gpus 2 --strategy megatron-sp --tp 1 --pp 2 --batch 4 --pipeline zb-v
fields=layers=4
gaps megatron --gpus 4 --strategy sppo --tp 1 --pp 4 --subsequences 8
gaps deepspeed --gpus 8 --hp 2 --pp 2 --zero 2 --batch 4
gaps deepspeed --gpus 8 --strategy local --weights hsdp --shard 4 --profile deepspeed
gaps deepspeed --gpus 8 --strategy fpdt --chunk 32K --loss-chunks 4 --chunk-order query-outer --fetch one
fields=layers=9
gaps deepspeed --gpus 8 --strategy megatron-sp --tp 2 --pp 4 --pipeline interleaved --batch 4
fields=layers=4
# and where all is expressed
for options in "torchtitan --strategy ring --cp 8 --profile torchtitan" "torchtitan --strategy megatron-sp --tp 2 --weights zero3 --profile torchtitan" \
    "megatron --strategy 2d --cp 2 --hp 4 --profile megatron-te" "megatron --strategy megatron-sp --tp 4 --pp 2 --batch 4" \
    "megatron --strategy local --zero 1 --profile megatron --gradients fp32" "torchtitan --strategy local --zero 3 --profile torchtitan --gradients fp32" \
    "deepspeed --strategy ulysses" "deepspeed --strategy fpdt --chunk 32K" "deepspeed --strategy megatron-sp --tp 2 --pp 2 --batch 4 --profile deepspeed"; do
    echo "$options: $(longest --gpus 8 --emit $options | grep -c '^# not expressed')"
done
for places in outer inner; do
    longest --gpus 8 --emit megatron --strategy megatron-sp --tp 2 --pp 2 --batch 4 --stage-placement $places | grep -c mapping || true
done
longest --gpus 8 --emit torchtitan --strategy ring --cp 8 --compile --profile torchtitan | grep -A1 compile
