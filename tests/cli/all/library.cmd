# examples/predict.c prints what the program prints of the same question: the last line is the program's.
example_predict
longhaul predict --model llama3-8b --cluster dgx-h100 --nodes 1 --strategy ulysses --seq 128K --checkpoint selective++ --quick --json |
    awk '/^  "(step_s|tokens_per_s_gpu)":/ { sub(",", ""); printf "%s %.2f ", $1, $2 }'
echo
LONGHAUL_DATA=$T example_predict || echo "exit code $?"
