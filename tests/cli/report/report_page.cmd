# one page each, that needs nothing else, and says the answer first
longhaul predict --model internlm-7b-mha --cluster loongtrain-a100 --gpus 16 --seq 64K -o $T/p --quick > $T/note
longhaul sweep --model internlm-7b-mha --cluster loongtrain-a100 --gpus 8 --vary seq=64K..512K:x2 --vary hp=2,3,8 -o $T/s.csv > $T/note
longhaul validate --source LoongTrain --table 2 --system ulysses -o $T/v.csv > $T/note
longhaul predict --model longhaul-3m --seq 256 --dtype f32 --attention cpu --profile neutral --weights zero1 \
    --cluster cpu-node --gpus 1 --exact --quick -o $T/c > $T/note
page() {
    longhaul report "$@" -o $T/page.html
    # no address is loaded; those of name spaces are none
    grep -o 'https*:[^"'"'"' )]*' $T/page.html | sort -u | grep -v w3.org || true
    grep -c -E '<script|src=|@import|url\(http' $T/page.html || true
    sed -n 's/<h1>\(.*\)<.h1>/= \1/p; s/.*class="sub">\(.*\)<.p>/\1/p; s/<h2>\(.*\)<.h2>/  \1/p' $T/page.html
    sed -n 's/<p class="verdict \([a-z]*\)">\(.*\)<.p>/\1: \2/p' $T/page.html | sed 's/[0-9][0-9.]*/N/g'
    echo "figures $(grep -o '<figure>' $T/page.html | wc -l)"
    for tag in p table tr div figure pre details svg td th; do # all that is opened is closed
        test $(grep -o "<$tag[ >]" $T/page.html | wc -l) = $(grep -o "</$tag>" $T/page.html | wc -l) || echo "$tag is not closed"
    done
}
page $T/p
page $T/s.csv --title 'A <sweep> & more'
grep -o '<td>fastest[^<]*' $T/page.html
longhaul sweep --model gpt2 --cluster dgx-h100 --gpus 1 --vary seq=256 -o $T/short.csv > $T/note
longhaul report $T/short.csv -o - | grep -o '[^>]*extrapolated[^<]*' | sed 's/[0-9][0-9]* %/N %/'
page $T/v.csv
page $T/c $T/c
longhaul report $T/c $T/c -o - | cmp - $T/page.html
# without -o the page goes into the last folder, or beside the last file, and that is said
for what in "$T/c $T/c" "$T/p/" "$T/s.csv"; do longhaul report $what --title written; done
for file in $T/c/report.html $T/p/report.html $T/s.html; do grep -c '<h1>written<.h1>' $file; done
longhaul report - --title written < $T/v.csv | grep -c '<h1>written<.h1>'
longhaul predict --model gpt2 --cluster ideal --gpus 4 --seq 1K --quick -o $T/p 2>&1 > $T/note
bad() { longhaul report "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
bad $T/none
bad $T/p/ops.csv
bad $T/p/trace.json
longhaul run --model longhaul-3m --set layers=1 --seq 64 -o $T/run > $T/note
bad $T/run | sed "s|$T/||g"
bad $T | sed "s|$T/*||g"
bad $T/none $T/c
bad $T/p -o /proc/page.html
# the answer that is none: what comes nearest was not simulated
longhaul predict --model llama3-8b --cluster dgx-a100 --gpus 2 --seq 1M --quick --all -o $T/n > $T/note || echo "  exit $?"
longhaul predict --model llama3-8b --cluster dgx-a100 --gpus 2 --seq 4M --all -o $T/n > $T/note || echo "  exit $?"
longhaul report $T/n -o $T/page.html
sed -n 's/.*<p>\(This .*\)<.p>/\1/p; s/.*class="warning">\(.*\)<.p>/\1/p' $T/page.html | sed 's/[0-9][0-9.]* s/N s/'
sed -n 's/^ *Beware: //p' $T/note
# the page says all that the screen says: each value, line, sentence, bar and command
longhaul predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 128K --all -o $T/q --tokens 1T > $T/screen
longhaul report $T/q -o $T/page.html
python3 -c '
import html, re, sys
page = html.unescape(re.sub("<[^>]*>", " ", re.sub("(?s)<svg.*?</svg>", "", open(sys.argv[2]).read())))
page = " ".join(page.split())
lines = [" ".join(line.rstrip("#\n ").split()) for line in open(sys.argv[1]) if line.strip()]
for line in lines:
    label, _, text = line.partition(" ")
    words = text if not line.startswith(("step", "MFU", "tokens")) else text.partition(" (")[2]
    words = re.sub(" [0-9]+ %$", "", words)
    if words not in page:
        print("not on the page:", line)
print(len(lines) > 30 and "more than 30 lines")' $T/screen $T/page.html
longhaul report $T/q -o $T/page.html
grep -c 'class="n">+\{0,1\}-\{0,1\}[0-9.]*</td></tr>' $T/page.html
grep -o 'step (90 %: ' $T/page.html
# a folder of an older version has no sheet
mkdir $T/older
cp $T/q/*.csv $T/q/trace.json $T/older
sed 's/"sheet"/"other"/' $T/q/prediction.json > $T/older/prediction.json
bad $T/older
# part of a model has no page; names of any bytes make UTF-8 of files
longhaul predict --model gpt2 --cluster ideal --gpus 2 --seq 1K --scope attention -o $T/part > $T/note
bad $T/part
odd="$T/$(printf 'odd "q\377\376 \303\251.json')"
cp $S/tests/data/configs/gpt2.json "$odd"
longhaul predict --model "$odd" --cluster ideal --gpus 2 --seq 1K --quick -o $T/odd > $T/note
longhaul report $T/odd --title "$odd" -o $T/page.html
longhaul plot waterfall $T/odd --title "$odd" -o $T/f.svg
for file in $T/odd/prediction.json $T/odd/trace.json $T/page.html $T/f.svg; do iconv -f UTF-8 -t UTF-8 $file > $T/note || echo "no UTF-8: $file"; done
# counts in full, and why a share is above 100 %
longhaul predict --model internlm-7b-mha --cluster ideal --gpus 8 --seq 1M --quick -o $T/long --tokens 1T | grep -o '^training *1T tokens in [0-9]*'
longhaul report $T/long -o $T/page.html
grep -o '1048576<\|[a-z ]* counts* attention.*fault' $T/page.html
grep -c '[0-9]e+[0-9]' $T/page.html || true
# the ranking of a search stands on the page of its winner, and on no other; what is not one is left out
tiny="--model gpt2 --set layers=2 --cluster dgx-h100 --gpus 2 --seq 1K --weights zero1 --checkpoint none"
longhaul plan $tiny -o $T/searched > $T/out 2> $T/note
ranked() { longhaul report $T/searched -o $T/page.html > $T/out && grep -c 'Beside other configurations' $T/page.html || true; }
ranked
echo '{ "ranking": [' > $T/searched/plan.json
ranked
longhaul plan $tiny -o $T/searched > $T/out 2> $T/note
cp $T/searched/plan.json $T/kept.json
longhaul predict $tiny --batch 4 --strategy local --dp 2 -o $T/searched > $T/out 2> $T/note
cp $T/kept.json $T/searched/plan.json
ranked
