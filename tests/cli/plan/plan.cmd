# The longest sequence with its certificate; the lengths lie one step apart, on both sides of the limit.
longhaul plan --longest --model llama3-8b --set layers=4 --cluster dgx-h100 --gpus 8 --profile ideal --json > $T/longest.json
awk -F '[:,]+' '/"longest_tokens"/ && !t { t = $2 } /"next_tokens"/ { n = $2 } /"step_tokens"/ { s = $2 }
    END { printf "steps between: %d\n", (n - t) / s }' $T/longest.json
grep -E '"fits"' $T/longest.json

# the fewest GPUs: states of 8B parameters alone are 112 GB, so one GPU needs the optimizer on the host
longhaul plan --all --goal gpus --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 8K --optimizer device --strategy ulysses --weights zero3 --checkpoint full --profile ideal | grep '^model'

# no configuration twice, under the names of two strategies
longhaul plan --model llama3-8b --set layers=2 --cluster dgx-h100 --gpus 4 --seq 8K --weights zero1 --checkpoint full --top 1000 --json > $T/open.json
awk '/"families"/ { exit } /"options"/ { sub(/--strategy (megatron-sp|sppo)/, "--strategy one"); print }' $T/open.json | sort | uniq -d
awk '/"options"/ { n++ } END { print (n > 4) ? "several" : n }' $T/open.json

# nothing fits: the nearest, and by how much
longhaul plan --all --model llama3-70b --cluster dgx-h100 --gpus 8 --seq 8K --strategy local --optimizer device | grep -E '^(goal|fits)'

# subsequences: every product of tensor ranks and stages has its line, and the winner its degrees
longhaul plan --all --strategy sppo --model gpt-7b --set layers=4 --cluster sppo-a100 --gpus 8 --seq 64K --batch 1 > $T/sppo.out
grep -E '^split' $T/sppo.out | sed -E 's/, best.*//' | sort
grep -E "^1 " $T/sppo.out | grep -cE -- "--strategy sppo --tp [0-9]+ .*--subsequences [0-9]+"
# more pieces than a rank has tokens at the shortest length
longhaul plan --longest --model llama3-8b --set layers=2 --cluster dgx-h100 --gpus 32 --strategy ulysses --loss-chunks 64 | grep -c '^longest'
# the end of a search is no longest length: longer ones may fit, with one option changed, too
longhaul plan --longest --model longhaul-3m --set layers=1 --cluster dgx-h100 --gpus 2 --strategy fpdt --chunk 2K --checkpoint offload | grep -oE '^longest .*tokens|^next .*chunks'
longhaul plan --longest --model longhaul-3m --set layers=1 --cluster dgx-h100 --gpus 2 --strategy fpdt --chunk 2K --checkpoint offload --json | grep -E '"(longest|asked|next)_tokens"'
# a search that chooses the data-parallel ranks says how many sequences a step has
longhaul plan --model gpt2 --set layers=2 --cluster dgx-h100 --gpus 2 --seq 1K --weights zero1 --checkpoint none --top 1 | grep -oE '^Fastest|for [0-9]* sequences? of [0-9KM]* tokens|^model .*'
longhaul plan --model gpt2 --set layers=2 --cluster dgx-h100 --gpus 2 --seq 1K --batch 4 --weights zero1 --checkpoint none --top 1 | grep -oE '^Fastest|for [0-9]* sequences? of [0-9KM]* tokens|^model .*'
# weights without replicas may be updated on the host: tensor ranks alone hold 70B parameters on 8 GPUs so
longhaul plan --all --model llama3-70b --set layers=60 --cluster dgx-h100 --gpus 8 --seq 8K --strategy megatron-sp --tp 8 --checkpoint full --top 1 | grep -oE '^fits|weights replicated.*optimizer host'
# of one unit nothing leaves: ratios are not searched beside what is kept
longhaul plan --all --model llama3-8b --set layers=2 --cluster dgx-h100 --gpus 2 --seq 8K --strategy ulysses --top 1000 | grep -c 'offload-ratio' || true
# a list grows with the square of its chunks: lengths end at 32 of them, and the report says so of the winner and of those that another beats
longhaul plan --all --goal longest --model longhaul-3m --set layers=1 --cluster dgx-h100 --gpus 2 --strategy fpdt --chunk 2K --checkpoint offload > $T/ends.out
grep -oE '^(1 .*at least|next.*)' $T/ends.out
longhaul plan --goal longest --model longhaul-3m --set layers=1 --cluster dgx-h100 --gpus 8 --weights zero3 --loss-chunks 8 --ffn-chunks 8 --optimizer device --json > $T/beaten.json
grep -A 3 '"fpdt"' $T/beaten.json | grep -o '"asked_tokens": [0-9]*'
longhaul plan --all --goal longest --model longhaul-3m --set layers=1 --cluster dgx-h100 --gpus 8 --weights zero3 --loss-chunks 8 --ffn-chunks 8 --optimizer device | grep '^lost *fpdt'
# chunks of a length that many ranks divide would have more pieces of the loss than a list numbers
longhaul plan --longest --model longhaul-3m --set layers=1 --cluster dgx-h100 --gpus 64 --strategy fpdt --dp 8 --emit deepspeed | grep -c 'GPUs; written'
# a table of learned positions is the longest there is
longhaul plan --all --goal longest --model gpt2 --set layers=2 --cluster dgx-h100 --gpus 1 | grep -oE '^1 .*tokens,'
# what plan prints of shared subsequences is what was asked for, as predict takes it
for share in 1 2,1 first both auto; do
    what="--model gpt-7b --set layers=4 --cluster sppo-a100 --gpus 4 --seq 16K"
    longhaul plan --all $what --strategy sppo --tp 1 --pp 4 --batch 1 --subsequences 8 --pipeline msp --share-units $share --top 1 > $T/msp
    options=$(sed -n 's/^1 .*: --strategy/--strategy/p' $T/msp)
    longhaul predict $what $options --quick > $T/predicted 2> $T/note
    sed -n 's/^1 .*, step \([0-9.]* [a-z]*\).*/\1/p' $T/msp > $T/planned
    sed -n 's/^step *\([0-9.]* [a-z]*\).*/\1/p' $T/predicted | cmp - $T/planned
    echo "$share: $(echo $options | grep -o -e '--share-units [^ ]*')"
done
# a sequence too short for two chunks is one, where chunks are asked for by name
longhaul plan --all --model longhaul-3m --cluster dgx-h100 --gpus 2 --seq 8K --batch 4 --strategy fpdt --weights zero3 --activations full | grep -cE '^1 .*--strategy fpdt'
# a search of everything is no worse than one of a part: whole sequences of Megatron's implementation are not DeepSpeed's
what="--model gpt2 --set layers=2,max_positions=65536 --cluster dgx-h100 --gpus 4 --seq 16K --batch 8 --zero 1 --checkpoint none --json"
rate() { awk -F '[:,]' '/"tokens_per_s_gpu"/ { print $2 + 0; exit }' "$1"; }
longhaul plan $what > $T/all.json
for strategy in ulysses ring 2d fpdt megatron-sp local; do
    longhaul plan $what --strategy $strategy > $T/part.json
    echo "$strategy $(rate $T/all.json) $(rate $T/part.json)"
done | awk '{ if ($3 > best) { best = $3; by = $1 } if ($3 > $2) print $1, "alone is faster:", $3, $2 } END { print by, (best == $2 ? "wins" : "is not found") }'
# options of a row, with those that were given, predict the row
rows() {
    longhaul plan "$@" --json > $T/rows.json 2> $T/note
    awk -F '"' '/"families"/ { exit } /"command"/ { print $4 }' $T/rows.json > $T/commands
    awk -F '[:,]' '/"families"/ { exit } /"tokens_per_s_gpu"/ { print $2 + 0 }' $T/rows.json > $T/rates
    while read -r command; do
        sh -c "$command --quick --json" > $T/row.json 2> $T/note
        rate $T/row.json
    done < $T/commands | cmp - $T/rates && echo "$(wc -l < $T/rates) rows"
}
few="--model gpt2 --set layers=2 --cluster dgx-h100 --gpus 2 --seq 1K --top 3"
rows $few --attention fa3 --dtype f16
rows $few --strategy fpdt --chunk 512 --sparsity 0.3 --loss-chunks 1 --ffn-chunks 2 --kv-offload off
rows $few --batch 8 --micro-batch 2 --strategy megatron-sp --offload-ratio 0.333333333
rows --model gpt2 --set layers=2 --cluster dgx-h100 --nodes 1 --goal gpus --seq 1K --batch 4 --weights zero1 --top 2
rows --model longhaul-3m --set layers=1 --cluster dgx-h100 --gpus 1 --goal longest --weights zero3 --checkpoint full --top 2
# -o leaves the winner's prediction, as predict makes it, and its page
small="--model gpt2 --set layers=2 --cluster dgx-h100 --gpus 2 --seq 1K --weights zero1 --checkpoint none"
longhaul plan $small --json -o $T/winner.d > $T/rows.json
rows $small --top 1
sh -c "$(head -1 $T/commands) -o $T/again.d" > $T/note 2>&1
for file in ops.csv memory.csv trace.json; do cmp $T/winner.d/$file $T/again.d/$file; done
without_commands() { grep -v '"command"\|Search all layouts' $1 | sed 's/,$//'; }
without_commands $T/again.d/prediction.json > $T/again
without_commands $T/winner.d/prediction.json | cmp - $T/again
grep -c "$(head -1 $T/commands)" $T/winner.d/report.html
# the page has the ranking and why others lost, also when it is made again, and not with another search's plan.json
ranked() { longhaul report $1 > $T/note; sed 's/<[^>]*>/\n/g' $1/report.html | grep -E '^(Beside other|The best of|What each)|; per sequence|does not fit:' | sed 's/[0-9][0-9.]* [GM]iB/N GiB/; s/[0-9][0-9.]*/N/g' | sort -u; }
ranked $T/winner.d
cp $T/winner.d/plan.json $T/again.d/
sed 's/"options": "/&--batch 3 /' $T/winner.d/plan.json > $T/again.d/plan.json
ranked $T/again.d
# what takes longer is said per sequence, however many of them a step has: one here, and two in the winner's
few="--model gpt2 --set layers=2 --cluster dgx-h100 --gpus 2 --seq 1K"
longhaul plan $few --weights zero1 --checkpoint none --top 1000 --json > $T/rows.json
causes() { # SEQUENCES OPTIONS: of each cause its name and seconds per sequence
    longhaul predict $few --weights zero1 --checkpoint none $2 --quick --json 2> $T/note |
        awk -F '"' '/"waterfall"/ { on = 1; next } /}/ { on = 0 } on { split($3, v, "[:,]"); sub(/_s$/, "", $2); print $2 "|" v[2] / n }' n=$1
}
causes 2 "--strategy local --dp 2" > $T/winner
causes 1 "--strategy ulysses --hp 2 --dp 1" > $T/loser
paste -d '|' $T/winner $T/loser |
    awk -F '|' '{ if ($4 - $2 > most) { most = $4 - $2; by = $1 } } END { printf "%s %.4g\n", by, most }' > $T/want
awk -F '"' '/"options": "--strategy ulysses --hp 2 / { on = 1 } on && /"slower_cause"/ { cause = $4 }
    on && /_per_sequence/ { split($3, v, "[:,]"); printf "%s %.4g\n", cause, v[2]; exit }' $T/rows.json | cmp - $T/want
echo "$(sed 's/ [^ ]*$//' $T/want): the same difference"
longhaul plan --all $few --weights zero1 --checkpoint none --top 1000 | grep -oE 'more: [^)]*\): --strategy ulysses --hp 2.*'
# of each loser: layout, kernels and framework make its distance from the winner; on one implementation none of it is kernels
for profile in published neutral; do
    longhaul plan --model gpt2 --set layers=2 --cluster dgx-h100 --gpus 2 --seq 1K --profile $profile --weights zero1 --checkpoint none --json > $T/split.json
    awk -F '[:,]+' -v profile=$profile '/"families"/ { on = 1 }
        /"tokens_per_s_gpu"/ && !best { best = $2 }
        on && /"tokens_per_s_gpu"/ { rate = $2 }
        on && /"layout_s_per/ { layout = $2 }
        on && /"kernels_s_per/ { kernels = $2; if ($2 != 0) differ++ }
        on && /"framework_s_per/ { all = 1024 / 2 * (1 / rate - 1 / best); d = layout + kernels + $2 - all; n++
            if (d * d > 1e-12 * all * all + 1e-24) print "adds up to", layout + kernels + $2, "of", all }
        END { print profile ": " (n > 2 ? "losers add up" : n), differ ? "kernels differ" : "kernels are the same" }' $T/split.json
done
# the search ends in time, or once nothing can be faster by more than the gap
longhaul plan $few --within 1e-9 | grep -oE '^Nothing.*so far|[0-9]+ not searched: --within.*' || true
longhaul plan $few --within 1e-9 --emit megatron | grep -oE '^# the search was ended by --within' || true
longhaul plan $few --gap 40 --json > $T/gap.json
awk -F '[:,]+' '/"proved_gap"/ { print "gap", $2 <= 0.4 ? "at most 40 %" : $2 } /"not_searched"/ { print "not searched:", $2 }' $T/gap.json
longhaul plan $few --json | awk -F '[:,]+' '/"proved_gap"/ { print "gap", $2 + 0 }'
longhaul plan $few --gap 0 || echo "exit $?"
