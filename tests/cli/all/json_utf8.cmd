# JSON is UTF-8 whatever bytes a path has: what every command with --json prints, and every file of JSON that is written
bad=$(printf 'n\377m')
cd $T
mkdir $bad answers
data=$S/tests/data
copy() { cp $1 $bad/$bad.${1##*/}; } # the name has the byte as well as the folder
copy $S/models/presets/transformers/gpt2.json
copy $S/models/presets/transformers/longhaul-3m.json
copy $data/kineto/llama.predicted.csv
copy $data/kineto/llama.json
copy $data/snapshots/recorded.pickle
copy $data/calibration/cpu-example.csv
copy $data/calibration/all_reduce_8.txt
copy $data/calibration/alltoall_8.txt
answer() { to=$1; shift; longhaul "$@" --json > answers/$to.json 2> note || { echo "$to: $?"; cat note; }; }
at=$bad/$bad
small="--model $at.gpt2.json --set layers=2 --cluster dgx-a100 --gpus 2"
tiny="--model $at.longhaul-3m.json --set layers=1,hidden=64,head_dim=8,ffn=96 --seq 64 --gpus 2"
answer predict predict $small --seq 1K --quick -o $at.predicted --record $at.record.jsonl --emit-chakra
answer plan plan $small --seq 1K --strategy ulysses
answer sweep sweep $small --vary seq=1K -o $at.sweep.csv
answer check check $small --seq 1K
answer validate validate --source LoongTrain --table 2 --system ulysses -o $at.figures.csv
answer run run $tiny --check -o $at.measured
answer compare compare $at.llama.predicted.csv $at.llama.json
answer compare-explain compare --explain $at.llama.predicted.csv $at.llama.json
answer bench bench --quick --kinds add -o $at.points.csv
answer calibrate calibrate $at.cpu-example.csv -o $at.device.json
answer calibrate-links calibrate $at.all_reduce_8.txt $at.alltoall_8.txt --cluster dgx-h100 --cluster-out $at.cluster.json
answer why why $at.recorded.pickle
answer list list models $at.gpt2.json
longhaul help --json > help.json
# of the commands with --json only help has no path
python3 - help.json << 'END'
import json, pathlib
tried = {path.stem.partition("-")[0] for path in pathlib.Path("answers").iterdir()} | {"help"}
for command in json.load(open("help.json"))["commands"]:
    if any(option["name"] == "json" for option in command["options"]):
        print(command["name"], "tried" if command["name"] in tried else "NOT TRIED")
END
# these print a path or a name that is made of one; the others say nothing of it
mark=$(printf 'n\357\277\275m')
for name in predict plan sweep compare calibrate; do
    python3 $S/tests/cli/check_utf8.py "$mark" answers/$name.json
done
python3 $S/tests/cli/check_utf8.py "$mark" $at.predicted/prediction.json $at.record.jsonl $at.device.json $at.cluster.json
python3 $S/tests/cli/check_utf8.py "" answers/*.json $at.predicted/*.json $at.measured/*.json && echo "all were read"
