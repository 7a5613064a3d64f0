# The prediction comes first.
cd $S/tests/data/kineto
longhaul compare llama.json llama.predicted.csv
