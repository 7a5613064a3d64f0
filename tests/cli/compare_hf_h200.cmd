# A step that Hugging Face's Trainer took on an H200, as the PyTorch profiler recorded it: nearly all of its kernels find
# their op. cuBLASLt's memsets inside a product's operator are not the product.
gunzip -c $S/tests/data/recorded/hf-llama-1b-8k-h200.json.gz > $T/hf.json
what="--model $S/tests/data/recorded/hf-llama-1b.config.json --seq 8K --cluster h200 --gpus 1 --strategy local --activations full"
longhaul predict $what --profile hf --quick -o $T/hf > $T/predicted
longhaul compare $T/hf $T/hf.json --by kind | sed -n '/^step/p; /^matched/p; /^layers/p; /^kind/,/^$/p'
# a device file that is fitted to it: no kind of work is faster than the memory
longhaul calibrate $T/hf.json $what -o $T/device.json | sed -n 's/ (.*//; /^recorded/p; /: [0-9]* points*,/p'
longhaul predict $what --costs $T/device.json | sed -n '/^step/p'
