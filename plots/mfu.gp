# Model flops utilisation over the length of a sequence.
# data: series (1..), tokens, fraction
# series: how many; names in name1, ...; empty: what is said of lines without points; ticks set by the caller; convention: what the label says
load folder."/common.gp"
set logscale x 2
set xlabel "tokens of a sequence (K = 1024)" textcolor rgb ink
set ylabel convention." (% of dense peak)" textcolor rgb ink
set yrange [0:*]
set offsets graph 0.04, graph 0.04, graph 0.06, 0
load folder."/y_axis.gp"
set key @key_beside samplen 5
plot for [i=1:series] data using ($1 == i ? $2 : NaN):(100 * $3) with linespoints linestyle i title name(i), \
    for [i=1:strlen(empty) > 0] keyentry with dots linecolor rgb paper title empty
