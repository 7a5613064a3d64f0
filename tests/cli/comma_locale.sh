#!/usr/bin/env bash
# Every command answers the same in a locale with a decimal comma: comma_locale.sh PROGRAM PRELOAD SOURCE SCRATCH
# The locales are made from the sources of Debian's package `locales`; without them the test fails.
set -uo pipefail
program=$1 preload=$2 source=$3 scratch=$4
rm -rf "$scratch" && mkdir -p "$scratch" && cd "$scratch" || exit 2
export LOCPATH=$scratch
for one in 'de_DE UTF-8' 'tr_TR ISO-8859-9'; do
    read -r from letters <<<"$one"
    localedef -c --quiet -i "$from" -f "$letters" "$scratch/$from.$letters" 2>made.txt
    [[ -e $scratch/$from.$letters/LC_NUMERIC ]] || {
        echo "comma_locale: no locale $from.$letters can be made: install localedef and its sources (Debian: locales)"
        cat made.txt
        exit 1
    }
done
failed=0 tried=0 day=${CHECK_DAY:-$(($(date +%s) / 86400))}

# same COMMAND...: runs it in the C locale and in the others; what it prints and leaves must not differ. It writes to
# the folder `out`.
same()
{
    local code locale
    day=$((day + 1))
    rm -rf out wanted && mkdir out
    code=0
    "$program" "$@" >out/stdout 2>out/stderr || code=$?
    ((code < 2)) || { echo "comma_locale: $*: exit $code"; cat out/stderr; failed=1; return; }
    mv out wanted
    for locale in de_DE.UTF-8 tr_TR.ISO-8859-9; do
        # one of the two, the other a day later, and both at night
        [[ -n ${CHECK_ALL-} || $((day++ % 2)) == 0 ]] || continue
        mkdir out
        TEST_LOCALE=$locale LD_PRELOAD=$preload "$program" "$@" >out/stdout 2>out/stderr
        diff -r wanted out >differ.txt || {
            echo "comma_locale: $* differs in $locale:"
            head -n 20 differ.txt
            failed=1
        }
        rm -rf out
        tried=$((tried + 1))
    done
}

data=$source/tests/data
same list devices --json
same predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 128K --all
same predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 128K --json
same predict "$data/launch/torchtitan-llama3-8b.toml" --cluster dgx-a100 --nodes 8
same predict "$data/launch/megatron-llama3-8b-fp8.sh" --cluster 16x8xh100 --quick
same predict "$data/launch/trl-zephyr-7b.yaml" --from "$data/launch/accelerate-deepspeed-zero3.yaml" \
    --cluster 16x8xh100 --gpus 8
same predict --model gpt2 --cluster 1x2xh100:nic.bandwidth=1.9GB/s --seq 1K --strategy local --gpus 2 --dp 2 --offload-ratio 0.5
same predict --model gpt2 --cluster ideal --gpus 2 --seq 1K -o out/run
same plan --model gpt2 --cluster dgx-h100 --nodes 1 --gpus 2 --seq 1K --batch 2
same sweep --model gpt2 --cluster ideal --gpus 4 --vary seq=1000..4000:x1.5 -o out/rows.csv
same schedule --model gpt2 --cluster ideal --gpus 2 --seq 1K -o out/one.ir
cp wanted/one.ir . || failed=1
same check one.ir
same validate --source torchtitan-cp
same calibrate "$data/calibration/cpu-example.csv" --name example -o out/device.json
same compare "$data/kineto/llama.predicted.csv" "$data/kineto/llama.json" --explain
same compare "$data/kineto/llama.predicted.csv" "$data/kineto/llama.json" --json
same reproduce --list
same help predict
echo "$tried runs"
((tried > 15)) || failed=1
exit $failed
