# a table of our own on the ideal cluster, so that what is predicted is arithmetic
cat > $T/own.csv <<END
id,source,place,framework,model,gpu,gpus,seq_len,metric,value,unit,counts,args,note
o1,Ours,1,ulysses,gpt-2.7b,ideal,4,2048,step_ms,10.32,ms,,--model gpt-2.7b --cluster ideal --gpus 4 --seq 2048 --strategy ulysses --profile internevo --checkpoint none --zero 1,
o2,Ours,1,ulysses,gpt-2.7b,ideal,4,2048,tgs,49612,tokens/s/gpu,,--model gpt-2.7b --cluster ideal --gpus 4 --seq 2048 --strategy ulysses --profile internevo --checkpoint none --zero 1,
o3,Ours,1,ulysses,gpt-2.7b,ideal,4,2048,mfu,0.5,fraction,the same run as its tgs,--model gpt-2.7b --cluster ideal --gpus 4 --seq 2048 --strategy ulysses --profile internevo --checkpoint none --zero 1,
o4,Ours,1,ulysses,gpt-2.7b,ideal,4,2048,verdict,OOM,,,--model gpt-2.7b --cluster ideal --gpus 4 --seq 2048 --strategy ulysses --profile internevo --checkpoint none --zero 1,nothing is ever full there
o5,Ours,1,ulysses,gpt-2.7b,ideal,4,2048,tgs,0,tokens/s/gpu,,--model gpt-2.7b --cluster ideal --gpus 4 --seq 2048 --strategy ulysses --profile internevo --checkpoint none --zero 1,
o6,Ours,1,ulysses,gpt-2.7b,ideal,3,2048,tgs,100,tokens/s/gpu,,--model gpt-2.7b --cluster ideal --gpus 3 --seq 2048 --strategy ulysses --checkpoint none --zero 1,
o7,Ours,2,fpdt,gpt-2.7b,ideal,4,2048,tgs,100,tokens/s/gpu,,--model gpt-2.7b --cluster ideal --gpus 4 --seq 2048 --strategy fpdt --chunk 1024 --sparsity 2,
o8,Ours,2,2d,gpt-2.7b,ideal,4,2048,tgs,44000,tokens/s/gpu,,--model gpt-2.7b --cluster ideal --gpus 4 --seq 2048 --strategy 2d --hp 2 --cp 2,
o9,Ours,2,2d,gpt-2.7b,ideal,4,2048,tgs,45000,tokens/s/gpu,,--model gpt-2.7b --cluster ideal --gpus 4 --seq 2048 --strategy 2d --hp 4 --cp 1 --checkpoint selective++,
o10,Ours,2,2d,gpt-2.7b,ideal,8,2048,tgs,45000,tokens/s/gpu,,--model gpt-2.7b --cluster ideal --gpus 4 --seq 2048 --strategy 2d --hp 4 --cp 1,
END
(longhaul validate --all --data $T/own.csv -o $T/out.csv || echo "exit $?") | grep -v '^  *device memory'
cat $T/out.csv
# rows that were compared are rows of measurements again; one cannot be predicted, and says so
longhaul validate --data $T/out.csv -o $T/again.csv > $T/report || echo "exit $?"
cmp $T/out.csv $T/again.csv
# shipped rows: every one of a table is accounted for (all tables take minutes)
longhaul validate --source LoongTrain --table 3 -o $T/all.csv > $T/all
grep -c . $T/all.csv
sed -n 's/^rows: \([0-9]*\).*/\1 rows/p' $T/all
# a full disk loses nothing: what is there stays, and the report is printed all the same
longhaul validate --data $T/own.csv -o /dev/full > $T/report2 || echo "exit $?"
cmp $T/report $T/report2
# rows of every kind move with the numbers of the machine: those of subsequences too
longhaul validate --source SPPO --table fig5 --sensitivity | sed -n '/^sensitivity/,/^  pcie/p' | sed 's/  *$//'
# a step's time and its tokens per second are one measurement: the closed form has one error for both, as the simulation
(
    echo id,source,place,framework,model,gpu,gpus,seq_len,metric,value,unit,counts,args,note
    args="--model internlm-7b-mha --cluster loongtrain-a100 --gpus 32 --strategy ulysses --profile deepspeed --hp 32 --seq 131072 --zero 1"
    echo "b1,Ours,step,ulysses,internlm-7b-mha,a100_80gb,32,131072,step_ms,10240,ms,,$args,"
    echo "b2,Ours,rate,ulysses,internlm-7b-mha,a100_80gb,32,131072,tgs,400,tokens/s/gpu,,$args,"
) > $T/both.csv
longhaul validate --data $T/both.csv --baseline | sed -n '/^baseline/,/^$/p'
