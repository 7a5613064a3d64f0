# Core plans are verified by rule `coverage`, and weighed; documents of 8, 4 and 4 tokens on 2 ranks have 56 pairs.
plan() { printf 'core plan 1 ranks=2 %s\nsequence,what,begin,rows,key,keys,rank,round\n' "$2" > $T/$1; cat >> $T/$1; }
plan moved route=direct <<END
0,document,0,8,,,,
0,document,8,4,,,,
0,document,12,4,,,,
0,own,0,8,,,0,          # contiguous: 36 and 20 pairs
0,own,8,8,,,1,
0,tile,0,7,0,8,0,0
0,tile,7,1,0,8,1,1      # query 7 and its keys travel to rank 1
0,tile,8,8,8,8,1,0

1,own,0,2,,,0,
1,own,2,4,,,1,
1,own,6,2,,,0,
END
longhaul check $T/moved
longhaul check $T/moved --json
sed 's/tile,7,1,0,8,1,1/tile,7,1,1,8,1,1/; s/^1,own,2,4/1,own,3,3/' $T/moved > $T/wrong
longhaul check $T/wrong 2> $T/err || echo "exit $?"
longhaul check $T/wrong --json 2>> $T/err || echo "exit $?"
longhaul check $T/wrong --quiet 2>> $T/err || echo "exit $?"
sed 's/own,8,8,,,1/own,8,8,,,2/' $T/moved > $T/unread
longhaul check $T/unread 2>> $T/err || echo "exit $?"
longhaul check $T/moved --model llama3-8b 2>> $T/err || echo "exit $?"
# of a plan whose numbers have a gap few sequences are said to have no tokens
printf 'core plan 1 ranks=2\nsequence,what,begin,rows,key,keys,rank,round\n1048575,own,0,8,,,0,\n' > $T/gap
longhaul check $T/gap 2>&1 | grep -c 'it has no tokens'
sed "s#$T/##" $T/err
