# One figure of a sweep over one of its axes, a line for each combination of the others.
# data: series (1..), x, y, fits (1 or 0: drawn as a cross at the foot)
# series: how many; names in name1, name2, ...; x_label, y_label; x_log: base or 0; limit
# (of y; 0: none), limit_name; unfit: what crosses are
# ("": there are none); nothing: what is said where no point is drawn; ticks set by the caller
load folder."/common.gp"
if (x_log > 0) set logscale x x_log
set xlabel x_label textcolor rgb ink
set ylabel y_label textcolor rgb ink
set format y "%.8g"
set yrange [0:*]
set offsets graph 0.04, graph 0.04, graph 0.06, 0
set key outside right top vertical reverse Left samplen 2
if (series == 1 && strlen(unfit) == 0) {
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
name(i) = value(sprintf("name%d", i))
c(i) = colour[1 + (i - 1) % 8]
m(i) = mark[1 + (i - 1) % 8]
wide_to_thin(i) = series == 1 ? 2 : 4.0 - 2.7 * (i - 1) / series # equal lines are seen inside each other
dash(i) = 1 + (i - 1) / 8
plot for [i=1:series] data using ($1 == i && $4 == 1 ? $2 : NaN):3 with lines \
        linecolor rgb c(i) linewidth wide_to_thin(i) dashtype dash(i) notitle, \
    for [i=1:series] data using ($1 == i && $4 == 1 ? $2 : NaN):3 with points \
        linecolor rgb c(i) pointtype m(i) pointsize 0.9 * size_of_marks notitle, \
    for [i=1:series] keyentry with linespoints linecolor rgb c(i) linewidth wide_to_thin(i) dashtype dash(i) \
        pointtype m(i) pointsize 0.9 * size_of_marks title name(i), \
    data using ($4 == 0 ? $2 : NaN):(0) with points linecolor rgb grey pointtype 2 pointsize 1.4 * size_of_marks \
        linewidth 2 title unfit
