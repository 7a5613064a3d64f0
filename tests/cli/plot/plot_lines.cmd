# lines of a figure: 24 can be told apart, and more are refused with what to leave out
cd $S/plots
gnuplot -e "series=24; output='/dev/null'; load 'common.gp'; show style line" 2>&1 | sed -n 's/.*rgb \("[^"]*"\).*dashtype \(.*\) pointtype \([0-9]*\) .*/\1 \2 \3/p' > $T/styles
sort -u $T/styles | wc -l
sed 's/ [0-9]*$//' $T/styles | sort | uniq -d # colour and dashes are enough
sed 's/ [^"]* / /' $T/styles | sort | uniq -d # and so are colour and mark
cd $T

# a sweep of 30 lines over 3 lengths, the last of which has no point; of a map it is one option too many
awk 'BEGIN { print "# command=longhaul sweep\nhp,zero,seq,status,step_s,tokens_per_s_gpu"
    for (hp = 1; hp <= 10; hp++) for (zero = 1; zero <= 3; zero++) for (seq = 1; seq <= 3; seq++) {
        out = hp == 10 && zero == 3
        printf "%d,%d,%dK,%s,%s,%s\n", hp, zero, seq, out ? "does not fit" : "fits", out ? "" : hp * seq, out ? "" : 300 / hp / seq + zero
    } }' > $T/s.csv
bad() { longhaul plot "$@" -o $T/f.svg 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
bad sweep s.csv
bad heatmap s.csv
words() { sed -n 's/.*<text>\([^<]*\)<.*/\1/p' $T/f.svg | tr '\n' ';'; echo; }
draw() { longhaul plot "$@" -o $T/f.svg && words; }
draw sweep s.csv --only zero=1,3 --only hp=9,10 -y step_s
draw heatmap s.csv --only zero=2 -x seq --only hp=1,2
# all 24 names stand in one column beside the lines, which keep their room
longhaul plot sweep s.csv --only hp=1,2,3,4,5,6,7,8 -o $T/f.svg
grep -c '<text>hp=[0-9] zero=[0-9]<' $T/f.svg
grep -o 'viewBox="[^"]*"' $T/f.svg

# long names of an axis stand upright below it, each whole, and the figure makes room; short ones stay level
awk 'BEGIN { print "# command=longhaul sweep\nset,hp,status,tokens_per_s_gpu"
    for (i = 1; i <= 6; i++) for (hp = 1; hp <= 2; hp++)
        printf "\"layers=%d,hidden=4096,ffn=16384,vocab=128256\",%d,fits,%d\n", i, hp, i * hp }' > $T/n.csv
upright() { longhaul plot "$@" -o $T/f.svg; awk '/rotate\(-90/ { on = 1 } on && /<text>/ { n += /layers=/; on = 0 } /<text>layers=/ { all++ }
    END { print n + 0, "of", all + 0, "upright" }' $T/f.svg; grep -o 'viewBox="[^"]*"' $T/f.svg; }
upright sweep n.csv -x set
upright sweep n.csv -x hp
upright heatmap n.csv -x set
upright heatmap n.csv -x hp

# what is shown of the y axis: its ends are those of the ticks
ticks() { longhaul plot "$@" -o $T/f.svg && sed -n 's/.*<text>\( *[0-9.]*\)<.*/\1/p' $T/f.svg | sort -g | uniq | tr -d ' ' | tr '\n' ' '; echo; }
ticks sweep s.csv --only zero=1 --only hp=1,2 -y step_s
ticks sweep s.csv --only zero=1 --only hp=1,2 -y step_s --y-range 2..4
ticks sweep s.csv --only zero=1 --only hp=1,2 -y step_s --y-range ..3
ticks sweep s.csv --only zero=1 --only hp=1,2 -y step_s --y-range 3..
ticks sweep s.csv --only zero=1 --only hp=1,10 -y step_s --y-log
ticks sweep s.csv --only zero=1 --only hp=1,10 -y step_s --y-log --y-range 0.01..100
ticks heatmap s.csv --only zero=1 --only hp=1,10 -y step_s --y-log --y-range 1..50 | tr ' ' '\n' | grep -v K | tail -n 4
# a logarithmic axis reaches to what a GPU has
printf '# command=longhaul sweep\nhp,status,device_needed_bytes,device_available_bytes\n1,fits,2e9,8e10\n2,fits,4e9,8e10\n' > $T/d.csv
ticks sweep d.csv -y device_needed_bytes --y-log
longhaul predict --model gpt2 --cluster ideal --gpus 2 --seq 1K --quick -o $T/p > $T/note
ticks memory p --y-range 0..2
ticks memory p p --y-range 0..2
longhaul validate --source LoongTrain --table 2 --system ulysses -o $T/v.csv > $T/note
ticks error v.csv -y tgs --y-range 100..1000

bad sweep s.csv --only zer=1
bad sweep s.csv --only zero=4
bad sweep s.csv --only zero
bad sweep s.csv --only zero=1 --only hp=
for range in 3 5..3 2..2 .. a..b 1..2s; do bad sweep s.csv --y-range $range; done
bad sweep s.csv --y-log --y-range 0..3
bad error v.csv --y-log
bad error v.csv --y-range=-1..3
bad memory p --y-log
bad waterfall p --y-range 0..3
bad timeline p --only hp=1
bad memory $(for i in $(seq 25); do echo p; done)
