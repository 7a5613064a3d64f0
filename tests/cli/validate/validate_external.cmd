# measured training steps of our own on the ideal cluster, so that what is predicted is arithmetic; the model lies beside the rows
mkdir $T/rows
cat > "$T/rows/my model.json" <<END
{"longhaul_transformer": 1, "name": "mine", "layers": 4, "hidden": 1024, "heads": 8, "kv_heads": 8, "head_dim": 128,
 "ffn": 4096, "vocab": 32000, "activation": "gelu", "norm": "layernorm", "norm_eps": 1e-5, "positions": "rope",
 "rope_theta": 10000, "bias_qkv": true, "bias_o": true, "bias_ffn": true, "tied_head": false,
 "sources": {"*": "made up"}}
END
columns=id,source,model,gpu,gpus,seq_len,micro_batch,global_batch,tp,cp,pp,vpp,dp,sharding,recompute,attention,framework,measured_step_s,metric,value,unit,second_metric,second_value,as_run,args,note
facts=,2048,1,8,1,1,1,1,4,zero1,none,fa2
fast="--model 'my model.json' --seq 2K --strategy local --zero 1 --activations keep --profile ideal --batch 8"
cat > $T/rows/own.csv <<END
$columns
one,Ours,mine,ideal_80gb,4$facts,"Frame 2.1, eager",0.006,step_ms,6,ms,,,yes,$fast --cluster ideal --gpus 4,
two,Ours,mine,ideal_80gb,4$facts,"Frame 2.2, compiled",0.005,tgs,819,tokens/s/gpu,memory_allocated_gib,2,yes,$fast --cluster ideal --gpus 4,
three,Theirs,mine,ideal-40g,16$facts,Other,0.001,step_ms,1,ms,memory_gib,2,nearest: x,"$fast --batch=8 --cluster ideal --gpus 16",
four,Theirs,mine,other,4$facts,Other,0.005,step_ms,5,ms,memory_allocated_gib,2,nearest: no batch,"$fast --cluster '1x4xideal:device.memory=1 GB'",
five,Theirs,mine,other,8$facts,Other,0.005,step_ms,5,ms,,,yes,$fast --cluster ideal --gpus 4,
six,Theirs,mine,other,4$facts,Other,0.005,step_ms,5,ms,,,yes,$fast --cluster ideal --gpus 4 --sequ 4K,
seven,Theirs,mine,other,4$facts,Other,0.005,step_ms,5,ms,,,yes,$fast --cluster ideal --gpus 4 none.ir,
eight,Theirs,mine,other,4$facts,Other,0.005,step_ms,5,ms,,,yes,--model 'my model.json,
nine,Theirs,mine,other,4$facts,Other,0.005,step_ms,5,ms,,,yes,--model none.json --seq 2K --cluster ideal --gpus 4,
ten,Theirs,mine,other,4$facts,Other,0.005,step_ms,5,ms,,,yes,$fast --cluster ideal --gpus 4 --scope attention,
END
sed 's/ --batch=8//; s/^\(three.*\),16,2048,1,8,/\1,16,2048,1,16,/' $T/rows/own.csv | sed '/^three/s/--batch 8/--batch 16/' > $T/rows/right.csv
longhaul validate --all --data $T/rows/right.csv -o $T/out.csv || echo "exit $?"
cat $T/out.csv
# rows that were compared are such rows again; files that args name are found from the CSV's folder, not from here
cp $T/out.csv $T/rows/again.csv
longhaul validate --data $T/rows/again.csv --source Ours -o $T/again.csv | tail -2
grep -E '^(id|one|two),' $T/out.csv | cmp - $T/again.csv
# an option that is given twice
longhaul validate --all --data $T/rows/own.csv --device ideal-40g | head -1
# by device: as the row has it, or all of a kind; by source
longhaul validate --all --data $T/rows/right.csv --device ideal | grep -c ' -> '
longhaul validate --data $T/rows/right.csv --device ideal_80gb --json | grep -E '"(figures|id|gpu|predicted_step_s|relative_error|status)"'
# its means are those of the text
longhaul validate --data $T/rows/right.csv --json | sed -n "/step_means/,/]/p"
bad() { longhaul validate "$@" 2>&1 || echo "exit $?"; }
# paths that cannot be written are found before anything is predicted or printed
bad --data $T/rows/right.csv -o $T/none/x.csv
bad --data $T/rows/right.csv --residuals $T/none/x.csv
bad --data $T/rows/own.csv --device idea
bad --data $T/rows/own.csv --source Nobody
bad --data $T/rows/own.csv --table 2
bad --data $T/rows/own.csv --baseline
bad --device h100 --system ulysses
printf '%s\n%s\n' $columns one > $T/short.csv
bad --data $T/short.csv
printf '%s\n' id,source,gpu > $T/other.csv
bad --data $T/other.csv
# a framework ran what was measured: without a profile the strategy's own is predicted, and not the default of predict
grep -E "^(id|one)," $T/rows/right.csv > $T/rows/first.csv
only() { longhaul validate --all --data $T/rows/$1.csv | grep -o ' -> .* s ' | head -1; }
sed 's/--profile ideal //; s/--cluster ideal/--cluster 1x4xa100-80g/' $T/rows/first.csv > $T/rows/none.csv
sed 's/--cluster 1x4xa100-80g/& --profile published/' $T/rows/none.csv > $T/rows/published.csv
sed 's/--cluster 1x4xa100-80g/& --profile neutral/' $T/rows/none.csv > $T/rows/neutral.csv
test "$(only none)" = "$(only published)" && test "$(only none)" != "$(only neutral)" && echo "as published"
# memory is in residuals, from which intervals follow, if the source says which memory it is
for kind in memory_allocated_gib memory_gib memory_gb memory_unstated_gib; do
  grep -E "^(id|two)," $T/rows/right.csv | sed "s/--profile ideal/--profile megatron/; s/--cluster ideal/--cluster 1x4xa100-80g/; s/memory_allocated_gib/$kind/" > $T/rows/kind.csv
  longhaul validate --data $T/rows/kind.csv --residuals $T/kind.csv > $T/out
  awk -F, -v kind=$kind 'NR == 1 {for (i = 1; i <= NF; i++) if ($i == "memory") c = i} $3 == "two" {print kind, $c == "" ? "is not a residual" : "is a residual"}' $T/kind.csv
done
# of the shipped files both are read, and --table is of published figures alone, --device of training steps
longhaul validate --source torchtitan-cp --table text | grep '^rows'
longhaul validate --source torchtitan-h100 -o $T/one.csv | grep '^rows'
grep -c . $T/one.csv
longhaul validate --source none 2>&1 | tail -1
# rows of both kinds may share a file
mkdir -p $T/data/traces/published
F=$S/traces/published/measurements.csv
grep -E '^id|^torchtitan-cp-text' $F > $T/data/traces/published/measurements.csv
grep -E '^(id|one),' $T/rows/right.csv > $T/data/traces/published/external.csv
head -1 $S/traces/published/external-2026-11.csv > $T/data/traces/published/external-2026-11.csv
cp "$T/rows/my model.json" $T/data/traces/published
ln -s $S/models $T/data/models
LONGHAUL_DATA=$T/data longhaul validate -o $T/both.csv | grep -E '^(rows|  all)'
cut -d, -f1 $T/both.csv
# a page keeps what people wrote: text between blocks stays, and a block without its end, after which it is not known what they wrote, is refused
E=$S/traces/published/external.csv
(head -1 $E; grep '^internevo-263,' $E) > $T/one.csv
cp -r $S/traces/published/external-models $T
mkdir $T/pages
longhaul validate --data $T/one.csv --pages $T/pages > $T/out
echo "written by hand" >> $T/pages/accuracy.md
longhaul validate --data $T/one.csv --pages $T/pages > $T/out
tail -1 $T/pages/accuracy.md
sed -i '0,/<!-- end -->/{/<!-- end -->/d}' $T/pages/accuracy.md
longhaul validate --data $T/one.csv --pages $T/pages > $T/out || echo "exit $?"
tail -1 $T/pages/accuracy.md
