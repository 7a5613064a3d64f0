# Two folders of traces: a prediction, and a run that was 1.5 times as long in its attention.
mkdir $T/predicted $T/measured
cat > $T/predicted/ops.csv <<END
# made_by=longhaul predict
# arena_bytes.hbm=4096
rank,stream,op,kind,phase,region,layer,chunk,step,start_s,end_s,bytes,flops
0,compute,0,matmul,forward,linear,0,-1,-1,0,0.010,0,1000
0,compute,1,attention,forward,attention,0,-1,-1,0.010,0.030,0,1000
0,comm.cp,2,shift,forward,attention,0,-1,0,0.010,0.020,4096,0
1,compute,0,matmul,forward,linear,0,-1,-1,0,0.010,0,1000
1,compute,1,attention,forward,attention,0,-1,-1,0.010,0.030,0,1000
1,comm.cp,2,shift,forward,attention,0,-1,0,0.010,0.020,4096,0
END
sed -e 's/predict$/run/' -e 's/0.010,0.030/0.010,0.040/' $T/predicted/ops.csv > $T/measured/ops.csv
cat > $T/predicted/memory.csv <<END
time_s,rank,memory,category,bytes
0,0,hbm,parameter,1048576
0,1,hbm,parameter,1048576
END
cp $T/predicted/memory.csv $T/measured/memory.csv
longhaul compare $T/predicted $T/measured --tolerance 30% --all
longhaul compare $T/predicted $T/measured --by kind --top 1 --json
longhaul compare $T/predicted $T/measured --by rank --top 0 --tolerance 15%
