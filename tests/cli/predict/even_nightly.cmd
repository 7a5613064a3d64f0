# Steps of even rings are within the printed bound of exact ones. DIFFERENCES=FILE keeps the differences.
gap() {
    for exact in "" --exact; do
        longhaul predict --quick --json "$@" --even-above 31 $exact > $T/step$exact.json
    done
    awk -F '[:,]+' -v options="$*" -v keep="${DIFFERENCES:-/dev/null}" '
        /"step_s"/ && !(FILENAME in step) { step[FILENAME] = $2 }
        /"even_bound"/ { bound[FILENAME] = $2 }
        END {
            even = ARGV[1]; exact = ARGV[2]; gap = step[even] / step[exact] - 1
            printf "%+.3f %%  %s\n", 100 * gap, options >> keep
            inside = bound[even] > 0 && bound[exact] == "" && gap ^ 2 <= bound[even] ^ 2
            print inside ? "inside" : "outside: " 100 * gap " %", options
        }' $T/step.json $T/step--exact.json
}
for seq in 128K 512K 1M; do
    for machine in "llama3-8b --cluster dgx-h100" "llama2-7b --cluster dgx-a100"; do
        gap --model $machine --nodes 16 --strategy ring --seq $seq
        gap --model $machine --nodes 32 --strategy 2d --cp 128 --hp 2 --seq $seq
    done
done
gap --model llama3-8b --cluster dgx-h100 --nodes 9 --strategy ring --seq 144K
gap --model llama2-7b --cluster dgx-a100 --nodes 9 --strategy ring --seq 288K
gap --model llama2-7b --cluster dgx-a100 --nodes 16 --strategy ring --seq 256K --profile published
gap --model llama2-7b --cluster dgx-a100 --nodes 16 --strategy ring --seq 128K --profile ideal
gap --model llama3-8b --cluster dgx-h100 --nodes 16 --strategy ring --seq 256K --layout striped
gap --model llama3-8b --cluster dgx-h100 --nodes 16 --strategy ring --seq 256K --window 8
gap --model llama3-8b --cluster dgx-h100 --nodes 16 --strategy ring --seq 256K --rotate all-gather
gap --model llama3-8b --cluster dgx-h100 --nodes 16 --strategy ring --seq 256K --profile torchtitan
for seq in 64K 128K 256K; do
    gap --model llama3-8b --cluster dgx-h100 --nodes 8 --strategy ring --seq $seq
    gap --model llama2-7b --cluster dgx-a100 --nodes 4 --strategy ring --seq $seq
done
gap --model llama2-7b --cluster dgx-a100 --nodes 8 --strategy 2d --cp 32 --hp 2 --seq 128K
gap --model llama3-8b --cluster dgx-h100 --nodes 8 --strategy ring --seq 128K --profile torchtitan
