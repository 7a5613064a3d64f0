# Loaded first by every script: terminal, fonts, colours.
#
# `longhaul plot` sets before: format ("svg" or "png"), output, data (a CSV file, the schema of which
# stands at the top of each script), title, dark (0 or 1), wide and high (of the SVG, in points; a PNG
# has twice the pixels). Without the program:
#   gnuplot -e "format='png'; output='a.png'; data='a.csv'; title='...'; ..." sweep.gp
if (!exists("format")) format = "svg"
if (!exists("dark")) dark = 0
if (!exists("wide")) wide = 900
if (!exists("high")) high = 480
if (!exists("title")) title = ""

ink = dark ? "#e6e6e6" : "#222222"
paper = dark ? "#16181c" : "#ffffff"
faint = dark ? "#3a3f47" : "#d9d9d9"
grey = dark ? "#8a8f98" : "#6b6b6b"

# Okabe and Ito's colours, which differ for every kind of colour blindness; black turns light on dark.
array colour[8]
colour[1] = "#0072b2"
colour[2] = "#e69f00"
colour[3] = "#009e73"
colour[4] = "#cc79a7"
colour[5] = "#56b4e9"
colour[6] = "#d55e00"
colour[7] = dark ? "#f0e442" : "#c8b900"
colour[8] = grey
array mark[8] = [7, 5, 9, 11, 13, 15, 6, 4] # of lines, beside colour

if (format eq "png") {
    set terminal pngcairo size 2*wide, 2*high font "DejaVu Sans,12" fontscale 1.85 linewidth 2 \
        background rgb paper noenhanced
} else {
    set terminal svg size wide, high dynamic font "DejaVu Sans,12" linewidth 1 \
        background rgb paper noenhanced
}
size_of_marks = format eq "png" ? 1 : 0.6 # terminals differ
set output output
set datafile separator comma
set encoding utf8
set border 3 linecolor rgb ink
set tics nomirror textcolor rgb ink
set grid linecolor rgb faint linewidth 0.5 linetype 1
set title title textcolor rgb ink font ",14" noenhanced
set key textcolor rgb ink noenhanced
set label textcolor rgb ink
