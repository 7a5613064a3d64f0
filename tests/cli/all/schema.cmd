# What --json prints, and rows of CSV, are what docs/schema says, and figures have one name in all of them.
python=python3
$python -c 'import jsonschema' 2> $T/note || python=/usr/bin/python3
if ! $python -c 'import jsonschema' 2> $T/note; then
    echo "no python3-jsonschema: $(tail -n 1 $T/note)"
    exit 77
fi
check() { echo "$@" >> lists; } # all of them are looked at by one process
cd $T
step="--model gpt2 --set layers=4 --cluster dgx-a100 --seq 1K"
n=0
for options in "--gpus 4" "--gpus 4 --pp 2 --batch 4 --tokens 1B --price 2" "--gpus 4 --scope attention --quick" \
    "--gpus 4 --strategy sppo --tp 1 --pp 4 --subsequences 8 --pipeline msp --share-units 1 --quick"; do
    n=$((n + 1))
    longhaul predict $step $options --json > predict-$n.json 2> note || test $? = 1
done
longhaul schedule $step --gpus 4 -o step.ir
longhaul predict step.ir --cluster ideal --gpus 4 --json > predict-file.json
longhaul predict --quick --model longhaul-3m --cluster dgx-h100 --strategy ring --nodes 9 --seq 144K --json > predict-even.json
longhaul predict --model llama3-8b --cluster dgx-a100 --gpus 2 --seq 4M --quick --json > predict-unfit.json || test $? = 1
longhaul predict $step --gpus 4 --dp 2 --batch 4 --documents lognormal:200,1 --batches 2 --quick --json > predict-documents.json
longhaul predict $S/tests/data/recordings/llama-fsdp.json.gz --cluster dgx-h100 --nodes 1 --json > predict-recorded.json
longhaul predict $S/tests/data/recordings/interleaved-?.json.gz --cluster dgx-h100 --gpus 4 --json > predict-stages.json
check predict predict-*.json
longhaul check step.ir --json > check-file.json
longhaul check $S/tests/data/recordings/llama-fsdp.json.gz --json > check-recorded.json
printf 'core plan 1 ranks=2 route=direct\nsequence,what,begin,rows,key,keys,rank,round\n0,document,0,8,,,,\n' > core.plan
printf '0,own,0,4,,,0,\n0,own,4,4,,,1,\n0,tile,0,4,0,8,0,0\n0,tile,4,4,0,8,1,0\n' >> core.plan
longhaul check core.plan --json > check-core-plan.json
check check check-*.json
small="--model gpt2 --set layers=2 --cluster dgx-a100 --gpus 2"
longhaul plan $small --seq 1K --profile published --json > plan-1.json
longhaul plan $small --goal longest --strategy ulysses --json > plan-2.json
longhaul plan --model llama3-8b --cluster dgx-a100 --gpus 1 --seq 4M --weights replicated --checkpoint none --json > plan-unfit.json || test $? = 1
longhaul plan $small --seq 1K --strategy ulysses --documents lognormal:200,1 --batches 2 --json > plan-documents.json
check plan plan-*.json
longhaul plan $small --longest --json > longest.json
check plan_longest longest.json
longhaul sweep --model llama3-8b --cluster dgx-h100 --nodes 1 --vary seq=64K,2M --vary hp=3,8 -o sweep.csv --json > sweep.json
check sweep sweep.json
check sweep#row sweep.csv
F=$S/traces/published
cp -r $F/external-models .
(head -1 $F/external.csv; grep -E '^(llm-foundry-147|simumax-b200-292|dgxc-bf16-377),' $F/external.csv) > steps.csv
longhaul validate --data steps.csv -o steps-out.csv --json > validate-1.json
longhaul validate --source LoongTrain --table 2 --system ulysses -o figures-out.csv --json > validate-2.json
check validate validate-*.json
check validate#validate_csv figures-out.csv
check validate#validate_csv steps-out.csv
tiny="--model longhaul-3m --set layers=1,hidden=64,head_dim=8,ffn=96 --seq 64 --gpus 2"
longhaul run $tiny -o measured --check --json > run-1.json
longhaul run $tiny --check --data $S/LICENSE --steps 2 --json > run-2.json
check run run-*.json
longhaul predict $tiny --cluster cpu-node --dtype f32 --attention cpu --exact --quick -o predicted > note
longhaul compare predicted measured --by kind --tolerance 1000% --json > compare-1.json
longhaul compare $S/tests/data/kineto/llama.predicted.csv $S/tests/data/kineto/llama.json --json > compare-2.json
check compare compare-*.json
longhaul predict $S/tests/data/kineto/operators.step.json.gz --cluster dgx-h100 --gpus 1 -o operators > note
longhaul compare operators $S/tests/data/kineto/operators.json.gz --json > operators.json
check compare_operators operators.json
longhaul compare --explain $S/tests/data/kineto/llama.predicted.csv $S/tests/data/kineto/llama.json --json > explain.json
check explain explain.json
for list in "" strategies profiles models "models llama3-8b" clusters "clusters dgx-h100" devices "devices a100-80g" \
    kinds rules conventions reserved constants; do
    longhaul list $list --json > "list-${list%% *}-${list##* }.json"
done
check list list-*.json
longhaul why $S/tests/data/snapshots/recorded.pickle --json > why-1.json
longhaul why $S/tests/data/snapshots/oom.pickle --profile published --model llama3-8b --cluster dgx-a100 --gpus 8 --seq 256K --zero 1 --top 2 --json > why-2.json
check why why-*.json
longhaul bench --quick --kinds add,matmul --json > bench.json 2> note
check bench bench.json
longhaul calibrate $S/tests/data/calibration/cpu-example.csv --json > calibrate-1.json
longhaul calibrate $S/tests/data/calibration/all_reduce_8.txt $S/tests/data/calibration/alltoall_8.txt --json > calibrate-2.json
check calibrate calibrate-*.json
check step $S/tests/data/recordings/*.json.gz
$python $S/tests/cli/check_schema.py $S/docs/schema < lists
# a folder of another version says how it is made again; a file of a sweep with the old names is read
sed '/"schema/d' predicted/prediction.json > old && mv old predicted/prediction.json
longhaul report predicted -o page.html 2>&1 | sed 's/longhaul predict .* -o DIR/longhaul predict ... -o DIR/' || true
sed 's/extrapolated_share/extrapolated/; s/chosen_sequence_tokens/chosen_tokens/' sweep.csv > old.csv
longhaul report sweep.csv -o new.html --title x && longhaul report old.csv -o old.html --title x
sed 's/old[.]csv/sweep.csv/' old.html | cmp - new.html && echo "the same page"
# and the check sees what is wrong
sed 's/"step_s": [^,]*/"step_s": "long"/' predict-1.json > wrong.json
sed 's/"hfu"/"HFU"/' predict-1.json > wrong2.json
if echo predict wrong.json wrong2.json | $python $S/tests/cli/check_schema.py $S/docs/schema > faults; then
    echo "faults are taken"
fi
sed '/looked at$/d; s/([^)]*)//' faults
