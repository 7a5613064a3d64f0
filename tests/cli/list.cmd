longhaul list
longhaul list strategies
# the other lists change with every number; each has its rows, and each row can be shown
for what in profiles models clusters devices kinds rules conventions reserved; do
    test $(longhaul list $what | wc -l) -gt 1 && echo "$what are there"
done
for what in models clusters devices; do
    for name in $(longhaul list $what | grep -v '^ ' | cut -d ' ' -f 1); do
        longhaul list $what $name > $T/one
        test -s $T/one || echo "$what $name is empty"
    done
done
longhaul list clusters ideal | grep 'device.peak_bf16'
