# Output of nccl-tests as launchers leave it: tagged lines are read, mixed lines of two runs are refused.
cd $T
data=$S/tests/data/calibration
longhaul calibrate $data/all_reduce_8.txt > plain
for tag in '[1,0]<stdout>:' '[0] ' '0: '; do
    sed "s/^/$tag/" $data/all_reduce_8.txt > tagged.txt
    longhaul calibrate tagged.txt | sed 's/tagged/all_reduce_8/' | cmp - plain && echo "read: $tag"
done
# two processes that know nothing of each other wrote to one file
awk '{ print; print }' $data/all_reduce_8.txt > mixed.txt
longhaul calibrate mixed.txt || echo "exit $?"
# a cluster file over one line, over a preset with a number of its own, and over a file, which it names from its folder
mkdir other
cp $S/tests/data/clusters/ours.json .
for base in 2x4xh100 dgx-h100:nics=4 ours.json; do
    for file in measured.json other/measured.json; do
        longhaul calibrate all_gather_perf:$data/all_gather_2x4.txt --cluster $base --cluster-out $file > report
        sed -n "s|$T|\$T|; s/\"source\".*//; /\"base\"\|efficiency/p" $file
        longhaul predict --model gpt2 --cluster $file --gpus 2 --seq 1K --quick | sed -n 's/^model .* of /of /p'
    done
done
# what cannot be written is refused before anything is fitted
longhaul calibrate all_gather_perf:$data/all_gather_2x4.txt --cluster ours.json:nics=4 --cluster-out m.json || echo "exit $?"
longhaul calibrate all_gather_perf:$data/all_gather_2x4.txt -o device.json || echo "exit $?"
ls
