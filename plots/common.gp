# Loaded first by every script: terminal, fonts, colours.
#
# `longhaul plot` sets before: format ("svg" or "png"), output, data (a CSV file, the schema of which
# stands at the top of each script), title, dark (0 or 1), wide and high (of the SVG, in points; a PNG
# has twice the pixels), and, of a figure in a page, themed = 1. Without the program:
#   gnuplot -e "format='png'; output='a.png'; data='a.csv'; title='...'; ..." sweep.gp
#
# The folder plots/ holds the gnuplot scripts, which read only the CSV that the program writes.
if (!exists("format")) format = "svg"
if (!exists("dark")) dark = 0
if (!exists("wide")) wide = 900
if (!exists("high")) high = 480
if (!exists("title")) title = ""

if (!exists("themed")) themed = 0
narrow = wide < 500 # as on a telephone: keys and names of lanes do not stand beside the plot

# A page's style sheet has the colours that differ between light and dark: cli/page/svg.c knows these.
theme(page, on_dark, on_light) = themed ? page : dark ? on_dark : on_light
ink = theme("#010101", "#e6e6e6", "#222222")
paper = theme("#020202", "#16181c", "#ffffff")
faint = theme("#030303", "#3a3f47", "#d9d9d9")
grey = theme("#040404", "#8a8f98", "#6b6b6b")
idle = theme("#050505", "#4a505a", "#d4d4d4")

# Okabe and Ito's colours, which differ for every kind of colour blindness; black turns light on dark.
array colour[8]
colour[1] = "#0072b2"
colour[2] = "#e69f00"
colour[3] = "#009e73"
colour[4] = "#cc79a7"
colour[5] = "#56b4e9"
colour[6] = "#d55e00"
colour[7] = theme("#060606", "#f0e442", "#c8b900")
colour[8] = grey
# Up to 24 series: a colour comes three times, each time with other dashes and another mark.
array mark[24] = [7, 5, 9, 11, 13, 15, 6, 4,  8, 10, 12, 14, 4, 6, 9, 13,  5, 7, 15, 9, 11, 13, 8, 10]

if (format eq "png") {
    set terminal pngcairo size 2*wide, 2*high font "DejaVu Sans,12" fontscale 1.85 linewidth 2 \
        background rgb paper noenhanced
} else {
    set terminal svg size wide, high dynamic font (narrow ? "DejaVu Sans,11" : "DejaVu Sans,12") linewidth 1 \
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

# style(i) of series i: a solid line, a dashed one, or one of dashes and dots. Wide lines come first, so
# that equal ones are seen inside each other.
if (exists("series")) {
    wide_to_thin(i) = series < 2 ? 2 : 3.4 - 2.1 * (i - 1) / series
    do for [i=1:24] {
        if (i <= 8) {
            set style line i dashtype solid linecolor rgb colour[1 + (i - 1) % 8] linewidth wide_to_thin(i) \
                pointtype mark[i] pointsize 1.1 * size_of_marks
        }
        if (i > 8 && i <= 16) {
            set style line i dashtype (9, 4) linecolor rgb colour[1 + (i - 1) % 8] linewidth wide_to_thin(i) \
                pointtype mark[i] pointsize 1.1 * size_of_marks
        }
        if (i > 16) {
            set style line i dashtype (8, 4, 2, 4) linecolor rgb colour[1 + (i - 1) % 8] linewidth wide_to_thin(i) \
                pointtype mark[i] pointsize 1.1 * size_of_marks
        }
    }
    name(i) = value(sprintf("name%d", i))
}

# Keys of a figure: `set key @key_below`, `set key @key_beside`.
key_below = narrow ? "bmargin left horizontal reverse Left samplen 1 width 0 maxcols 2" : \
    "outside bottom center horizontal reverse Left samplen 1 width 1 maxrows 2"
key_beside = narrow ? "bmargin left vertical maxcols 1 reverse Left" : \
    "outside right top vertical maxcols 1 reverse Left"
label_font = narrow ? ",11" : ",12"
# Names in lists have '_' for a blank.
with_blanks(s) = strstrt(s, "_") ? s[1:strstrt(s, "_") - 1]." ".with_blanks(s[strstrt(s, "_") + 1:*]) : s
