# The errors on all published rows, as docs/accuracy.md and the pages below have them.
mkdir $T/docs && cp -r $S/docs/accuracy.md $S/docs/accuracy $T/docs
longhaul validate --residuals $T/residuals.csv --pages $T/docs | sed -n '/^errors/,$p'
# The residuals that ship are those of the model as it is.
cmp $T/residuals.csv $S/traces/published/residuals.csv
# So are the tables of the documents: renew them by longhaul validate --pages docs
for page in accuracy.md accuracy/; do diff -r $T/docs/$page $S/docs/$page; done
