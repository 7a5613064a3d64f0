# A recording of the PyTorch profiler against a prediction made for it.
cd $S/tests/data/kineto
longhaul compare llama.predicted.csv llama.json --top 3 --all
# one screen
longhaul compare llama.predicted.csv llama.json --top 3 | awk 'length > 80'
# on a terminal the lines above the tables wrap at its width
tty() { script -qec "stty cols 60; $*" /dev/null < /dev/null | tr -d '\r'; }
if command -v script > /dev/null; then
    tty "longhaul compare llama.predicted.csv llama.json --top 0" | sed '/^$/,$d' | awk '
        length > 60 { print "wider than the terminal: " $0 } /^ / { n++ } END { print (n >= 3 ? "wrapped" : "not wrapped") }'
    tty "longhaul compare llama.predicted.csv llama.json --explain" | sed '/more ms of/,$d' | awk '
        length > 60 { print "wider than the terminal: " $0 } /^                       [a-z]/ { n++ } END { print (n >= 2 ? "wrapped" : "not wrapped") }'
else
    echo wrapped
    echo wrapped
fi
