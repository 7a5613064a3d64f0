# Launch files of runs whose owners printed a number (tests/data/launch_measured/README.md): the step that is predicted of the
# file, and its interval, beside the step that was measured (traces/published). A step outside its interval is an error.

measured() { # the column measured_step_s of a row: args, notes and words of the source have commas and quotes, so fields are cut
    cat $S/traces/published/external.csv $S/traces/published/external-2026-11.csv |
        awk -v id=$1 '{
            if (substr($0, 1, length(id) + 1) != id ",") next
            count = 0; field = ""; quoted = 0
            for (i = 1; i <= length($0); i++) {
                c = substr($0, i, 1)
                if (c == "\"") quoted = !quoted
                else if (c == "," && !quoted) { at[++count] = field; field = "" }
                else field = field c
            }
            print at[25]
        }'
}
run() { # FILE OPTIONS
    file=$1 id=${1%.*}; shift
    longhaul predict $S/tests/data/launch_measured/$file "$@" --quick 2> $T/notes > $T/page || true
    sed -nE 's/^step +([0-9.]+) (ms|s) \(90 %: ([0-9.]+) to ([0-9.]+)\).*/\1 \2 \3 \4/p' $T/page |
        awk -v id=$id -v measured="$(measured $id)" '{
            unit = $2 == "ms" ? 0.001 : 1
            inside = measured >= $3 * unit && measured <= $4 * unit
            printf "%-24s measured %9.4f s, predicted %9.4f s (90 %%: %.4g to %.4g), %+5.1f %%, %s\n", id, measured, $1 * unit,
                $3 * unit, $4 * unit, 100 * ($1 * unit / measured - 1), inside ? "inside" : "OUTSIDE"
        }' | tee -a $T/all
}
run torchtitan-h100-217.toml --cluster torchtitan-h100
run torchtitan-a100-235.toml --cluster dgx-a100 --nodes 8
run llm-foundry-008.yaml --cluster dgx-h100 --gpus 128
run ntob-8-dp4tp2pp1-mbz8.yaml --cluster dgx-h100
run simumax-b200-291.sh --cluster b200
run trl-1m-362.sh --cluster dgx-h100
run dgxc-bf16-377.sh --cluster dgx-h100
run hf-h100-2.sh --cluster dgx-h100
run stas-h200-32k.sh --cluster h200
echo "$(grep -c inside $T/all) of $(ls $S/tests/data/launch_measured | grep -vc README) are inside"
! grep OUTSIDE $T/all
