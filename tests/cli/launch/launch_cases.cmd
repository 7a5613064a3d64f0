# Launch files that were once misread (tests/data/launch_cases/README.md), each as options.
cd $S/tests/data/launch_cases
read_it() {
    echo "== $*"
    longhaul predict "$@" --cluster dgx-h100 --quick 2>&1 >/dev/null | sed '/^note: /d' || true
}
read_it accelerate-offload.yaml --model llama3-8b --seq 8K --nodes 1
read_it axolotl-short.yaml --model llama3-8b --nodes 1
read_it axolotl-smollm2.yaml --nodes 1
read_it axolotl-tp-cp.yaml --nodes 1
read_it deepspeed-unknown.json --model llama3-8b --seq 8K --nodes 1
read_it deepspeed-heredoc-wandb.sh --set vocab=50304
read_it megatron-heredoc-notes.sh
read_it megatron-no-optimizer.sh
read_it torchtitan-8b-131k.toml --nodes 1
read_it trainer-rank.sh --model llama3-8b
read_it trl-offload.yaml --model llama3-8b --nodes 1
read_it verl-sft.sh
read_it verl-short.sh --model llama3-8b --seq 8K
