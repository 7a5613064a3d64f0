# A figure or table of a paper: predictions (lines) and, where they were published, the paper's values (rings).
# data: panel (1..), series (1..), x (1.., a place on the axis), published, predicted, published does not fit (0 or 1),
#       predicted does not fit; empty: no value
# panels: how many; of each, panel1 (its name), x_ticks1 (what is at its places), x_turned1 (whether these lie aslant),
# places1 (how many), lined1 (whether lines join its points), ...; series: how many; names in name1, ...; x_name, y_name; y_log; y_scale: of values;
# has_published, has_unfit: 0 or 1; key_wide: points for the key beside the panels; key_high: for the key of a narrow
# figure, which is below them. A narrow figure has one column, and no title: the page's heading is one.
load folder."/common.gp"
panel(i) = value(sprintf("panel%d", i))
columns = panels <= 1 || narrow ? 1 : panels <= 4 ? 2 : 3
rows = int(ceil(panels / (1.0 * columns)))
key_share = narrow ? 0 : key_wide / (1.0 * wide)
foot = narrow ? key_high / (1.0 * high) : 0
head = (narrow ? 6.0 : 34.0) / high
set multiplot
set label 1 (narrow ? "" : title) at screen 0.5, screen 1 - 0.45 * head center font ",14" textcolor rgb ink noenhanced
set title ""
set y2range [0:1]
unset y2tics
unset key
if (y_log) {
    set logscale y
    if (y_name eq "tokens") {
        set logscale y 2
        set ytics ("32K" 32768, "64K" 65536, "128K" 131072, "256K" 262144, "512K" 524288, "1M" 1048576, \
            "2M" 2097152, "4M" 4194304, "8M" 8388608)
    }
} else {
    set yrange [0:*]
    set offsets 0, 0, graph 0.08, 0
}
pick(p, i, y) = $1 == p && $2 == i ? y : NaN
do for [p=1:panels] {
    column_ = (p - 1) % columns
    row_ = (p - 1) / columns
    set size (1 - key_share) / columns, (1 - head - foot) / rows
    set origin column_ * (1 - key_share) / columns, foot + (1 - head - foot) * (1 - (row_ + 1.0) / rows)
    if (p > 1) { unset label 1 }
    eval "set xtics ".(value(sprintf("x_turned%d", p)) ? "rotate by -30 " : "norotate ").value(sprintf("x_ticks%d", p))
    set xrange [0.5:value(sprintf("places%d", p)) + 0.5]
    set title (panels > 1 || strlen(panel(p)) > 0 ? panel(p) : "") textcolor rgb ink font ",12" noenhanced
    set xlabel (row_ == rows - 1 || p + columns > panels ? x_name : "") textcolor rgb ink
    set ylabel (column_ == 0 ? y_name : "") textcolor rgb ink
    lined = value(sprintf("lined%d", p))
    plot for [i=1:(lined ? series : 0)] data using ($1 == p && $2 == i ? $3 : NaN):(y_scale * $5) \
             with lines linestyle i notitle, \
         for [i=1:series] data using ($1 == p && $2 == i ? $3 : NaN):(y_scale * $5) \
             with points linestyle i notitle, \
         for [i=1:series] data using ($1 == p && $2 == i ? $3 : NaN):(y_scale * $4) \
             with points pointtype 6 pointsize 2.2 * size_of_marks linewidth 1.6 \
             linecolor rgb colour[1 + (i - 1) % 8] notitle, \
         for [i=1:series] data using ($1 == p && $2 == i && $7 == 1 ? $3 + 0.05 * (i - (series + 1) / 2.0) : NaN):(0.03) \
             axes x1y2 with points pointtype 2 pointsize 1.1 * size_of_marks linewidth 1.6 \
             linecolor rgb colour[1 + (i - 1) % 8] notitle, \
         for [i=1:series] data using ($1 == p && $2 == i && $6 == 1 ? $3 + 0.05 * (i - (series + 1) / 2.0) : NaN):(0.03) \
             axes x1y2 with points pointtype 6 pointsize 2.2 * size_of_marks linewidth 1.2 \
             linecolor rgb colour[1 + (i - 1) % 8] notitle
}
# the key
unset label 1
unset border
unset xtics
unset ytics
unset grid
unset xlabel
unset ylabel
unset logscale
set title ""
set size narrow ? 1 : key_share, narrow ? foot : 1 - head
set origin narrow ? 0 : 1 - key_share, 0
set xrange [0:1]
set yrange [0:1]
set offsets 0, 0, 0, 0
set key at graph 0, graph 1 left top vertical maxcols 1 reverse Left samplen 2 textcolor rgb ink noenhanced
plot 2 with lines notitle, for [i=1:series] keyentry with linespoints linestyle i title (strlen(name(i)) > 0 ? name(i) : "predicted"), \
    for [i=1:has_published] keyentry with points pointtype 6 pointsize 2.2 * size_of_marks linewidth 1.6 \
        linecolor rgb grey title "published", \
    for [i=1:has_unfit] keyentry with points pointtype 2 linewidth 1.6 linecolor rgb grey title "does not fit"
unset multiplot
