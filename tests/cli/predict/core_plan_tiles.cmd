# A plan with tiles by hand: query 7 and its keys travel from rank 0 to rank 1, which has as many pairs then.
cd $T
fails() { longhaul predict --quick --model longhaul-3m --cluster dgx-h100 --strategy ring "$@" || echo "exit $?"; }
cat > moved.plan <<END
core plan 1 ranks=2
sequence,what,begin,rows,key,keys,rank,round
0,document,0,8,,,,
0,document,8,4,,,,
0,document,12,4,,,,
0,own,0,8,,,0,
0,own,8,8,,,1,
0,tile,0,7,0,8,0,0
0,tile,7,1,0,8,1,1
0,tile,8,8,8,8,1,0
END
step="--model longhaul-3m --gpus 2 --strategy ring --seq 16 --core-plan moved.plan"
longhaul check moved.plan
longhaul schedule $step --cluster dgx-h100 > moved.ir
grep '^documents' moved.ir
longhaul check moved.ir | grep -E '^(documents|coverage|right)' | grep -o '^[a-z]*'
for what in "$step" "moved.ir --model longhaul-3m"; do
    longhaul run $what --check > run.txt || echo "exit $?"
    grep -o '^right: .* beside the reference' run.txt
done
longhaul predict $step --cluster dgx-h100 -o moved > predicted.txt
grep -o 'ring cp=2 by planned' predicted.txt
grep -o '"exchange' moved/trace.json | sort -u
# rank 1 receives 8 rows of keys, and a query whose result returns
longhaul predict $step --cluster dgx-h100 --json | grep -E '"(pairs_over_mean|mean_rows|most_rows)"'
fails --gpus 2 --seq 16 --core-plan moved.plan --rotate needed
sed 's/ranks=2/ranks=2 window=3/' moved.plan > window.plan
fails --gpus 2 --seq 16 --core-plan window.plan
sed 's/^0,tile,7,1,0,8/0,tile,7,1,0,7/' moved.plan > hole.plan
fails --gpus 2 --seq 16 --core-plan hole.plan
sed 's/tiles=0,7,0,8/tiles=0,7,0,6/' moved.ir > hole.ir
longhaul check hole.ir | grep -o '^coverage *[0-9]* fail[a-z]*' || true
# rules that would make millions of tiles
fails --gpus 2 --seq 64K --core-plan blocks:16
fails --gpus 4096 --cp 4096 --seq 64K --core-plan token-ring
