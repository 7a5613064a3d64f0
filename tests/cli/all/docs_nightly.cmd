# tables of the documents, row by row: each must stand there as it comes now
stands() { while read -r row; do grep -qxF -e "$row" $1 && echo "as printed" || echo "not in $1: $row"; done | sort | uniq -c | sed 's/^ *//'; }
# docs/sweeping.md: chunks of FPDT
fpdt="longhaul sweep --cluster fpdt-a100-80g --seq 256K --strategy fpdt --profile published --vary chunk=8K..256K:x2"
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
# docs/planning.md: the longest sequences
for strategy in megatron-sp ulysses ring fpdt; do
    options="--checkpoint offload --loss-chunks 16"
    test $strategy = fpdt && options="--chunk 512K"
    printf '| `%s` |' $strategy
    for gpus in 4 8 16 32 64; do
        test $strategy = megatron-sp && options="--checkpoint offload --loss-chunks 16 --tp $((gpus < 32 ? gpus : 32))"
        longhaul plan --longest --model llama3-8b --cluster dgx-h100 --gpus $gpus --strategy $strategy $options |
            sed -n 's/^longest .*(\([0-9]*\)).*/\1/p; s/^longest  *\([0-9]*\)M tokens,.*/\1 M/p' | awk '{ printf " %d |", $2 == "M" ? $1 * 1024 : $1 / 1024 }'
    done
    echo
done > $T/longest
stands $S/docs/planning.md < $T/longest
# docs/planning.md: units of one layer, and the bubble
units="longhaul sweep --model gpt-7b --set layers=4 --cluster sppo-a100 --strategy sppo --offload-ratio none --profile published --scope layers --seq 128K --unfit-too --vary pp=1,4 --vary subsequences=1,4,8,16,32,64,128,256"
for tp in 1 8; do
    $units --gpus $((4 * tp)) --tp $tp -o $T/units-$tp.csv > $T/note 2>&1
    grep -v '^#' $T/units-$tp.csv | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { n = $at["subsequences"]; step[$at["pp"], n] = $at["step_s"] } $at["pp"] == 1 { order[++count] = n }
        END { for (i = 1; i <= count; i++) { n = order[i]; one = step[1, n]
              printf n == 1 ? "%d|%.3f s" : "%d|%+.1f %%", n, n == 1 ? one / 4 : 100 * (one / step[1, 1] - 1)
              printf "|%.3f\n", 4 * step[4, n] / one - 1 } }' > $T/units-$tp.rows
done
paste -d'|' $T/units-1.rows $T/units-8.rows | awk -F'|' '{ tokens = 131072 / $1
    printf "| %d | %s | %s | %s | %.3f | %s | %s |\n", $1, tokens < 1024 ? tokens : tokens / 1024 "K", $2, $5, 3 / $1, $3, $6 }' | stands $S/docs/planning.md
# docs/strategies/fpdt.md: what a chunk's fetch takes, beside a tile
fpdt="longhaul predict --model gpt-6.7b --cluster fpdt-a100-80g --gpus 4 --strategy fpdt --profile neutral --seq 256K"
figures() { sed -n 's/.*"fetch_\(pair\|set\)_s": *\([^,]*\),*/\2/p'; }
for chunk in 2K 8K 16K 64K 128K; do
    $fpdt --set layers=1 --chunk $chunk --quick -o $T/ops > $T/note
    tiles=$(for kind in attention attention_backward; do
        awk -F, -v kind=$kind '$4 == kind && $8 != $9 { sum += $11 - $10; tiles++ } END { print sum / tiles }' $T/ops/ops.csv; done)
    echo $chunk $tiles $($fpdt --chunk $chunk --fetch each --scope attention:fetch --json | figures) $($fpdt --chunk $chunk --fetch one --scope attention:fetch --json | figures)
done | awk 'function ms(s) { s *= 1000; return sprintf(s < 10 ? "%.2f" : s < 100 ? "%.1f" : "%.0f", s) }
    { print "| " $1 " | " ms($2) " | " ms($4) " | " ms($6) " | " ms($3) " | " ms($5) " | " ms($7) " |" }' | stands $S/docs/strategies/fpdt.md
# docs/strategies/pipelines.md: idle time of pipelines on whole micro-batches
for row in "128K 32" "256K 16" "512K 8" "1M 4"; do
    set -- $row
    printf '%s|%d' $1 $(($2 / 4))
    for pipeline in 1f1b zb-1p zb-v; do
        longhaul predict --model llama2-7b --cluster ideal --gpus 1024 --strategy 2d --hp 32 --cp 2 --dp 4 --pp 4 --pipeline $pipeline --seq $1 --batch $2 \
            --profile ideal --checkpoint none --scope layers --quick --all | sed -n 's/^stages .*idle \([0-9.]*\) % of the step (\([0-9.]*\) %.*/|\1|\2/p' | tr -d '\n'
    done
    echo
done | awk -F'|' '{ printf "| %s (%d) | %s %% (%s) | %s %% (%.2f) | %s %% (%.2f) |\n", $1, $2, $3, $4 == 300 ? 3 : $4 / 37.5 * 3 "/8", $5, $6 / 100, $7, $8 / 100 }' |
    sed 's#(6/8)#(3/4)#; s#(12/8)#(3/2)#' | stands $S/docs/strategies/pipelines.md
# docs/experts.md: DeepSeek-V3 over 512 GPUs, and Qwen3-30B-A3B over 64, at 1M tokens: the rate and what a GPU needs
long="longhaul predict --seq 1M --cluster dgx-h100 --activations selective-offload --loss-chunks 8 --quick --json"
while IFS='|' read -r says model options; do
    rate=$($long --model $model $options 2> $T/note | awk '/"device_needed_bytes"/ && !bytes { gsub(/[^0-9.e+]/, "", $2); bytes = $2 }
        /"tokens_per_s_gpu"/ && !rate { gsub(/[^0-9.e+]/, "", $2); rate = $2 } END { printf "%.1f %.1f", rate, bytes / 1073741824 }')
    grep -F -e "| $says | ${rate% *} |" $S/docs/experts.md | grep -qF " ${rate#* } GiB" && echo "as printed" || echo "not in docs/experts.md: $says: $rate GiB"
done << 'END' | sort | uniq -c | sed 's/^ *//'
ulysses, hp 64, ep 8, `--mla-exchange latent`|deepseek-v3|--nodes 64 --strategy ulysses --hp 64 --ep 8 --mla-exchange latent --ffn-chunks 8
2d, cp 8 x hp 8, ep 8|deepseek-v3|--nodes 64 --strategy 2d --cp 8 --hp 8 --ep 8 --ffn-chunks 8
ulysses, hp 64, ep 8|deepseek-v3|--nodes 64 --strategy ulysses --hp 64 --ep 8 --ffn-chunks 8
fpdt, hp 32, ep 8 (dp 16)|deepseek-v3|--nodes 64 --strategy fpdt --hp 32 --ep 8 --ffn-chunks 8
ring, cp 64, ep 8|deepseek-v3|--nodes 64 --strategy ring --cp 64 --ep 8 --ffn-chunks 8
ring, cp 32, ep 64 (dp 16)|deepseek-v3|--nodes 64 --strategy ring --cp 32 --ep 64 --ffn-chunks 8
ulysses|qwen3-30b-a3b|--nodes 8 --strategy ulysses --hp 8 --ep 1 --ffn-chunks 8
2d|qwen3-30b-a3b|--nodes 8 --strategy 2d --hp 4 --cp 2 --ep 2
END
# docs/accuracy/trl-1m.md and docs/accuracy.md: bytes that sentences name
memory() { # FORMAT OPTIONS...: of tensors, of activations, in all, and of the allocator's cache
    format=$1; shift
    longhaul predict "$@" --quick --json 2> $T/note | python3 -c '
import json, sys
m = json.load(sys.stdin)["memory"]
names = dict(tensors=m["reserved_parts"]["reserved_tensors_bytes"], kept=m["at_peak"]["peak_activation_bytes"],
             all=m["reserved_bytes"], cache=m["reserved_parts"]["reserved_cache_bytes"])
print(sys.argv[1].format(**{k: v / 1e9 for k, v in names.items()}, **{k + "_gib": v / 2**30 for k, v in names.items()},
                         **{k + "_off": 100 * (v / 56.2e9 - 1) for k, v in names.items()}))' "$format" || true
}
cat $S/docs/accuracy.md $S/docs/accuracy/trl-1m.md | tr -s '\n ' ' ' > $T/memory-page
{
    memory "{tensors:.1f} GB of tensors ({tensors_off:+.1f} %), of which {kept:.1f} GB are one layer that is recomputed and its gradients, and {all:.1f} GB in all ({all_off:+.1f} %), of which {cache:.1f} GB are unused cache" \
        --model $S/traces/published/external-models/qwen3-8b.json --cluster dgx-h100 --gpus 8 --strategy ring --profile hf --seq 1M --batch 1 --activations offload --loss-chunks 64
    memory "{tensors_gib:.1f} GiB of tensors and {all_gib:.1f} of 79.1 GiB with what the allocator reserves" \
        --model smollm2-1.7b --seq 16K --cluster dgx-h100 --gpus 1 --strategy local --profile hf --weights replicated --checkpoint none
} | while read -r words; do grep -qF -e "$words" $T/memory-page && echo "as printed" || echo "not in docs/accuracy.md or docs/accuracy/trl-1m.md: $words"; done | sort | uniq -c | sed 's/^ *//'
# docs/accuracy/experts.md: the mean error of today by model and device, from the residuals that ship
python3 - $S/traces/published << 'END' > $T/experts-means
import csv, math, sys
def read(name):
    with open(f"{sys.argv[1]}/{name}") as file:
        return list(csv.DictReader(line for line in file if line[0] != "#"))
rows = {row["id"]: row for row in read("external-moe.csv")}
names = {"deepseek-v3": "DeepSeek-V3", "qwen3-235b-a22b": "Qwen3-235B", "qwen3-30b-a3b": "Qwen3-30B", "gpt-oss-120b": "gpt-oss-120b", "kimi-k2": "Kimi-K2"}
devices = ["b200", "b300", "gb200", "gb300", "h100"]
cells, by = {}, {}
for residual in read("residuals-moe.csv"):
    row = rows[residual["run"]]
    if row["counts"] == "yes":
        error = 100 * abs(math.exp(float(residual["time"])) - 1)
        deepep = " with DeepEP" if "dispatcher DeepEP" in row["note"] else ""
        by.setdefault(row["laboratory"] + deepep * (row["laboratory"] == "aws"), []).append(error)
        if row["laboratory"] == "dgxc":
            cells.setdefault((row["model"], row["gpu"]), []).append(error)
mean = lambda errors: f"{sum(errors) / len(errors):.0f} %"
for model, name in names.items():
    print(f"| {name} |" + "".join(f" {mean(cells[model, d])} ({len(cells[model, d])}) |" if (model, d) in cells else " |" for d in devices))
print(f"device of NVIDIA's {len(by['dgxc'])} rows")
print(f"The mean of NVIDIA's is {mean(by['dgxc'])}")
print(f"That of SimuMax is {mean(by['SimuMax'])} ({len(by['SimuMax'])}), of Alibaba {mean(by['alibaba'])} ({len(by['alibaba'])})")
print(f"of AWS {mean(by['aws'])} with NCCL ({len(by['aws'])}) and {mean(by['aws with DeepEP'])} with DeepEP ({len(by['aws with DeepEP'])})")
END
tr '\n' ' ' < $S/docs/accuracy/experts.md > $T/experts-page
while read -r words; do grep -qF -e "$words" $T/experts-page && echo "as printed" || echo "not in docs/accuracy/experts.md: $words"; done < $T/experts-means | sort | uniq -c | sed 's/^ *//'
both() { sed -n 's/^ *"step_s": \([^,]*\),*/\1/p; s/^ *"tokens_per_s_gpu": \([^,]*\),*/\1/p' | paste -sd' '; } # of a step, all digits
cat $S/docs/accuracy.md $S/docs/accuracy/*.md > $T/accuracy-pages.md # the pages of accuracy, together
# docs/accuracy.md: rotations on several hosts, placements on 2,048 GPUs, numbers fitted without a table
for row in "512K 16 2" "1M 32 4"; do
    set -- $row
    printf '| %s on %d GPUs |' $1 $2
    for rotate in all-to-all all-gather; do
        longhaul predict --model llama3-8b --cluster torchtitan-h100 --nodes $3 --seq $1 --strategy ring --profile torchtitan --compile --rotate $rotate --quick --json |
            both | awk -v first=$rotate '{ printf first == "all-to-all" ? " %.1f s, %.0f tokens/s/GPU |" : " %.1f s, %.0f |", $1, $2 }'
    done
    echo
done | stands $T/accuracy-pages.md
for placement in context-first head-first; do
    printf '| %s |' $placement
    for window in 1 4 8; do
        longhaul predict --model internlm-7b-mha --cluster loongtrain-a100 --nodes 256 --seq 1M --strategy 2d --profile published --cp 64 --hp 8 --dp 4 --placement $placement \
            --window $window --checkpoint selective++ --loss-chunks 8 --quick --json |
            both | awk -v w=$window '{ printf w == 1 ? " %.2f s, %.1f tokens/s/GPU |" : " %.2f s, %.1f |", $1, $2 }'
    done
    echo
done | stands $T/accuracy-pages.md
F=$S/traces/published/measurements.csv
(head -1 $F; grep -E '^loongtrain-(t4|t5|fig5d)-' $F) > $T/operators.csv
longhaul validate --data $T/operators.csv --leave-one-out > $T/without
awk '/^leave one out/ { on = 1 } on && / of [0-9]+$/ { print "| " $1 ", " $2 " | " $10 " | " $3 ", " $4 " % | " $5 ", " $6 " % | " $7 ", " $8 " % |" }' $T/without | tr -d '*' > $T/rows
tr -d '*' < $T/accuracy-pages.md > $T/accuracy.md
stands $T/accuracy.md < $T/rows
awk '/^fitted numbers/ { on = 1 } on && NF == 5 && /[0-9]$/ && $2 != 4 { print "| `" $1 "` | " $2 " | " $3 " | " $4 " | " $5 " |" }' $T/without | stands $T/accuracy-pages.md
# docs/accuracy.md: errors of groups of rows
(head -1 $F; grep -E '^(fpdt-(fig11|t3|t4)|loongtrain-t2)-' $F | grep -E '^fpdt|,ulysses,|--hp 32 --cp 1 ' | grep -E ',(mfu|tgs),' | grep -v '^loongtrain.*,mfu,' |
    grep -vE '^fpdt-t3-.*(,megatron-sp,|,ulysses,.*--seq 65536 )') > $T/rows.csv
longhaul validate --data $T/rows.csv -o $T/errors.csv > $T/note
group() { # PATTERN, what the row says: its end, mean and worst
    # columns are counted from the last one back: texts before them have commas
    grep -v '^#' $T/errors.csv | awk -F, -v pattern="$1" -v says="$2" 'NR == 1 { for (i = 1; i <= NF; i++) back[$i] = NF - i; next }
        $0 ~ pattern && $(NF - back["status"]) == "ok" { e = 100 * $(NF - back["relative_error"]); size = e < 0 ? -e : e; sum += size; n++; if (size > most) { most = size; worst = e } }
        END { printf "(%d%s | %.1f %% | %+.1f %% |\n", n, says, sum / n, worst }' > $T/end
    grep -qF -e "$(cat $T/end)" $T/accuracy-pages.md && echo "as printed" || echo "not in accuracy.md: $1 $(cat $T/end)"
}
group '^loongtrain-' ')'
group '^fpdt-t3-.*,ulysses,' ')'
group '^fpdt-fig11-.*,ulysses,.*--gpus 4 ' ')'
group '^fpdt-fig11-.*,megatron-sp,.*--gpus 4 ' '; nothing was fitted to them)'
group '^fpdt-(fig11-.*,fpdt,.*--gpus 4 |t3-.*,fpdt,|t4-00[12],)' '; two of its numbers were fitted to Ulysses rows)'
group '^loongtrain-|^fpdt-(t3-.*,ulysses,|fig11-.*,ulysses,.*--gpus 4 )' ')'
group '^loongtrain-|^fpdt-t3-.*,ulysses,' ')'
group '^fpdt-fig11-.*,ulysses,gpt-13b' ')'
group '^fpdt-fig11-.*,megatron-sp,gpt-13b' ')'
group '^fpdt-fig11-.*,megatron-sp,gpt-30b' ')'
group '^fpdt-fig11-.*,fpdt,gpt-13b' ')'
group '^fpdt-t4-.*--sparsity 0[.][1-5]' ')'
# the generated tables of docs/accuracy.md and of its pages
mkdir $T/pages
cp -r $S/docs/accuracy.md $S/docs/accuracy $T/pages
longhaul validate --pages $T/pages > $T/steps
diff $S/docs/accuracy.md $T/pages/accuracy.md && diff -r $S/docs/accuracy $T/pages/accuracy && echo "pages as generated"
# docs/planning.md: what SPPO printed and what the search found, both predicted (the search itself is left out: minutes)
rate() { # MODEL GPUS TOKENS "(SP, PP), N"
    set -- $1 $2 $3 $(echo "$4" | tr -d '(),')
    longhaul predict --quick --json --model gpt-$(echo $1 | tr B b) --cluster sppo-a100 --gpus $2 --seq $3 --tp $4 --pp $5 --subsequences $6 --strategy sppo --profile published --batch 1 --weights replicated |
        both | awk '{ printf "%.1f", $2 }'
}
grep -E '^\| [0-9]+B, [0-9]+ \| [0-9]+[KM] \|' $S/docs/planning.md | sed 's/^| //; s/, / /; s/ | /|/g' | while IFS='|' read -r model tokens printed found theirs why; do
    set -- $model $tokens
    case $found in
    same* | the*) line="$(rate $1 $2 $3 "$printed")" said=${found##*: } ;;
    *) line="$(rate $1 $2 $3 "${found%:*}") $(rate $1 $2 $3 "$printed")" said="${found##*: } $theirs" ;;
    esac
    test "$line" = "${said% }" && echo "as printed" || echo "docs/planning.md: $model, $tokens: '$said' is now '$line'"
done | sort | uniq -c | sed 's/^ *//'
