# The recording of one model against the prediction for another: tables, and no verdict.
cd $S/tests/data/kineto
longhaul compare gpt.predicted.csv llama.json --by phase --top 0 --tolerance 15%
