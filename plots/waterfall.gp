# Where a step went: one bar a cause, each from the end of the one above it.
# data: row (0 at the top), start, end (in `unit`), class (1..8), cause, "16.8 s, 25 %"
# rows: how many; step: the end of the last
load folder."/common.gp"
set xrange [0:step * 1.22]
set yrange [rows - 0.4:-0.6]
unset grid
set grid x linecolor rgb faint linewidth 0.5 linetype 1
set border 1
set ytics scale 0
set xlabel "time of rank 0 (".unit."); the bars add up to the step" textcolor rgb ink
set style fill solid 1 noborder
unset key
plot for [c=1:8] data using ($4 == c ? ($2 + $3) / 2 : NaN):1:2:3:($1 - 0.38):($1 + 0.38):ytic(5) \
        with boxxyerror linecolor rgb colour[c], \
    data using 3:1:6 with labels left offset 0.6, 0 textcolor rgb ink
