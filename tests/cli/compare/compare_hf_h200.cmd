# A step that Hugging Face's Trainer took on an H200, as the PyTorch profiler recorded it: nearly all of its kernels find
# their op. cuBLASLt's memsets inside a product's operator are not the product.
trace=$S/tests/data/recorded/hf-llama-1b-8k-h200.json.gz
what="--model $S/tests/data/recorded/hf-llama-1b.config.json --seq 8K --cluster h200 --gpus 1 --strategy local --activations full"
longhaul predict $what --profile hf-ddp --quick -o $T/hf > $T/predicted
longhaul compare $T/hf $trace --by kind | sed -n '/^step/p; /^matched/p; /^layers/p; /^kind/,/^$/p'
# a device file that is fitted to it: no kind of work is faster than the memory
longhaul calibrate $trace $what -o $T/device.json | sed -n 's/ (.*//; /^recorded/p; /: [0-9]* points*,/p'
longhaul predict $what --costs $T/device.json | sed -n '/^step/p'
# what is packed and not whole
head -c 100000 $trace > $T/cut.json.gz
longhaul compare $T/hf $T/cut.json.gz 2>&1 | sed "s|$T/||"
