# All figures and tables; their states are those that ship. Renew them by
# longhaul reproduce all -o DIR && cp DIR/states.csv traces/published/reproduced.csv
longhaul reproduce all -o $T/out > $T/text
cmp $T/out/states.csv $S/traces/published/reproduced.csv
grep '^Claim' $T/text | sed 's/^.*: \(holds by less\|holds\|does not hold\|not known\)[:.].*/\1/' | sort | uniq -c | sed 's/^ *//'
