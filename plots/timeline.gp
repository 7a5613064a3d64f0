# What every stream of a rank does over time.
# data: lane (0 at the bottom), class (1..8), start, end (in `unit`), the part of the lane's height that it takes: low, high
# lanes: names of the lanes, from the bottom; classes: names of the classes that occur; class_numbers: their numbers in
# the data; lists are separated by blanks, with '_' for a blank in a name; from, to: the window
load folder."/common.gp"
set xrange [from:to]
unset grid
set grid x linecolor rgb faint linewidth 0.5 linetype 1
set border 1
set yrange [-0.6:words(lanes) - (narrow ? 0.1 : 0.4)]
if (narrow) {
    unset ytics
    set for [i=1:words(lanes)] label 100 + i with_blanks(word(lanes, i)) at graph 0, first i - 0.62 left font label_font textcolor rgb ink
} else {
    set ytics (with_blanks(word(lanes, 1)) 0) scale 0
    set for [i=2:words(lanes)] ytics add (with_blanks(word(lanes, i)) i - 1)
}
half = narrow ? 0.22 : 0.4
set xlabel "time in the step (".unit.")" textcolor rgb ink
set key @key_below
if (!narrow) set bmargin 6
set style fill solid 1 noborder
shown(c) = int(word(class_numbers, c))
plot for [c=1:words(classes)] data using ($2 == shown(c) ? ($3 + $4) / 2 : NaN):1:3:4:($1 - half + 2 * half * $5):($1 - half + 2 * half * $6) \
        with boxxyerror linecolor rgb colour[shown(c)] notitle, \
    for [c=1:words(classes)] keyentry with boxes fillstyle solid 1 linecolor rgb colour[shown(c)] title with_blanks(word(classes, c))
