# The errors on all published rows, as docs/accuracy.md has them.
longhaul validate --residuals $T/residuals.csv | sed -n '/^errors/,$p'
# The residuals that ship are those of the model as it is.
cmp $T/residuals.csv $S/traces/published/residuals.csv
