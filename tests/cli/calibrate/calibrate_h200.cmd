# What `longhaul bench` measured on an H200, fitted: every family within 25 %, and the links of its node.
longhaul calibrate $S/tests/data/calibration/h200.csv --base h200 --limit 25 -o $T/device.json > $T/out
sed -n 's/ (.*//; /: [0-9]* points*,/p; /tensor_power/p' $T/out
longhaul calibrate $S/tests/data/calibration/h200.csv --base h200 --cluster h200 --cluster-out $T/cluster.json | sed -n '/ (copies /{s/; .*//;N;N;p}'
longhaul predict --model gpt-2.7b --set layers=4,heads=20,kv_heads=20,head_dim=128,vocab=50304 --attention cudnn \
    --strategy fpdt --seq 32K --gpus 1 --cluster $T/cluster.json --costs $T/device.json --quick | sed -n '/^step/p'
