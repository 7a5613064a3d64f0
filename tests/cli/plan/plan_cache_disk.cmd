# a full disk costs an answer nothing: the file ends with the last result that it had room for, and goes on from there
own="unshare --mount"
test $(id -u) = 0 || own="unshare --user --map-root-user --mount"
cd $T
mkdir disk
if ! $own mount -t tmpfs -o size=64k none disk 2> note; then
    echo "no small disk can be mounted here: $(head -n 1 note)"
    exit 77
fi
what="--model gpt2 --set layers=2 --cluster dgx-h100 --gpus 2 --seq 1K --weights zero1 --checkpoint none"
longhaul plan $what > plain
for kib in 0 8; do
    $own sh -c 'mount -t tmpfs -o size=64k none disk && cd disk && head -c $(((64 - $1) * 1024)) /dev/zero > old
        code=0
        longhaul plan $2 -o p > $T/out 2> $T/err || code=$?
        cat $T/err
        cmp $T/plain $T/out
        echo "  exit $code with $1 KiB:" $(ls -A)
        mount -o remount,size=1m none .
        longhaul plan $2 -o p > $T/out 2> $T/err
        cmp $T/plain $T/out
        sed "s/has [0-9]* of/has N of/" $T/err
        ls' full $kib "$what"
done
# a page that cannot be written leaves none of another plan beside the new winner; all else is of the new one
longhaul plan $what -o q > old 2> note
cp q/plan.json old.json
code=0
(ulimit -f 128; longhaul plan $what --batch 4 -o q > out 2> err) || code=$?
grep -v q.cache err
echo "  exit $code without room for the page:" $(ls q)
cmp -s q/plan.json old.json || echo "a new ranking"
grep -o '"sequences": 4' q/prediction.json
