# tables of the documents, row by row: each must stand there as it comes now
stands() { while read -r row; do grep -qxF -e "$row" $1 && echo "as printed" || echo "not in $1: $row"; done | sort | uniq -c | sed 's/^ *//'; }
# docs/sweeping.md: chunks of FPDT
fpdt="longhaul sweep --cluster fpdt-a100-80g --seq 256K --strategy fpdt --vary chunk=8K..256K:x2"
for model in gpt-2.7b gpt-6.7b gpt-13b; do $fpdt --gpus 4 --model $model -o $T/$model.csv > $T/note 2>&1; done
$fpdt --gpus 8 --model gpt-30b -o $T/gpt-30b.csv > $T/note 2>&1
for model in gpt-2.7b gpt-6.7b gpt-13b gpt-30b; do
    grep -v '^#' $T/$model.csv | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { states = ($at["peak_parameter_bytes"] + $at["peak_gradient_bytes"] + $at["peak_optimizer_bytes"]) / 1073741824
          printf "%s|%.0f, %.0f|%.1f + %.1f\n", $at["chunk"], $at["step_s"], $at["offload_s"], states, $at["peak_bytes"] / 1073741824 - states }' > $T/$model.rows
done
for column in 2 3; do
    paste -d'|' $T/gpt-2.7b.rows $T/gpt-6.7b.rows $T/gpt-13b.rows $T/gpt-30b.rows |
        awk -F'|' -v c=$column '{ print "| " $1 " | " $c " | " $(c + 3) " | " $(c + 6) " | " $(c + 9) " |" }'
done | stands $S/docs/sweeping.md
# README.md: the longest sequences
for strategy in megatron-sp ulysses ring fpdt; do
    options="--checkpoint offload --loss-chunks 16"
    test $strategy = fpdt && options="--chunk 512K"
    printf '| `%s` |' $strategy
    for gpus in 4 8 16 32 64; do
        longhaul plan --longest --model llama3-8b --cluster dgx-h100 --gpus $gpus --strategy $strategy $options |
            sed -n 's/^longest .*(\([0-9]*\)).*/\1/p; s/^longest  *\([0-9]*\)M tokens,.*/\1 M/p' | awk '{ printf " %d |", $2 == "M" ? $1 * 1024 : $1 / 1024 }'
    done
    echo
done > $T/longest
stands $S/README.md < $T/longest
