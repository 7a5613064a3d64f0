# One figure of a sweep over one of its axes, a line for each combination of the others.
# data: series (1..), x, y, fits (1 or 0: drawn as a cross at the foot)
# series: how many; names in name1, name2, ...; x_label, y_label; x_log: base or 0; limit
# (of y; 0: none), limit_name; foot: y of the crosses; unfit: what they are
# ("": there are none); empty: what is said of lines without points; nothing: what is said where no point is drawn; ticks set by the caller
load folder."/common.gp"
if (x_log > 0) set logscale x x_log
set xlabel x_label textcolor rgb ink
set ylabel y_label textcolor rgb ink
set format y "%.8g"
set yrange [0:*]
set offsets graph 0.04, graph 0.04, graph 0.06, 0
load folder."/y_axis.gp"
set key @key_beside samplen 5
if (series == 1 && strlen(unfit) == 0 && strlen(empty) == 0) {
    unset key # one line is what the title says
}
if (limit > 0) {
    set arrow from graph 0, first limit to graph 1, first limit nohead front linecolor rgb ink \
        linewidth 1.5 dashtype 2
    set label limit_name at graph 0.01, first limit offset 0, 0.6 left front textcolor rgb ink
}
if (exists("nothing") && strlen(nothing) > 0) {
    set yrange [0:1]
    unset ytics
    set label nothing at graph 0.5, graph 0.5 center front textcolor rgb ink font ",14"
}
plot for [i=1:series] data using ($1 == i && $4 == 1 ? $2 : NaN):3 with lines linestyle i notitle, \
    for [i=1:series] data using ($1 == i && $4 == 1 ? $2 : NaN):3 with points linestyle i linewidth 1 notitle, \
    for [i=1:series] keyentry with linespoints linestyle i title name(i), \
    for [i=1:strlen(empty) > 0] keyentry with dots linecolor rgb paper title empty, \
    data using ($4 == 0 ? $2 : NaN):(foot) with points linecolor rgb grey pointtype 2 pointsize 1.4 * size_of_marks \
        linewidth 2 title unfit
