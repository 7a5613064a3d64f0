# what cannot be drawn, or not there
bad() { longhaul plot "$@" 2>&1 && echo "taken: $*" || echo "  exit $?: $*"; }
longhaul sweep --model gpt2 --cluster ideal --gpus 4 --vary seq=1K,2K --vary hp=1,2 -o $T/s.csv > $T/note
# a head and no rows
sed '/^[0-9]/d' $T/s.csv > $T/none.csv
for figure in sweep heatmap mfu; do bad $figure $T/none.csv -o $T/f.svg; done
# a name that is no figure's: no folder comes of it
for name in e.jpg e.SVG e.pdf v1.2; do bad sweep $T/s.csv -o $T/$name; done
touch $T/file
bad sweep $T/s.csv -o $T/file
bad sweep $T/s.csv -o $T/a/b
# folders: with a dot where they exist, hidden, of a path with dots
mkdir $T/v1.2
for name in v1.2 v1.2/figure .hidden v1.2/../plain e.d/; do bad sweep $T/s.csv -o $T/$name; done
cd $T && ls -d */ .hidden v1.2/*
