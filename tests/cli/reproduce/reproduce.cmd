# Figures and tables by name: two quick ones, one of packed documents, one with a model file that ships, a drawing, one that cannot be simulated; the
# nightly test has all.
longhaul reproduce fpdt:table4 loongtrain:table5 wlb:fig15 sppo:fig3 fpdt:fig14 simumax:deepseek-v3 -o $T/out
ls $T/out | grep -v trace
head -3 $T/out/fpdt-table4.csv
cat $T/out/states.csv
# as shipped
grep -vxFf $S/traces/published/reproduced.csv $T/out/states.csv || echo "states as shipped"
for picture in $T/out/*.svg; do grep -q '</svg>' $picture || echo "$picture is cut off"; done
grep -q '</html>' $T/out/index.html && echo "a page"
# whose figures have room on a telephone for series with long names, too
longhaul reproduce fpdt:fig10 -o $T/long > $T/text && echo "a page of long names"
# a degree that a row of measurements has in no column is that of its options: series have names, and claims their points
longhaul reproduce loongtrain:fig13 -o $T/degrees | grep -o 'Claim.*: holds\( by less\)*'
# what was predicted is used again, by other figures too; a line that was cut off is predicted anew
longhaul reproduce torchtitan:fig7 -o $T/out > $T/again
sort $T/out/answers > $T/before
longhaul reproduce torchtitan:table1 -o $T/out | cmp - $T/again
head -c -9 $T/out/answers > $T/cut && cat $T/cut > $T/out/answers
longhaul reproduce torchtitan:table1 -o $T/out | cmp - $T/again
sort $T/out/answers | cmp - $T/before && echo "the answers are whole again"
