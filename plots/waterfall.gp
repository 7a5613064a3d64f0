# Where a step went: one bar a cause, each from the end of the one above it.
# data: row (0 at the top), start, end (in `unit`), class (1..8), cause, "16.8 s, 25 %"
# rows: how many; step: the end of the last
load folder."/common.gp"
set xrange [0:step * (narrow ? 1.001 : 1.22)]
set yrange [rows - 0.4:-0.6 - 0.3 * narrow]
unset grid
set grid x linecolor rgb faint linewidth 0.5 linetype 1
set border 1
set ytics scale 0
if (narrow) unset ytics
set xlabel "time of rank 0 (".unit.")".(narrow ? "" : "; the bars add up to the step") textcolor rgb ink
set style fill solid 1 noborder
unset key
half = narrow ? 0.2 : 0.38
if (narrow) {
    plot for [c=1:8] data using ($4 == c ? ($2 + $3) / 2 : NaN):1:2:3:($1 - half + 0.2):($1 + half + 0.2) \
            with boxxyerror linecolor rgb colour[c], \
        data using (0):($1 - 0.3):5 with labels left textcolor rgb ink, \
        data using (step):($1 - 0.3):6 with labels right textcolor rgb ink
} else {
    plot for [c=1:8] data using ($4 == c ? ($2 + $3) / 2 : NaN):1:2:3:($1 - half):($1 + half):ytic(5) \
            with boxxyerror linecolor rgb colour[c], \
        data using 3:1:6 with labels left offset 0.6, 0 textcolor rgb ink
}
