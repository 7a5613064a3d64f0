# The errors on those published rows that take a second to predict; accuracy_nightly has all. Whoever moves one sees by
# how much, and says so in docs/accuracy.md.
F=$S/traces/published/measurements.csv
(head -1 $F; grep -E '^(loongtrain-(t5|fig5d)|torchtitan-cp|fpdt-t4|sppo-(t2|fig5))-' $F) > $T/rows.csv
longhaul validate --data $T/rows.csv | sed -n '/^errors/,$p'
# and of measured training steps: a run or two of every device, framework and scale
E=$S/traces/published/external.csv
mkdir -p $T/steps
cp -r $S/traces/published/external-models $T/steps
(head -1 $E; grep -E '^(llm-foundry-(029|038|095|096|147|158)|torchtitan-(h100-216|a100-234)|internevo-(276|263)|simumax-b200-(292|297|314)|trl-1m-362|dgxc-bf16-(377|380)),' $E) > $T/steps/rows.csv
longhaul validate --data $T/steps/rows.csv --residuals $T/residuals.csv | sed -n '/^errors/,$p'
# the residuals that ship are those of the model as it is: renew them by
# longhaul validate --residuals traces/published/residuals.csv
grep -vxFf $S/traces/published/residuals.csv $T/residuals.csv || echo "residuals as shipped"
