# What the stages of a pipeline do: a row a stage, a box a unit, grey where the stage is idle.
# data: row (0 at the bottom), class (1..), start, end (in `unit`), the unit's number or nothing (it is drawn where it
# fits)
# stages: how many; rows have the names stage0 (at the bottom), ...; classes: names of the classes that occur, in
# order, separated by blanks, '_' for a blank; class_numbers: their numbers in the data; from, to: the window
load folder."/common.gp"
set xrange [from:to]
set yrange [-0.6:stages - 0.4]
unset grid
set border 1
stage(i) = (narrow ? "" : "stage ").(stages - i)
set ytics (stage(1) 0) scale 0
set for [i=2:stages] ytics add (stage(i) i - 1)
if (narrow) set ylabel "stage" textcolor rgb ink
set xlabel "time in the step (".unit.")" textcolor rgb ink offset 0, 0.4
set bmargin 6
set key @key_below
set style fill solid 1 noborder
array box[8]
box[1] = "#0072b2"
box[2] = "#7fc1e8"
box[3] = "#e69f00"
box[4] = "#f6d28a"
box[5] = "#009e73"
box[6] = "#7fd0b8"
box[7] = "#cc79a7"
box[8] = "#8a8f98"
array words_on[8] = ["#ffffff", "#101010", "#101010", "#101010", "#ffffff", "#101010", "#101010", "#101010"]
shown(c) = int(word(class_numbers, c))
# A digit takes 6.4 points of the plot (7 where it is narrow), and the box's edges 2.
fits(a, b, digits) = digits > 0 && (b - a) / (to - from) * (wide - 110 + 60 * narrow) > (narrow ? 7 : 6.4) * digits + 2
class_name(c) = with_blanks(word(classes, c))
plot for [i=0:stages - 1] '+' using (from):(i):(from):(to):(i - 0.42):(i + 0.42) every ::0::0 with boxxyerror \
        linecolor rgb idle notitle, \
    for [c=1:words(classes)] data using ($2 == shown(c) ? ($3 + $4) / 2 : NaN):1:3:4:($1 - 0.42):($1 + 0.42) \
        with boxxyerror linecolor rgb box[shown(c)] linewidth 0.4 fillstyle solid 1 border rgb paper notitle, \
    for [c=1:words(classes)] data using ($2 == shown(c) && fits($3, $4, strlen(strcol(5))) ? ($3 + $4) / 2 : NaN):1:5 with labels \
        font (narrow ? ",10" : ",9.5") textcolor rgb words_on[shown(c)] notitle, \
    for [c=1:words(classes)] keyentry with boxes fillstyle solid 1 linecolor rgb box[shown(c)] title class_name(c), \
    keyentry with boxes fillstyle solid 1 linecolor rgb idle title "idle"
