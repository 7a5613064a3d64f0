# dropout of attention scores: profile deepspeed has it, but for fpdt; with it kernels take 1.15 times as long
what="--model llama3-8b --cluster dgx-a100 --gpus 8 --seq 128K --quick"
attention() {
    longhaul predict $what "$@" -o $T/p > $T/out
    grep -v '^#' $T/p/ops.csv |
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            $at["kind"] == "attention" && !seen++ { print $at["end_s"] - $at["start_s"] }'
}
ratio() { paste $T/a $T/b | awk '{ printf "%.2f\n", $1 / $2 }'; }
attention --dropout on > $T/a; attention > $T/b; ratio
grep -c 'attention dropout' $T/out || :
attention --profile deepspeed > $T/a; attention --profile deepspeed --dropout off > $T/b; ratio
grep -o 'no dropout' $T/out
bad() { longhaul "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
bad predict $what --strategy fpdt --dropout on
bad run --model longhaul-3m --seq 64 --dropout on
