# Predictions beside measurements of one metric: on the diagonal they agree.
# data: series (1..), measured, predicted
# series: how many; names in name1, ...; metric with its unit; low, high_value: of both axes
load folder."/common.gp"
set logscale xy
set xrange [low:high_value]
set yrange [low:high_value]
set size ratio -1
set for [d=-6:12] xtics add (sprintf("%g", 2 * 10.**d) 2 * 10.**d, sprintf("%g", 5 * 10.**d) 5 * 10.**d)
set for [d=-6:12] ytics add (sprintf("%g", 2 * 10.**d) 2 * 10.**d, sprintf("%g", 5 * 10.**d) 5 * 10.**d)
set xlabel "measured ".metric textcolor rgb ink
set ylabel "predicted ".metric textcolor rgb ink
set key @key_beside samplen 1
set samples 3
set style fill transparent solid 0.7 noborder
plot [low:high_value] '+' using 1:($1 / 1.1):($1 * 1.1) with filledcurves linecolor rgb faint \
        title "within 10 %", \
    x with lines linecolor rgb grey linewidth 1 title "equal", \
    for [i=1:series] data using ($1 == i ? $2 : NaN):3 with points linestyle i \
        linewidth 1.5 pointsize 1.3 * size_of_marks title name(i)
