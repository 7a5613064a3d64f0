# Rows are looked through before they are added; every fault of every row is named, with its line. Those that ship
# have one, which is in print: a cell whose tokens per second and MFU disagree.
for file in external external-2026-11 measurements; do
    longhaul validate --check-rows $S/traces/published/$file.csv || echo "exit $?"
done | sed -E "s#$S/##; s/^[0-9]+ (rows|of them)/N \1/"
E=$S/traces/published/external.csv
cp -r $S/traces/published/external-models $T
row() { grep '^internevo-276,' $E | sed "s/^/$2/; $1"; }
(head -1 $E; row 's/,4.9438,/,5.9,/'; row 's/,8,64,1,1,/,8,56,1,1,/' b; row 's/,a100_80gb,8,/,a100_80gb,64,/' c
    row 's/--model [^ ]*/--model nothing/' d; row 's/--zero 1/--zeros 1/' e; row 's/,8,64,/,8,64,/'; row 's/a100_80gb//'; row 's/,2048,/,many,/') > $T/steps.csv
longhaul validate --check-rows $T/steps.csv || echo "exit $?"
cat > $T/figures.csv <<END
id,source,place,framework,model,gpu,gpus,seq_len,metric,value,unit,counts,args,note
a,Ours,1,ulysses,gpt-2.7b,a100,4,2048,tgs,9000,tokens/s/gpu,,--model gpt-2.7b --cluster dgx-a100 --seq 2048 --gpus 4 --zero 1,
b,Ours,1,ulysses,gpt-2.7b,a100,4,2048,mfu,0.9,fraction,,--model gpt-2.7b --cluster dgx-a100 --seq 2048 --gpus 4 --zero 1,
c,Ours,1,ulysses,gpt-2.7b,a100,3,2048,tgs,9000,tokens/s/gpu,,--model gpt-2.7b --cluster dgx-a100 --seq 2048 --gpus 3 --zero 1,
d,Ours,1,mesh,gpt-2.7b,a100,4,2048,tgs,9000,tokens/s/gpu,,--model gpt-2.7b --cluster dgx-a100 --seq 2048 --gpus 4 --zero 1 --strategy mesh,
e,Ours,1,ulysses,gpt-2.7b,a100,4,2048,tgs,9100,tokens/s/gpu,,--model gpt-2.7b --cluster dgx-a100 --seq 2048 --gpus 4 --zero 1,
f,Ours,1,ulysses,gpt-2.7b,a100,4,2048,tgs,fast,tokens/s/gpu,,--model gpt-2.7b --cluster dgx-a100 --seq 2048 --gpus 4 --zero 1,
g,Ours,1,ulysses,gpt-2.7b,a100,4,2048,tgs,9000,GiB,,--model gpt-2.7b --cluster dgx-a100 --seq 2048 --gpus 4 --zero 1,
h,Ours,1,ulysses,gpt-2.7b,a100,8,2048,mfu,0.2,fraction,,--model gpt-2.7b --cluster dgx-a100 --seq 2048 --gpus 4 --zero 2,
END
longhaul validate --check-rows $T/figures.csv || echo "exit $?"
# files that are no rows
echo 'a,b' > $T/two.csv
longhaul validate --check-rows $T/two.csv || echo "exit $?"
printf 'a,b\n1,2\n' > $T/other.csv
longhaul validate --check-rows $T/other.csv || echo "exit $?"
longhaul validate --check-rows $T/none.csv || echo "exit $?"
longhaul validate --check-rows $T/two.csv --source FPDT || echo "exit $?"
