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
# Cycles of the kinds that compute, where both sides say at which clock they ran: attention took as many as predicted,
# at a lower clock.
mkdir $T/clocked $T/slower
clocks() { awk -v keys="$2" 'NR == 1 { print; print keys; next } 1' $T/$1/ops.csv; }
clocks predicted "# sm_clock_mhz=1800
# sm_clock_mhz.attention=1500" > $T/clocked/ops.csv
clocks measured "# sm_clock_mhz=1000" > $T/slower/ops.csv
longhaul compare $T/clocked $T/slower --by kind --top 0 | sed -n '/^cycles/,$p'
longhaul compare $T/clocked $T/slower --by kind --top 0 --json | sed -n '/"cycles"/,/]/p'
longhaul compare $T/clocked $T/measured --by kind --top 0 | awk '/^cycles/ { n++ } END { print n + 0 }'
# A run in which products computed other ops says so.
mkdir $T/joined
awk 'NR == 1 { print; print "# joined_ops=gelu 4 of 4, column_sum 2 of 8, norms 1 of 5"; next } 1' $T/measured/ops.csv > $T/joined/ops.csv
longhaul compare $T/predicted $T/joined --by kind --top 0 | sed -n '/^epilogues/p'
longhaul compare $T/predicted $T/measured --by rank --top 0 --tolerance 15%
