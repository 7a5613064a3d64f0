# a plan with -o keeps what it found out in DIR.cache: a later one predicts none of it again, and prints the same
cd $T
what="--model gpt2 --set layers=2 --cluster dgx-h100 --gpus 2 --seq 1K --weights zero1 --checkpoint none"
longhaul plan $what > plain
same() { cmp plain out && sed 's/has [0-9]* of/has N of/' err; }
longhaul plan $what -o first/ > out 2> err && same
longhaul plan $what -o first > out 2> err && same
lines() { grep -c . first.cache; }
lines > before
longhaul plan $what -o first > out 2> err && same
lines | cmp - before
test $(stat -c %s first.cache) -lt 1000000 && echo "small"
# what was judged for one question serves another; with other choices nothing of it is the same
taken() { longhaul plan $1 -o first > out 2> err; sed -n 's/.*has \([0-9]*\) of.*/\1/p' err; }
known=$(taken "$what")
test $(taken "$what --gap 20") -gt 2 && echo "another gap"
test $(taken "$what --all --top 7") -eq $known && echo "another report"
test $(taken "$what --strategy ulysses") -gt 0 && echo "one strategy"
test $(taken "$what --batch 8") -gt 2 && echo "layers of another batch"
test -z "$(taken "$what --attention fa2")" && echo "other kernels"
test -z "$(taken "$what --profile megatron")" && echo "another profile"
# other goals, and packed documents
for more in "--goal longest" "--goal gpus --seq 1K" "--seq 4K --batch 4 --batches 2 --documents lognormal:1000,1"; do
    other="--model longhaul-3m --set layers=1 --cluster dgx-h100 --gpus 2 --weights zero1 --checkpoint full --loss-chunks 1"
    longhaul plan $other $more > plain 2> note
    for time in 1 2; do longhaul plan $other $more -o other > out 2> err && cmp plain out && sed '/packing/d; s/has [0-9]* of/has N of/' err; done
done
longhaul plan $what > plain

# a file that was changed is another question, under the same name
presets=$S/models/presets/transformers
sed 's/"name": "gpt2"/"name": "mine"/' $presets/gpt2.json > mine.json
mine="--model mine.json --set layers=2 --cluster dgx-h100 --gpus 2 --seq 1K --weights zero1 --checkpoint none"
longhaul plan $mine -o mine > out 2> err
sed -i 's/"vocab": [0-9]*/"vocab": 90000/' mine.json
longhaul plan $mine > plain
longhaul plan $mine -o mine > out 2> err && same
longhaul plan $what > plain

# damaged, cut off, of another build: what is wrong is predicted again
cp first.cache whole
tr '[0-9]' '[1-90]' < whole | sed "1s/.*/$(head -1 whole)/" > first.cache
longhaul plan $what -o first > out 2> err && same
head -c $(($(stat -c %s whole) / 3)) whole > first.cache
longhaul plan $what -o first > out 2> err && same
sed '1s/program .*/program 0/' whole > first.cache
longhaul plan $what -o first > out 2> err && same
head -1 whole > head && head -1 first.cache | cmp - head
: > first.cache
longhaul plan $what -o first > out 2> err && same
# what is not a plan's stays as it is
echo "my notes" > first.cache
longhaul plan $what -o first > out 2> err && same
cat first.cache
rm first.cache && mkdir first.cache
longhaul plan $what -o first > out 2> err && same
rmdir first.cache
# another process has the file: a plan goes without it, and does not harm it
cp whole first.cache
python3 -c 'import fcntl, subprocess, sys
file = open("first.cache", "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
sys.exit(subprocess.call(sys.argv[1:]))' longhaul plan $what -o first > out 2> err && same
cmp first.cache whole
longhaul plan $what -o first > out 2> err && same
# the folder by other names
mkdir -p in/here
(cd in/here && longhaul plan $what -o . > $T/out && cmp $T/plain $T/out && longhaul plan $what -o ./ > $T/out 2> $T/err && ls ..)
same
# without -o nothing is written
mkdir none && (cd none && longhaul plan $what > $T/out && ls -A)
