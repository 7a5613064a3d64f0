# Copies behind computation: exposed at a short chunk, hidden at a long one, as predicted. Times are a
# machine's; which side of the middle the shares lie on is not. Other work of the machine can move a
# run to the other side: of three, one has to lie where it was predicted.
fpdt="--model longhaul-3m --set layers=1 --strategy fpdt --profile ideal --seq 512 --gpus 1 --dtype f32 --attention cpu"
both() {
    longhaul predict $fpdt --chunk $1 --quick -o $T/predicted \
        --cluster "1x1xcpu-node:pcie.h2d=40 MB/s,pcie.d2h=40 MB/s" > $T/report
    for try in 1 2 3; do
        measure $1 > $T/sides
        awk '/^chunk/ && $4 != $6 "," { exit 1 }' $T/sides && break
    done
    cat $T/sides
}
measure() {
    longhaul run $fpdt --chunk $1 --copy-rate "40 MB/s" --warmup 0 --steps 1 -o $T/measured > $T/report
    longhaul compare $T/predicted $T/measured --top 0 > $T/report
    grep -c '^arena .* in both$' $T/report
    awk '$1 == "h2d" && NF == 9 || $1 == "d2h" && NF == 9 { p += $2; P += $3; m += $6; M += $7 }
        function side(share) { return share > 0.6 ? "exposed" : share < 0.45 ? "hidden" : share }
        END { print "chunk '$1': predicted", side(p / P) ", measured", side(m / M) }' $T/report
}
both 16
both 256
