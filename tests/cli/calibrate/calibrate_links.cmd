# nccl-tests of one node and of two into a cluster file.
cd $S/tests/data/calibration
longhaul calibrate all_reduce_8.txt alltoall_8.txt all_gather_perf:all_gather_2x4.txt \
    --cluster dgx-h100 --cluster-out $T/ours.json
cat $T/ours.json
