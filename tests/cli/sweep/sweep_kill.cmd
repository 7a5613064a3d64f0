# however a sweep ends, what it wrote is kept, and the same command continues to the same file
sweep="longhaul sweep --model internlm-7b-mha --cluster loongtrain-a100 --gpus 16 --strategy 2d"
sweep="$sweep --seq 64K --cp 2 --exact --vary loss-chunks=1..4 --vary ffn-chunks=1,2,3"
$sweep -o $T/whole.csv > $T/out
grep -v '^#' $T/whole.csv > $T/whole

rows() { grep -c '^[0-9]* [0-9]* - ' "$1" 2> $T/note || true; }
# starts the sweep of $1 and stops it when it has written two rows; again where it was over by then
begin() {
    while true; do
        $sweep -o $1 --jobs 1 > $T/out 2> $T/err &
        pid=$!
        until test -e $1 || test "0$(rows $1.part)" -ge 2; do sleep 0.01; done
        kill -STOP $pid && stopped $pid && test -e $1.part && return
        wait $pid
        rm $1
    done
}
stopped() { # PROCESS: waits until it is, false where it has ended
    until grep -q '^State:.T' /proc/$1/status 2> $T/note; do
        grep -q '^State:.[^ZX]' /proc/$1/status 2> $T/note || return 1
    done
}
end() { # lets it go on and waits for it; $code says how it ended
    kill -CONT $pid 2> $T/note || true
    code=0
    wait $pid 2> $T/note || code=$?
}
# the sweep goes on; all that was kept is used
goes_on() {
    kept=${3-$(rows $1.part)}
    $sweep -o $1 > $T/out
    grep -q "12 fit ($kept from an earlier run)" $T/out || cat $T/out
    grep -v '^#' $1 | cmp - $T/whole && echo "$2: nothing lost"
    test ! -e $1.part
}

begin $T/a.csv
kill -9 $pid
end
echo "killed: exit $code"
goes_on $T/a.csv killed

# a line that was cut off; one with a flipped bit
begin $T/b.csv
kill -9 $pid
end
head -c -7 $T/b.csv.part > $T/cut && cat $T/cut > $T/b.csv.part
goes_on $T/b.csv 'cut off' $(($(rows $T/b.csv.part) - 1))
begin $T/c.csv
kill -9 $pid
end
sed -i '5 s/,fits,/,lies,/' $T/c.csv.part
goes_on $T/c.csv damaged $(($(rows $T/c.csv.part) - 1))

# an interrupt, and a request to end
for signal in INT TERM; do
    begin $T/$signal.csv
    kill -$signal $pid
    end
    echo "$signal: exit $code"
    sed 's/[0-9]* of 12/N of 12/' $T/err
    goes_on $T/$signal.csv $signal
done

# two at once
begin $T/d.csv
$sweep -o $T/d.csv || echo "second: exit $?"
kill -9 $pid
end
goes_on $T/d.csv 'beside another'

# a worker that dies: its point is tried again
begin $T/e.csv
until worker=$(cat /proc/$pid/task/$pid/children) && test -n "$worker" && kill -STOP $worker && stopped $worker; do
    kill -CONT $pid # between two points
    sleep 0.01
    kill -STOP $pid
    stopped $pid
done
kill -9 $worker
end
echo "a worker killed: exit $code"
sed -n 's/.*e.csv: //p' $T/out
cat $T/err
grep -v '^#' $T/e.csv | cmp - $T/whole && echo "worker: nothing lost"

# a full disk: as far as it goes, and on when there is room
code=0
(ulimit -f 8 && $sweep -o $T/f.csv) 2> $T/err || code=$?
sed 's/the [0-9]* rows/the N rows/' $T/err
echo "full: exit $code"
goes_on $T/f.csv full
