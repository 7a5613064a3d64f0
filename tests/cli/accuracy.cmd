# The errors on those published rows that take a second to predict; accuracy_nightly has all. Whoever moves one sees by
# how much, and says so in docs/accuracy.md.
F=$S/traces/published/measurements.csv
(head -1 $F; grep -E '^(LoongTrain,(5|fig5d)|torchtitan-cp|FPDT,4|SPPO,(2|fig5)),' $F) > $T/rows.csv
longhaul validate --data $T/rows.csv | sed -n '/^errors/,$p'
