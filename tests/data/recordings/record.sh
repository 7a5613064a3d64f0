#!/bin/sh
# Records the steps of this folder anew. $1 is a Python with PyTorch, transformers, diffusers and longhaul.
set -e
cd "$(dirname "$0")"
record() {
    ranks=$1 rank=$2 name=$3
    shift 3
    echo "== $name"
    "$python" -W ignore -m longhaul.record --world-size "$ranks" --rank "$rank" -o "$name.json.gz" "$@"
}
python=${1:-python3}
record 1 0 llama-one train.py llama-small --tokens 1024
record 8 0 llama-fsdp train.py llama-small --tokens 1024 --mixed
record 16 0 llama-hsdp-tp train.py llama-small --tokens 1024 --mixed --replicate 2 --tp 2
record 8 0 gpt-neox-20b train.py gpt-neox-20b --layers 2
record 8 0 qwen3-30b-a3b train.py qwen3-30b-a3b --layers 2 --accelerate
record 8 0 gpt-6.7b train.py gpt-6.7b --layers 2 --tokens 2048 --batch 4 --accelerate
record 8 0 llama3-8b train.py llama3-8b --layers 2 --accelerate
record 8 0 llama3-8b-checkpoint train.py llama3-8b --layers 2 --accelerate --checkpoint
record 16 0 llama3-8b-hsdp train.py llama3-8b --layers 2 --accelerate --replicate 2
record 8 0 llama3-8b-tp train.py llama3-8b --layers 2 --tp 8
record 8 0 llama3-8b-tp-fsdp train.py llama3-8b --layers 2 --tp 4
record 1 0 smollm2-1.7b train.py smollm2-1.7b --tokens 16384 --accelerate
cp "${BENCH:-../../../bench/gpu}"/hf_step.py "${BENCH:-../../../bench/gpu}"/skip.py .
record 1 0 hf-1b-h200 --device h200 hf_step.py llama3.2-1b:16384
record 1 0 hf-1b-h100 --device h100-sxm hf_step.py llama3.2-1b:8192
rm hf_step.py skip.py
record 1 0 mamba2-2.7b train.py mamba2-2.7b --layers 2
record 1 0 sd3-medium train.py sd3-medium --layers 2
for what in ring ulysses; do record 4 0 $what small.py $what; done
record 1 0 compile small.py compile
for rank in 0 1 2 3; do record 4 $rank stage-$rank small.py stage; done
for rank in 0 2; do record 4 $rank grid-$rank small.py grid; done
for rank in 0 2; do record 4 $rank interleaved-$rank interleaved.py; done
