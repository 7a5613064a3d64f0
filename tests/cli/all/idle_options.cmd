# Options that change nothing, since what they are about is not in the configuration, are said to. The line `layout` has how
# stages that share subsequences come by each other's weights.
step="--model gpt2 --cluster ideal --gpus 4 --seq 1K --quick"
longhaul predict $step --helper-weights shard --share-units 1 --rotate all-gather --layout striped --placement context-first --partition flops 2>&1 | grep note
longhaul predict $step --strategy ring --rotate all-gather --layout striped 2>&1 | grep -c note || true
longhaul predict $step --strategy sppo --tp 1 --pp 4 --subsequences 8 --partition flops --pipeline msp --share-units 0 --helper-weights shard 2>&1 | grep -c 'changes nothing' || true
longhaul predict $step --strategy sppo --tp 1 --pp 4 --subsequences 8 --partition flops --pipeline msp --share-units 1 --helper-weights shard 2>&1 | grep -oE 'shared:.*\)|.*changes nothing.*'
# more than there is to share is said to be
longhaul predict $step --strategy sppo --tp 1 --pp 4 --subsequences 8 --pipeline msp --share-units 9,9 2>&1 | grep -oE '^--share.*|shared:.*\)'
longhaul predict $step --strategy sppo --tp 1 --pp 4 --subsequences 8 --pipeline msp --share-units both 2>&1 | grep -c '^--share' || true
# other commands say it too: once, of what no configuration and no point of theirs uses
small="--model gpt2 --set layers=2 --cluster ideal --gpus 4"
said() { "$@" 2>&1 > $T/said | sed "s/^/$2: /"; }
said longhaul plan $small --seq 1K --rotate p2p --helper-weights shard
said longhaul plan $small --seq 1K --strategy local --rotate p2p
said longhaul plan $small --longest --hp 4 --windows contiguous
said longhaul schedule $small --seq 1K --rotate p2p
said longhaul check $small --seq 1K --compile --quiet
said longhaul run --model longhaul-3m --set layers=1 --seq 64 --gpus 2 --hp 2 --rotate p2p
said longhaul sweep $small --seq 1K --layout striped --vary strategy=ulysses,ring
said longhaul sweep $small --seq 1K --layout striped --vary hp=1,2,4
said longhaul sweep $small --seq 1K --vary rotate=p2p,all-gather
# and how sequences are cut and how much of what they keep leaves, asked for or not; JSON and plan's options too
sppo="--strategy sppo --tp 1 --pp 4 --subsequences 8"
for options in "" "--offload-ratio 0.5 --partition length" "--offload-ratio none"; do
    longhaul predict $step $sppo $options | tr '\n' ' ' | grep -oE '8 subsequences \([^)]*\)|activations (ratio|keep)[^,]*'
    longhaul predict $step $sppo $options --json | grep -E '"(partition|offload_ratio)"'
    longhaul plan ${step% --quick} $sppo $options --top 1 | grep -oE -- '--subsequences.*'
done
longhaul predict $step --micro-batch 2 | grep -o '1 micro-batch of 2'
# a layout that cuts documents has nothing to cut where a sequence is one
cuts="--model gpt2 --cluster ideal --gpus 4 --seq 1K --quick --layout zigzag-documents"
said longhaul predict $cuts --strategy ring
said longhaul predict $cuts --strategy ulysses
said longhaul predict $cuts --strategy ring --documents lognormal:200,1
