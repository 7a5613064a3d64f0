# Options that change nothing, since what they are about is not in the configuration, are said to. The line `what` has how
# stages that share subsequences come by each other's weights.
step="--model gpt2 --cluster ideal --gpus 4 --seq 1K --quick"
longhaul predict $step --helper-weights shard --share-units 1 --rotate all-gather --layout striped --placement context-first --partition flops 2>&1 | grep note
longhaul predict $step --strategy ring --rotate all-gather --layout striped 2>&1 | grep -c note || true
longhaul predict $step --strategy sppo --tp 1 --pp 4 --subsequences 8 --partition flops --pipeline msp --share-units 0 --helper-weights shard 2>&1 | grep -c 'changes nothing' || true
longhaul predict $step --strategy sppo --tp 1 --pp 4 --subsequences 8 --partition flops --pipeline msp --share-units 1 --helper-weights shard 2>&1 | grep -oE 'shared:.*\)|.*changes nothing.*'
longhaul predict $step --micro-batch 2 | grep -o '1 micro-batch of 2'
