# FPDT: every rank fetches its part, or one those of all, which it scatters. A tile grows with the square
# of the chunk and what it fetches with the chunk: with one lane for all ranks they cross at a chunk P times as long.
fpdt="--model gpt-6.7b --gpus 4 --strategy fpdt --profile neutral --seq 256K"
pair() { # of keys and values of a chunk, in seconds: CLUSTER CHUNK each|one
    longhaul predict $fpdt --cluster $1 --chunk $2 --fetch $3 --scope attention:fetch --json |
        sed -n 's/.*"fetch_pair_s": *\([^,]*\),*/\1/p'
}
for chunk in 8K 32K 128K; do
    longhaul predict $fpdt --set layers=1 --cluster fpdt-a100-80g --chunk $chunk --quick -o $T/ops > $T/predicted
    tile=$(awk -F, '$4 == "attention" && $8 != $9 { sum += $11 - $10; tiles++ } END { print sum / tiles }' $T/ops/ops.csv)
    echo $chunk $tile $(pair fpdt-a100-80g $chunk each) $(pair fpdt-a100-80g $chunk one) |
        awk 'function how(fetch, tile) { return fetch > tile ? "slower than a tile" : "within one" }
            { print $1 ": each", how($3, $2) ", one", how($4, $2) }'
done
# What is lost by one depends on what the lanes share: four lanes of their own, two pairs, one for all.
for bridges in 0,1,2,3 0,0,1,1 0,0,0,0; do
    cat > $T/bridges.json <<END
{"name": "bridges", "summary": "lanes of 25 GB/s, and as much behind a switch", "base": "fpdt-a100-80g",
 "pcie": {"h2d": {"value": "25 GB/s", "source": "this test"}, "d2h": {"value": "25 GB/s", "source": "this test"},
          "uplink": {"value": "25 GB/s", "source": "this test"},
          "switch_of_gpu": {"value": [$bridges], "source": "this test"}}}
END
    echo $bridges $(pair $T/bridges.json 32K each) $(pair $T/bridges.json 32K one) |
        awk '{ printf "switches %s: one takes %.0f times as long, and at most a tenth more\n", $1, $3 / $2
               if ($3 / $2 < int($3 / $2 + 0.5) || $3 / $2 > 1.1 * int($3 / $2 + 0.5)) print "no:", $3 / $2 }'
done
# what does not go together
for wrong in "--fetch one --kv-offload off" "--fetch one --hp 1" "--fetch one --sparsity 0.5 --chunk 64K" \
    "--scope attention:fetch --chunk 256K"; do
    longhaul predict $fpdt --cluster fpdt-a100-80g $wrong || echo "exit $?"
done 2>&1
