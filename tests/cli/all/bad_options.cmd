bad() { longhaul "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
bad frobnicate
bad completion
bad help man
bad validate rows.csv
bad predct
bad help prdict
bad predict --modle x
bad predict -x
bad predict ---
bad predict --
bad predict --model
bad predict --model ''
bad predict --model=gpt2 --model gpt2
bad predict --json=3
bad predict one.ir two.ir
bad predict --model gpt2 --cluster ideal
bad predict --seq 1K --cluster ideal
bad predict --model gpt2 --seq 1K
: > $T/one.ir
bad predict none.ir
bad predict $T/one.ir
bad predict $T/one.ir --cluster ideal --seq 1K
bad predict $T/one.ir --cluster ideal --model gpt2
bad predict --price 3
bad predict --emit-ir
bad schedule --quick
bad list --model x
bad list clutsers
bad list kinds matmul
bad list clusters nope
bad list models llama3-8
bad list devices nope
bad list models ./none.json
