# A prediction is written down before it is measured, and compared when it is; nothing is predicted anew.
predict="longhaul predict --model gpt-2.7b --cluster ideal --gpus 4 --seq 2K --checkpoint none --quick"
$predict --record $T/records > $T/out
$predict --zero 1 --json --record $T/records > $T/json
grep -c . $T/records
# one line each: version, commit, command and result; measured values stand open
sed -n 1p $T/records | sed 's/"made": *"[0-9TZ:-]*"/"made": "NOW"/; s/"commit": *"[^"]*"/"commit": "COMMIT"/'
longhaul validate --records $T/records | sed 's/made [0-9TZ:-]* /made NOW /; s/commit .*/commit COMMIT/'
# measured values are filled in; an interval that the line holds is looked at
sed '1 s/"measured": *{"step_s": *null/"measured": {"step_s": 0.021/' $T/records > $T/measured
cat >> $T/measured <<END

{"made": "2026-01-01T00:00:00Z", "version": "0.1.0", "commit": "abc", "command": "longhaul predict --by hand",
END
sed -i '$d' $T/measured
for step in 11 30; do
    echo '{"made": "2026-01-01T00:00:00Z", "version": "0.1.0", "commit": "abc", "command": "longhaul predict --by hand", "predicted": {"step_s": 10, "step_low_s": 8, "step_high_s": 12, "reserved_gib": 50}, "measured": {"step_s": '$step', "reserved_gib": 55}}'
done >> $T/measured
longhaul validate --records $T/measured | sed 's/made 20[3-9][0-9TZ:-]* /made NOW /; s/made 202[5-9]-[0-9TZ:-]* /made NOW /; s/commit [0-9a-f].*/commit COMMIT/'
# a last line without an end (an editor left it so) keeps its record apart from the next
printf %s "$(cat $T/records)" > $T/open
$predict --record $T/open > $T/out
grep -c . $T/open
longhaul validate --records $T/open | tail -n 1
# what cannot be meant
sed '1 s/"step_s": *[0-9.e-]*/"step_s": "fast"/' $T/records > $T/wrong
longhaul validate --records $T/wrong || echo "exit $?"
echo 'no JSON' >> $T/records
longhaul validate --records $T/records || echo "exit $?"
: > $T/empty
longhaul validate --records $T/empty || echo "exit $?"
longhaul validate --records $T/records --json || echo "exit $?"
$predict --scope layer --record $T/part || echo "exit $?"
$predict --record $T/no/folder || echo "exit $?"
test ! -e $T/part
