# One figure of a sweep over two of its axes.
# data: column, row (from 0), value (empty: none), text of the cell
# columns, rows: how many; x_label, y_label, value_label; ticks set by the caller; low, high_value: of the colours
load folder."/common.gp"
set xrange [-0.5:columns - 0.5]
set yrange [-0.5:rows - 0.5]
unset grid
set border 0
set tics scale 0
set xlabel x_label textcolor rgb ink
set ylabel y_label textcolor rgb ink
set cblabel value_label textcolor rgb ink offset 1, 0
set cbtics textcolor rgb ink
set format cb "%.8g"
# viridis
set palette defined (0 "#440154", 1 "#46327e", 2 "#365c8d", 3 "#277f8e", 4 "#1fa187", 5 "#4ac16d", \
    6 "#a0da39", 7 "#fde725")
set cbrange [low:high_value]
if (exists("y_log") && y_log) {
    set logscale cb
    set for [d=-6:12] cbtics add (sprintf("%g", 2 * 10.**d) 2 * 10.**d, sprintf("%g", 5 * 10.**d) 5 * 10.**d)
}
set style fill solid 1 border rgb paper
unset key
middle = exists("y_log") && y_log ? low * (high_value / low) ** 0.62 : low + 0.62 * (high_value - low)
plot data using 1:2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5):(valid(3) ? 0 : 0) with boxxyerror \
        linecolor rgb faint, \
    data using (valid(3) ? $1 : NaN):2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5):3 with boxxyerror \
        linecolor palette, \
    data using (valid(3) && $3 < middle ? $1 : NaN):2:4 with labels textcolor rgb "#ffffff", \
    data using (valid(3) && $3 >= middle ? $1 : NaN):2:4 with labels textcolor rgb "#101010", \
    data using (valid(3) ? NaN : $1):2:4 with labels textcolor rgb ink
