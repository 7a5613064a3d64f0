# Rows are looked through before they are added; every fault of every row is named, with its line. Those that ship
# have one, which is in print: a cell whose tokens per second and MFU disagree.
for file in external measurements; do
    longhaul validate --check-rows $S/traces/published/$file.csv || echo "exit $?"
done | sed "s#$S/##"
E=$S/traces/published/external.csv
cp -r $S/traces/published/external-models $T
row() { grep '^internevo-276,' $E | sed "s/^/$2/; $1"; }
(head -1 $E; row 's/,4.9438,/,5.9,/'; row 's/,8,64,1,1,/,8,56,1,1,/' b; row 's/,a100_80gb,8,/,a100_80gb,64,/' c
    row 's/--model [^ ]*/--model nothing/' d; row 's/--zero 1/--zeros 1/' e; row 's/,8,64,/,8,64,/'; row 's/a100_80gb//'; row 's/,2048,/,many,/') > $T/steps.csv
longhaul validate --check-rows $T/steps.csv || echo "exit $?"
cat > $T/figures.csv <<END
source,table,system,model,cluster,gpus,seq_len,options,metric,value,unit,note
Ours,1,ulysses,gpt-2.7b,dgx-a100,4,2048,zero=1,tgs,9000,tokens/s/gpu,
Ours,1,ulysses,gpt-2.7b,dgx-a100,4,2048,zero=1,mfu,0.9,fraction,
Ours,1,ulysses,gpt-2.7b,dgx-a100,3,2048,zero=1,tgs,9000,tokens/s/gpu,
Ours,1,mesh,gpt-2.7b,dgx-a100,4,2048,zero=1,tgs,9000,tokens/s/gpu,
Ours,1,ulysses,gpt-2.7b,dgx-a100,4,2048,zero=1,tgs,9100,tokens/s/gpu,
Ours,1,ulysses,gpt-2.7b,dgx-a100,4,2048,zero=1,tgs,fast,tokens/s/gpu,
Ours,1,ulysses,gpt-2.7b,dgx-a100,4,2048,zero=9;impl=internevo,tgs,9000,GiB,
END
longhaul validate --check-rows $T/figures.csv || echo "exit $?"
# files that are no rows
echo 'a,b' > $T/two.csv
longhaul validate --check-rows $T/two.csv || echo "exit $?"
printf 'a,b\n1,2\n' > $T/other.csv
longhaul validate --check-rows $T/other.csv || echo "exit $?"
longhaul validate --check-rows $T/none.csv || echo "exit $?"
longhaul validate --check-rows $T/two.csv --source FPDT || echo "exit $?"
