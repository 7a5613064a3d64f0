# sweep --record-cmd on a full disk: one message, no half recording, and the same sweep goes on when there is room again.
# A command as longhaul.record takes back what it could not write; one as cp leaves it.
own="unshare --mount"
test $(id -u) = 0 || own="unshare --user --map-root-user --mount"
cd $T
mkdir disk
if ! $own mount -t tmpfs -o size=64k none disk 2> note; then
    echo "no small disk can be mounted here: $(head -n 1 note)"
    exit 77
fi
cp $S/tests/data/recordings/llama-fsdp.json.gz one.json.gz
cat > tidy.sh << 'END'
cp one.json.gz "$LONGHAUL_RECORD_OUTPUT" 2> said && exit
rm -f "$LONGHAUL_RECORD_OUTPUT"
cat said >&2
exit 2
END
printf 'cp one.json.gz "$LONGHAUL_RECORD_OUTPUT"' > plain.sh
short() { sed 's/-[0-9a-f]\{16\}//g; s/cp: error writing.*: No/cp: No/'; }
for kib in 0 4 8; do
    for how in plain tidy; do
        $own sh -c 'mount -t tmpfs -o size=64k none disk && head -c $(((64 - $1) * 1024)) /dev/zero > disk/old
            sweep="longhaul sweep --record-dir disk/kept --cluster dgx-h100 --vary gpus=8 -o $2$1.csv"
            $sweep --record-cmd "sh $2.sh" > out 2> err || echo "  exit $? with $1 KiB: $2"
            cat err
            ls disk/kept
            grep ^8 $2$1.csv | cut -d, -f1-2
            mount -o remount,size=1m none disk
            $sweep --record-cmd "sh $2.sh"
            ls disk/kept' sh $kib $how 2>&1 | short
    done
done
