#!/bin/sh
# Records steps of our executor for tests/data/recorded: rings over two ranks, and one rank, of small models.
#
#     record_rings.sh LONGHAUL FOLDER
#
# The clock is one of processor time (processor_clock.c): the processor time of the process over its ranks, which do
# alike work. What other programs take, and waits, are in no op. Each case runs five steps after one; FOLDER/rings.csv
# gets a row for each with their times, ms, and cases in TRACED leave the ops of their median step, CASE.ops.csv.
set -e
longhaul=$1 folder=$2
TRACED="ring-a-2x512 local-a-1x512"
cc -O2 -shared -fPIC -o "$folder/processor_clock.so" "$(dirname "$0")/processor_clock.c"
echo "case,set,seq,ranks,strategy,step1_ms,step2_ms,step3_ms,step4_ms,step5_ms" > "$folder/rings.csv"
run() { # case, fields of longhaul-3m that are set, tokens, ranks, strategy
    nice env PROCESSOR_CLOCK_RANKS="$4" LD_PRELOAD="$folder/processor_clock.so" "$longhaul" run --model longhaul-3m \
        --set "$2" --seq "$3" --gpus "$4" --strategy "$5" --weights replicated --activations keep --steps 5 \
        --warmup 1 --json -o "$folder/$1" > "$folder/$1.json"
    times=$(sed -n '/steps_s/,/]/s/^ *\([0-9.]*\),*$/\1/p' "$folder/$1.json" | awk '{printf ",%.3f", 1e3 * $1}')
    echo "$1,$(echo "$2" | tr , ' '),$3,$4,$5$times" | tee -a "$folder/rings.csv"
    case " $TRACED " in *" $1 "*) grep -v '^# command' "$folder/$1/ops.csv" > "$folder/$1.ops.csv" ;; esac
    rm -r "$folder/$1" "$folder/$1.json"
}
a=layers=4
b=layers=3,hidden=384,heads=12,kv_heads=6,ffn=1024
for seq in 512 768 1024 2048; do run ring-a-2x$seq $a $seq 2 ring; done
for seq in 512 1024 2048; do run local-a-1x$seq $a $seq 1 local; done
run ring-b-2x1024 $b 1024 2 ring
run local-b-1x1024 $b 1024 1 local
rm "$folder/processor_clock.so"
