# a disk that is full, a small one of its own for each command: one message, exit code 2, and nothing half done
own="unshare --mount"
test $(id -u) = 0 || own="unshare --user --map-root-user --mount"
mkdir $T/disk
if ! $own mount -t tmpfs -o size=64k none $T/disk 2> $T/note; then
    echo "no small disk can be mounted here: $(head -n 1 $T/note)"
    exit 77
fi
export T
# KIB of 64 are free; what is left on the disk is listed, with its first line where it is text
on_disk() { # KIB COMMAND
    free=$1
    shift
    $own sh -c '
        free=$1
        shift
        mount -t tmpfs -o size=64k none $T/disk && cd $T/disk || exit
        head -c $(((64 - free) * 1024)) /dev/zero > old
        cksum < old > $T/before
        code=0
        longhaul "$@" > $T/out 2> $T/err || code=$?
        cat $T/err
        echo "  exit $code: $1"
        cksum < old | cmp - $T/before
        ls -A | sed /^old\$/d' disk_full $free "$@"
}
tiny="--profile published --model longhaul-3m --set layers=1,hidden=64,head_dim=8,ffn=96 --seq 64 --gpus 2"
what="--model gpt2 --cluster ideal --gpus 2 --seq 1K"
longhaul sweep --model gpt2 --cluster ideal --gpus 4 --seq 1K --vary dp=1,2 --vary checkpoint=none,full -o $T/a.csv > $T/note
longhaul predict $what --quick -o $T/p > $T/note
on_disk 0 sweep --model gpt2 --cluster ideal --gpus 4 --seq 1K --vary dp=1,2 -o a.csv
on_disk 0 predict $what --quick -o p
on_disk 60 predict $what --quick -o p --emit-ir --emit-snapshot --emit-chakra
on_disk 4 plot sweep $T/a.csv -o a.svg
on_disk 0 plot waterfall $T/p -o figure
on_disk 8 report $T/a.csv -o a.html
on_disk 20 run $tiny --steps 1 -o r
on_disk 0 schedule $what -o a.ir
on_disk 0 validate --source torchtitan-cp --table text -o v.csv
on_disk 0 calibrate $S/tests/data/calibration/cpu-example.csv -o d.json
# what goes to standard output is cut off where the disk ends, and that is said
$own sh -c 'mount -t tmpfs -o size=4k none $T/disk && cd $T/disk && echo > full
    for command in "plan --model gpt2 --cluster ideal --gpus 2 --seq 1K --emit megatron" "list models"; do
        longhaul $command > out || echo "  exit $?: $command"
    done' 2>&1

# a sweep goes on when there is room again, whether its rows or only its end had none
for kib in 60 56; do
    $own sh -c 'mount -t tmpfs -o size=64k none $T/disk && cd $T/disk && head -c $1K /dev/zero > old
        sweep="longhaul sweep --model gpt2 --cluster ideal --gpus 4 --seq 1K --vary dp=1,2 --vary checkpoint=none,full,selective++ --vary loss-chunks=1,2 -o b.csv"
        $sweep > $T/out 2> $T/err || echo "  exit $?: sweep"
        sed "s/the [0-9]* rows/the N rows/" $T/err
        ls -A
        rm old
        $sweep | sed -n "s/([0-9]* from an/(N from an/; 2p"
        grep -c "^[^#]" b.csv
        ls -A' disk_full $kib
done
