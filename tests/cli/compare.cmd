# A recording of the PyTorch profiler against a prediction made for it.
cd $S/tests/data/kineto
longhaul compare llama.predicted.csv llama.json --top 3 --all
# one screen
longhaul compare llama.predicted.csv llama.json --top 3 | awk 'length > 80'
