# What a memory holds over time, by category, with what the process reserves and what there is.
# data: time (in `unit`), then one column a category: GiB of it and of all before it
# categories: names, separated by blanks, '_' for a blank; limit (GiB; 0: none), limit_name; needed (GiB that the
# verdict counts; 0: not known), needed_name; top: of the figure; from, to: the window
load folder."/common.gp"
set xrange [from:to]
set yrange [0:top]
load folder."/y_axis.gp"
set xlabel "time in the step (".unit.")" textcolor rgb ink
set ylabel memory_name." (GiB = 2³⁰ bytes)" textcolor rgb ink
set key @key_beside samplen 1
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
if (needed > 0) {
    set arrow from graph 0, first needed to graph 1, first needed nohead front linecolor rgb ink linewidth 1
    set label needed_name at graph 0.99, first needed offset 0, 0.6 right front textcolor rgb ink
}
# The sums are drawn over one another, the largest first.
memory_colour(c) = c <= 8 ? colour[c] : "#7a4a1e"
plot for [i=1:needed > 0] '+' using 1:(needed) with filledcurves y1=0 linecolor rgb idle title "reserved, not live", \
    for [c=n:1:-1] data using 1:(column(c + 1)) with filledcurves y1=0 linecolor rgb memory_colour(c) \
        title with_blanks(word(categories, c)), \
    data using 1:(column(n + 1)) with lines linecolor rgb ink linewidth 0.6 notitle # a peak too narrow to be filled
