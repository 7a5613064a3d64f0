# A run that does less than is predicted: what does not fit may fit, and the reasons are said; what fits is sure
most() { longhaul predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 4K --strategy local --quick --at-most "$@" || echo "exit $?"; }
said() { sed -n '1p; /^How sure/,/^$/p; /^exit/p'; }
most adapter --weights replicated | said
most lengths,adapter --weights zero3 | said
most lengths --json | grep -A3 '"at_most"'
# what cannot be meant, and what a measured run does not have
most length
most adapter,
longhaul run --model gpt2 --seq 1K --gpus 1 --at-most adapter || echo "exit $?"
