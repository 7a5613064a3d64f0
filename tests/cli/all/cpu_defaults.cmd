# a device with costs of one kind of attention: what is not said is that kind, for a configuration, a schedule file, a search and a sweep
step="--model longhaul-3m --cluster cpu-node --gpus 1 --seq 128"
longhaul predict $step --strategy local --quick | grep -o 'attention cpu'
longhaul schedule $step --strategy local --attention cpu > $T/r.ir
longhaul predict $T/r.ir --cluster cpu-node | grep -o 'attention cpu'
longhaul plan $step --strategy local --top 1 2>&1 | grep -oE '^Fastest|error:.*'
longhaul sweep --model longhaul-3m --cluster cpu-node --gpus 1 --strategy local --vary seq=128 | grep -v '^#' | grep -o ',fits,'
# what is asked for and has no costs is an error
longhaul predict $step --attention fa2 2>&1 || echo exit $?
