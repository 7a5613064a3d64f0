longhaul list
longhaul list strategies
# the other lists change with every number; each has its rows, and each row can be shown
for what in profiles models clusters devices kinds rules conventions reserved constants; do
    test $(longhaul list $what | wc -l) -gt 1 && echo "$what are there"
done
for what in models clusters devices; do
    for name in $(longhaul list $what | grep -v '^ ' | cut -d ' ' -f 1); do
        longhaul list $what $name > $T/one
        test -s $T/one || echo "$what $name is empty"
    done
done
# constants: an ideal cluster has nothing inferred; what a file has of its base counts where the base has it
longhaul list constants | grep 'ideal\|cluster h200'
mkdir -p $T/data/models && cp -r $S/models/presets $T/data/models
all() { LONGHAUL_DATA=$T/data longhaul list constants | sed -n 's/^all clusters *\([0-9]*\) .*, \([0-9]*\) that.*/\1 \2/p'; }
all > $T/before
printf '{"name": "h200-mine", "base": "h200", "nic": {"latency": {"value": "2 us", "source": "an assumption", "how": "assumed"}, "message_latency": {"value": "8 us", "source": "nccl-tests"}}}' > $T/data/models/presets/clusters/h200-mine.json
all | paste $T/before - | awk '{print $3 - $1, "more,", $4 - $2, "of them unstated"}'
longhaul list clusters ideal | grep 'device.peak_bf16'
