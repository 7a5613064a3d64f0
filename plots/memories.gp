# What a memory holds over time in several traces, each from the start of its own window.
# data: a block a trace, two empty lines between them: time (in `unit`), GiB
# series: how many; names in name1, name2, ...; limit (GiB; 0: none), limit_name; top: of the figure;
# origin: what time 0 is; from, to: the axis
load folder."/common.gp"
set xrange [from:to]
set yrange [0:top]
load folder."/y_axis.gp"
set xlabel origin." (".unit.")" textcolor rgb ink
set ylabel memory_name." (GiB = 2³⁰ bytes)" textcolor rgb ink
set key @key_beside samplen 5 title "peak" textcolor rgb ink
if (limit > top) {
    set label limit_name.", above the figure" at graph 0.99, graph 0.97 right front textcolor rgb colour[6]
}
if (limit > 0 && limit <= top) {
    set arrow from graph 0, first limit to graph 1, first limit nohead front \
        linecolor rgb ink linewidth 2 dashtype 2
    set label limit_name at graph 0.01, first limit offset 0, 0.6 front textcolor rgb ink
}
plot for [i=1:series] data index i - 1 using 1:2 with lines linestyle i linewidth 1.4 title name(i)
