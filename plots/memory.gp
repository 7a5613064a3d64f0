# What a memory holds over time, by category, with its limit.
# data: time (in `unit`), then one column a category: GiB of it and of all before it
# categories: names, separated by blanks; limit (GiB; 0: none), limit_name; top: of the figure; from, to: the window
load folder."/common.gp"
set xrange [from:to]
set yrange [0:top]
load folder."/y_axis.gp"
set xlabel "time in the step (".unit.")" textcolor rgb ink
set ylabel memory_name." (GiB = 2³⁰ bytes)" textcolor rgb ink
set key outside right top vertical reverse Left samplen 1 invert
set style fill solid 1 noborder
n = words(categories)
if (limit > top) {
    set label limit_name.", above the figure" at graph 0.99, graph 0.97 right front textcolor rgb colour[6]
}
if (limit > 0 && limit <= top) {
    set arrow from graph 0, first limit to graph 1, first limit nohead front \
        linecolor rgb colour[6] linewidth 2 dashtype 2
    set label limit_name at graph 0.01, first limit offset 0, 0.6 front textcolor rgb colour[6]
}
plot for [c=1:n] data using 1:(c == 1 ? 0 : column(c)):(column(c + 1)) with filledcurves \
    fillstyle solid 1.0 / (1 + (c - 1) / 8) noborder linecolor rgb colour[1 + (c - 1) % 8] title word(categories, c), \
    data using 1:(column(n + 1)) with lines linecolor rgb ink linewidth 0.6 notitle # a peak too narrow to be filled
