# dropout of attention scores: the model's file or an option says it, never a profile; with it kernels take 1.15 times as long
what="--cluster dgx-a100 --gpus 8 --seq 128K --quick"
attention() {
    longhaul predict $what "$@" -o $T/p > $T/out
    grep -v '^#' $T/p/ops.csv |
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            $at["kind"] == "attention" && !seen++ { print $at["end_s"] - $at["start_s"] }'
}
ratio() { paste $T/a $T/b | awk '{ printf "%.2f\n", $1 / $2 }'; }
llama="--model llama3-8b"
attention $llama --dropout on > $T/a; grep -o 'attention dropout' $T/out; attention $llama > $T/b; ratio
grep -c 'attention dropout' $T/out || :
for profile in deepspeed megatron-te internevo; do
    attention $llama --profile $profile > $T/a; attention $llama --profile $profile --dropout off > $T/b; ratio
done
# a config.json says it, and --dropout off says otherwise
cat > $T/config.json <<END
{"model_type": "gpt2", "n_embd": 768, "n_layer": 2, "n_head": 12, "n_positions": 131072, "vocab_size": 50257, "attn_pdrop": 0.1}
END
gpt2="--model $T/config.json --hp 4 --dp 2"
attention $gpt2 > $T/a; grep -o 'attention dropout' $T/out; attention $gpt2 --dropout off > $T/b; ratio
sed 's/"attn_pdrop": 0.1/"attn_pdrop": 0.0/' $T/config.json > $T/none.json
attention --model $T/none.json --hp 4 --dp 2 > $T/a; ratio
attention $gpt2 --strategy fpdt > $T/a; grep -c 'attention dropout' $T/out || :
bad() { longhaul "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
bad predict $llama $what --strategy fpdt --dropout on
bad run --model longhaul-3m --seq 64 --dropout on
sed 's/0.1/1.5/' $T/config.json > $T/wrong.json
longhaul predict --model $T/wrong.json $what 2>&1 | sed "s|$T|T|"
