# Pictures of the documents are what the commands above them make: words and lines, numbers within a pixel where the same gnuplot
# drew them. UPDATE_GOLDEN=1 draws them anew; that of a page is a screenshot, of which report.txt has the words: take it when these change,
# with chromium --headless --hide-scrollbars --window-size=1100,1180 --screenshot=report.png report.html
pictures=$S/docs/pictures
mkdir $T/blocks $T/work
cd $T/work
for f in docs/plotting.md docs/planning.md docs/sweeping.md; do awk -v to=$T/blocks/$(basename $f .md) -f $S/tests/cli/blocks.awk $S/$f; done
for f in $pictures/*.svg $pictures/*.png; do
    grep -qF "pictures/$(basename $f))" $S/README.md $S/docs/*.md $S/docs/strategies/*.md || echo "$(basename $f) is in no document"
done

words() { sed -n 's/.*<text>\(.*\)<\/text>.*/\1/p' $1; }
# FILE: numbers on lines of their own
apart() { tr '\t' ' ' < $1 | sed 's/-\{0,1\}[0-9][0-9]*\(\.[0-9]*\)\{0,1\}/\n&\n/g'; }
same() { # two drawings, numbers within a pixel
    apart $1 > $T/one
    apart $2 > $T/two
    paste $T/one $T/two | awk -F '\t' '$1 == $2 { next }
        $1 + 0 != $1 || $2 + 0 != $2 || ($1 - $2) ^ 2 > 1 { print NR ": " $1 " is now " $2; exit 1 }'
}
version() { sed -n 's/.*<desc>\(.*\)<\/desc>.*/\1/p' $1; }
for picture in $pictures/*.svg; do
    name=$(basename $picture)
    block=$(grep -l -e "-o $name\$" $T/blocks/*) || { echo "no commands make $name"; continue; }
    sh -e $block > $T/said 2>&1 || { echo "$name: $(tail -n 1 $T/said)"; continue; }
    if test "$UPDATE_GOLDEN" = 1; then cp $name $picture; fi
    words $picture > $T/words
    words $name | diff $T/words - || { echo "$name is stale"; continue; }
    test "$(version $picture)" != "$(version $name)" || same $picture $name || { echo "$name is stale"; continue; }
    echo "$name is what its commands draw"
done

longhaul predict --model internlm-7b-mha --cluster loongtrain-a100 --gpus 32 --strategy ulysses --profile published --seq 512K --quick -o out > $T/said
longhaul report out -o report.html
# its words up to its second figure, drawn for a wide screen
sed -n '/<body/,/>Over time</p' report.html | sed 's/<div class="narrow.*<figcaption>/<figcaption>/; s/<[^>]*>/\n/g' |
    sed '/^[[:space:]]*$/d' > report.txt
if test "$UPDATE_GOLDEN" = 1; then cp report.txt $pictures/report.txt; fi
diff $pictures/report.txt report.txt && echo "the page is that of report.png"
