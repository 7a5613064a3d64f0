# Model flops utilisation over the length of a sequence.
# data: series (1..), tokens, fraction
# series: how many; names in name1, ...; ticks set by the caller; convention: what the label says
load folder."/common.gp"
set logscale x 2
set xlabel "tokens of a sequence (K = 1024)" textcolor rgb ink
set ylabel convention." (% of dense peak)" textcolor rgb ink
set yrange [0:*]
set offsets graph 0.04, graph 0.04, graph 0.06, 0
set key outside right top vertical reverse Left samplen 2
name(i) = value(sprintf("name%d", i))
c(i) = colour[1 + (i - 1) % 8]
m(i) = mark[1 + (i - 1) % 8]
wide_to_thin(i) = series == 1 ? 2 : 4.0 - 2.7 * (i - 1) / series # equal lines are seen inside each other
dash(i) = 1 + (i - 1) / 8
plot for [i=1:series] data using ($1 == i ? $2 : NaN):(100 * $3) with linespoints linecolor rgb c(i) \
    linewidth wide_to_thin(i) dashtype dash(i) pointtype m(i) pointsize 0.9 * size_of_marks title name(i)
