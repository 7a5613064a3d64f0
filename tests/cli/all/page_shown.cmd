# pages as a browser shows them, wide and narrow, light and dark: no page wider than its window, letters of 9 px or more, no labels on
# one another or cut off, words that can be told from the background; and no page of a megabyte
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "no browser is installed: apt-get install chromium"
    exit 77
}
gpus="--model llama3-8b --cluster dgx-h100"
{
    longhaul predict $gpus --nodes 1 --seq 512K --strategy fpdt --quick -o $T/fpdt
    longhaul predict $gpus --set layers=16 --gpus 4 --pp 4 --pipeline zb-1p --seq 8K --batch 8 --strategy ulysses --quick -o $T/pipeline
    longhaul plan $gpus --nodes 1 --seq 128K --zero 3 -o $T/plan
    longhaul sweep $gpus --nodes 1 --vary seq=64K..512K:x2 --vary zero=1,3 --vary hp=2,8 -o $T/sweep.csv
    longhaul sweep $gpus --nodes 1 --vary seq=64K..512K:x2 --vary hp=1,2,4,8 -o $T/map.csv
    longhaul validate --source LoongTrain --table 2 --system ulysses -o $T/validation.csv
    longhaul predict --model longhaul-3m --seq 256 --dtype f32 --attention cpu --profile neutral --weights zero1 \
        --cluster cpu-node --gpus 1 --exact --quick -o $T/cpu
} > $T/note 2>&1
for what in fpdt pipeline plan sweep.csv map.csv validation.csv "cpu $T/cpu"; do
    name=${what%%[. ]*}
    longhaul report $T/$what -o $T/$name.html
    test $(wc -c < $T/$name.html) -lt 1000000 || echo "$name has $(wc -c < $T/$name.html) bytes"
done
# a page with every fault, which must be told
cat > $T/bad.html << 'END'
<!DOCTYPE html><meta charset="utf-8"><body style="background:#fff"><h1>bad</h1><p style="font-size:8px">small words</p>
<div style="width:1500px">wide</div>
<figure><svg width="300" height="80"><text x="10" y="20" font-size="12">one label</text><text x="30" y="22" font-size="12">another</text>
<text x="10" y="50" font-size="5">small</text><text x="280" y="50" font-size="12">cut off</text>
<text x="150" y="70" font-size="12" fill="#eee">pale</text></svg></figure>
<figure><svg width="10" height="10"></svg><svg width="10" height="10"></svg></figure>
END
{
    echo "<!DOCTYPE html><meta charset=\"utf-8\"><script src=\"file://$S/tests/cli/page_shown.js\"></script>"
    # each page with the number of its figures
    for page in fpdt:3 pipeline:4 plan:3 sweep:3 map:4 validation:1 cpu:2 bad:3; do
        name=${page%:*}
        for width in 1280 400; do
            echo "<iframe title=\"$name\" data-figures=\"${page#*:}\" width=\"$width\" height=\"900\" src=\"$name.html\"></iframe>"
        done
    done
} > $T/frames.html
for scheme in 1 0; do # light, dark
    "$browser" --headless --no-sandbox --disable-gpu --no-first-run --user-data-dir=$T/browser --allow-file-access-from-files \
        --blink-settings=preferredColorScheme=$scheme --window-size=1400,1000 --virtual-time-budget=30000 \
        --dump-dom file://$T/frames.html > $T/dom 2> $T/note || echo "the browser failed: $(tail -1 $T/note)"
    test $scheme = 1 && echo light || echo dark
    sed -n 's/^= //p' $T/dom
done
