# FPDT: what does not go together says what would
fpdt="--cluster fpdt-a100-80g --strategy fpdt --profile published --set layers=2"
longhaul predict --model gpt-2.7b $fpdt --gpus 4 --seq 64K --chunk 128K || echo "exit $?"
longhaul predict --model gpt-2.7b $fpdt --gpus 4 --seq 64K --chunk 1002 || echo "exit $?"
longhaul predict --model gpt-2.7b --cluster fpdt-a100-80g --nodes 8 --strategy fpdt --hp 32 --set heads=16,kv_heads=16 --seq 64K || echo "exit $?"
longhaul predict --model gpt-2.7b --cluster fpdt-a100-80g --gpus 4 --strategy ulysses --seq 64K --chunk 16K || echo "exit $?"
longhaul predict --model gpt-2.7b --cluster fpdt-a100-80g --gpus 4 --strategy fpdt --tp 2 --seq 64K || echo "exit $?"
longhaul predict --model gpt-2.7b $fpdt --gpus 4 --seq 64K --sparsity 0.5 || echo "exit $?"
# too little memory on the host is a verdict with its bytes
cat > $T/small.json <<END
{"name": "small-host", "summary": "a host of little memory", "base": "fpdt-a100-80g",
 "host": {"memory": {"value": "48 GiB", "source": "this test"}}}
END
longhaul predict --model gpt-2.7b --cluster $T/small.json --gpus 4 --strategy fpdt --profile published --set layers=2 --seq 1M --quick | head -1
# the knee: a chunk is too short where copies cannot hide behind its tiles, and longer ones than 64K
# gain little and take memory
longhaul sweep --model gpt-2.7b $fpdt --gpus 4 --seq 256K --vary chunk=8K..256K:x2 -o $T/chunks.csv > $T/chunks.txt 2> $T/chunks.err
grep -v '^#' $T/chunks.csv | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { step[NR - 1] = $at["step_s"]; offload[NR - 1] = $at["offload_s"]; device[NR - 1] = $at["device_needed_bytes"] }
    END { print NR - 1, "chunk sizes, 8K to 256K"
          for (i = 2; i < NR; i++) falls += step[i] < step[i - 1]
          print "step falls:", (falls == 5 ? "always" : "no")
          print "from 8K to 64K by more than a quarter:", (step[4] < 0.75 * step[1] ? "yes" : "no")
          print "most of it exposed copies:", (offload[1] - offload[4] > 0.5 * (step[1] - step[4]) ? "yes" : "no")
          print "from 64K to 128K by less than 3 %:", (step[5] > 0.97 * step[4] ? "yes" : "no")
          for (i = 5; i < NR; i++) grows += device[i] > device[i - 1]
          print "memory grows behind 64K:", (grows == 2 ? "yes" : "no") }'
# FPDT, Fig. 10: a tile grows with the square of the chunk, its fetch with the chunk: they cross
for chunk in 2K 8K 32K 128K; do
    longhaul predict --model gpt-2.7b --set layers=1 --cluster fpdt-a100-80g --gpus 4 --strategy fpdt --profile neutral \
        --seq 256K --chunk $chunk --quick -o $T/ops > $T/predicted || exit
    grep -v '^#' $T/ops/ops.csv | awk -F, -v chunk=$chunk '
        $4 == "attention" && $8 != $9 { tile += $11 - $10; tiles++ }
        $4 == "attention_backward" && $8 != $9 { back += $11 - $10; backs++ }
        $4 == "h2d" && $5 == "forward" && $8 > 1 { fetch += $11 - $10; fetches++ }
        END { tile /= tiles; back /= backs; fetch = 2 * fetch / fetches
              printf "%s: a pair comes %s a tile, %s its backward\n", chunk,
                  (fetch > tile ? "slower than" : "within"), (fetch > back ? "slower than" : "within") }'
done
# the search that is proposed computes as many pairs, by the same code
longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 8 --seq 256K --strategy fpdt --chunk 64K --sparsity 0.5 --loss te --cuda-graphs layer 2> $T/note | grep 'longhaul plan'
