# Trainer's family: settings are read back to the same options, and what has none is refused by name, with nothing written
back() { # FRAMEWORK OPTIONS: written, and read again
    echo "$*"
    longhaul plan --longest --model qwen3-0.6b --nodes 1 --cluster dgx-h100 --profile hf --emit "$@" > $T/emitted || return 0
    grep -vE '^(sequence_len|cutoff_len|  --max_length)' $T/emitted
    longhaul predict --from $T/emitted --cluster dgx-h100 --quick $(test $1 = trl || echo --gpus 8) 2>&1 > $T/predicted |
        sed -zE 's/ --seq[ \\\n]+[0-9]+//' | sed '/^  [a-z]/,$d; /^note/d; 1d'
}
back axolotl --strategy ring --cp 2 --rotate all-gather --attention fa2 --layout contiguous --ffn-chunks 4 --kernels liger --loss fused
back axolotl --strategy local --weights zero1 --checkpoint offload --loss chunked --states 8bit
back llama-factory --strategy local --weights zero2 --optimizer host --kernels compiled --loss compiled
back llama-factory --strategy local --weights zero3 --reshard never --states bf16 --kernels liger --loss fused
back trl --strategy ring --cp 2 --weights hsdp --shard 4 --rotate all-to-all
back trl --strategy megatron-sp --tp 2 --tensor-plan replicated --weights zero3 --batch 8 --micro-batch 2
back axolotl --strategy local --weights zero2 --batch 16 --grad-sync each
back trl --strategy local --weights zero3 --optimizer host --attention fa3
back axolotl --strategy ulysses --pp 2 --batch 8 --optimizer host
back llama-factory --strategy ring --cp 8 --weights zero1 --loss te
back trl --strategy local --weights hsdp --shard 1 --checkpoint selective++ --loss fused --ffn-chunks 2
longhaul plan --longest --model gpt-7b --cluster dgx-h100 --gpus 8 --strategy local --emit trl || echo "exit $?"
longhaul plan --model qwen3-0.6b --cluster dgx-h100 --gpus 8 --seq 32K --profile hf --strategy local --emit llama-factory | sed -n '2s/: .*//p; /^[a-z]/p'
