# a table of our own on the ideal cluster, so that what is predicted is arithmetic
cat > $T/own.csv <<END
source,table,system,model,cluster,gpus,seq_len,options,metric,value,unit,note
Ours,1,ulysses,gpt-2.7b,ideal,4,2048,checkpoint=none;zero=1;impl=internevo,step_ms,10.32,ms,
Ours,1,ulysses,gpt-2.7b,ideal,4,2048,checkpoint=none;zero=1;impl=internevo,tgs,49612,tokens/s/gpu,
Ours,1,ulysses,gpt-2.7b,ideal,4,2048,checkpoint=none;zero=1;impl=internevo,mfu,0.5,fraction,
Ours,1,ulysses,gpt-2.7b,ideal,4,2048,checkpoint=none;zero=1;impl=internevo,verdict,OOM,,nothing is ever full there
Ours,1,ulysses,gpt-2.7b,ideal,4,2048,checkpoint=none;zero=1;impl=internevo,tgs,0,tokens/s/gpu,
Ours,1,ulysses,gpt-2.7b,ideal,3,2048,checkpoint=none;zero=1,tgs,100,tokens/s/gpu,
Ours,2,fpdt,gpt-2.7b,ideal,4,2048,chunk=1024;sparsity=2,tgs,100,tokens/s/gpu,
Ours,2,2d,gpt-2.7b,ideal,4,2048,dhp=2;dcp=2,tgs,44000,tokens/s/gpu,
Ours,2,2d,gpt-2.7b,ideal,4,2048,dhp=4;dcp=1;checkpoint=selective++,tgs,45000,tokens/s/gpu,
END
longhaul validate --all --data $T/own.csv -o $T/out.csv | grep -v '^  *device memory'
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
