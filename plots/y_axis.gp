# Loaded once the range of the y axis is set: what the reader asked for of it.
# y_low, y_high: its ends, where they exist; y_log: 1 for a logarithmic scale
if (exists("y_log") && y_log) {
    set yrange [*:*]
    set logscale y
}
if (exists("y_low")) set yrange [y_low:]
if (exists("y_high")) set yrange [:y_high]
