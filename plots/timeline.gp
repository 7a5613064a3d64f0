# What every stream of a rank does over time.
# data: lane (0 at the bottom), class (1..8), start, end (in `unit`); boxes of a lane do not overlap
# lanes: names of the lanes, separated by blanks; classes: of the classes; from, to: the window
load folder."/common.gp"
set xrange [from:to]
set yrange [-0.6:words(lanes) - 0.4]
unset grid
set grid x linecolor rgb faint linewidth 0.5 linetype 1
set border 1
set ytics (word(lanes, 1) 0) scale 0
set for [i=2:words(lanes)] ytics add (word(lanes, i) i - 1)
set xlabel "time in the step (".unit.")" textcolor rgb ink
set key @key_below
set bmargin 7
set style fill solid 1 noborder
class_name(c) = with_blanks(word(classes, c))
plot for [c=1:words(classes)] data using ($2 == c ? ($3 + $4) / 2 : NaN):1:3:4:($1 - 0.4):($1 + 0.4) \
        with boxxyerror linecolor rgb colour[c] notitle, \
    for [c=1:words(classes)] keyentry with boxes fillstyle solid 1 linecolor rgb colour[c] title class_name(c)
