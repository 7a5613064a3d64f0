# however predict, report and plot end, what stood there stands, nothing half done is left, and no process goes on
# seconds of simulation, that it is not over before it is seen and ended
what="--model llama3-8b --cluster dgx-h100 --nodes 64 --seq 512K --strategy 2d --cp 4 --hp 8 --quick"
longhaul predict --model gpt2 --cluster ideal --gpus 4 --seq 1K --quick --emit-ir -o $T/p > $T/note
cp -r $T/p $T/before
longhaul report $T/p -o $T/page.html
cp $T/page.html $T/page.before
mkdir $T/tmp
export TMPDIR=$T/tmp
as_before() {
    diff -r $T/p $T/before && cmp $T/page.html $T/page.before && ls -A $T/tmp && echo "  all as before"
}
gone() { # waits until none of the processes is there
    for try in $(seq 500); do
        there=
        for pid in "$@"; do
            if test -d /proc/$pid && ! grep -q '^State:.Z' /proc/$pid/status 2> $T/note; then there=$pid; fi
        done
        test -z "$there" && return
        sleep 0.01
    done
    echo "  $there goes on"
}
begin() { # COMMAND: in the background, until it has a child that works
    env --default-signal=INT "$@" > $T/out 2> $T/err &
    pid=$!
    child=
    until test -n "$child"; do
        sleep 0.01
        child=$(cat /proc/$pid/task/$pid/children)
    done
}
end() { # WHAT SIGNAL PROCESS
    code=0
    kill -$2 $3
    wait $pid 2> $T/note || code=$?
    echo "$1, $2: exit $code"
    # settings of a plan, if any were found by then
    cat $T/out $T/err | sed '/^# the search/!{/^#\|^--[a-z]/d}; s/[0-9]* of [0-9]* configurations/N of M configurations/'
    gone $child
    as_before
}
for signal in INT TERM KILL; do
    begin longhaul predict $what --exact -o $T/p
    end predict $signal $pid
done
begin longhaul predict $what --exact -o $T/p
end 'its simulation' KILL $child
begin longhaul plan --all --model llama3-8b --cluster dgx-h100 --nodes 4 --seq 256K --emit megatron
end plan TERM $pid
# a plan has the best so far, and says what it did not look at
for signal in INT TERM; do
    begin longhaul plan --all --model llama3-8b --cluster dgx-h100 --nodes 4 --seq 256K
    code=0
    kill -$signal $pid
    wait $pid 2> $T/note || code=$?
    echo "plan, $signal: exit $code"
    sed -n 's/^left *[0-9]*/N/p' $T/out
    grep -cE '^(1  .*tokens/s/GPU|fits *nothing so far)' $T/out
    sed 's/[0-9]* of [0-9]* configurations/N of M configurations/' $T/err
    gone $child
done
# once something fits, its folder and its settings are kept: the wait grows until something was found
what_fits="longhaul plan --model llama3-8b --cluster dgx-h100 --nodes 4 --seq 256K"
kept() { # WORDS FILE OPTIONS: interrupts a plan, once the file has the words; each starts without results of the last
    for wait in 1 2 3 5 8 13 21; do
        rm -f $T/kept.cache
        env --default-signal=INT $what_fits $3 $4 $5 > $T/out 2> $T/err &
        pid=$!
        sleep $wait
        kill -INT $pid 2> $T/note || true
        code=0
        wait $pid 2> $T/note || code=$?
        grep -qs "$1" "$2" && break
    done
    echo "plan $3, INT: exit $code"
    sed 's/[0-9]* of [0-9]* configurations/N of M configurations/' $T/err
}
kept step_s $T/kept/prediction.json -o $T/kept
ls $T/kept
kept 'best so far:' $T/out --emit megatron --emit-winner
sed -n 's/[0-9]* of [0-9]* conf/N of M conf/p; s/so far: .*/so far: ./p' $T/out
grep -q '^--' $T/out && echo settings
# one configuration has the longest sequence, without what the other options would give
begin longhaul plan --longest --model llama3-70b --cluster dgx-h100 --nodes 64 --strategy 2d --cp 4 --hp 8
code=0
kill -INT $pid
wait $pid 2> $T/note || code=$?
echo "plan --longest: exit $code"
grep -cE '^longest *[0-9]+K tokens|^next *[0-9]+K tokens: fits only' $T/out
sed 's/ended by an interrupt; .*/ended by an interrupt; .../' $T/err
gone $child

# gnuplot takes its time
mkdir $T/bin
printf '#!/bin/sh\nexec sleep 100\n' > $T/bin/gnuplot
chmod +x $T/bin/gnuplot
with_slow="env PATH=$T/bin:$PATH"
for signal in INT TERM KILL; do
    begin $with_slow longhaul plot waterfall $T/p -o $T/p/ops.csv.svg
    end plot $signal $pid
    begin $with_slow longhaul report $T/p -o $T/page.html
    end report $signal $pid
done
begin $with_slow longhaul plot waterfall $T/p -o $T/p/f.svg
end gnuplot KILL $child

# while files are written: a pipe that nobody reads holds the program when all are ready and none is shown. Only
# SIGKILL leaves hidden files
longhaul predict --model gpt2 --cluster ideal --gpus 4 --seq 1K --quick -o $T/q > $T/note
mkfifo $T/q/schedule.ir
state() { (cd $1 && ls -A && cat $(ls -A | grep -v schedule.ir) | cksum) > $2; }
state $T/q $T/q.before
ls -A $T > $T/note && ls -A $T > $T/around
writing() { # SIGNAL COMMAND: ended while it writes
    signal=$1
    shift
    env --default-signal=INT "$@" > $T/out 2> $T/err &
    pid=$!
    until ls -A $T/q | grep -q '^[.]longhaul-.*tmp$'; do sleep 0.01; done
    code=0
    kill -$signal $pid
    wait $pid 2> $T/note || code=$?
    echo "while it writes, $signal: exit $code"
    cat $T/out $T/err
    test $signal != KILL || rm $T/q/.longhaul-$pid-*.tmp
    state $T/q $T/q.after
    cmp $T/q.before $T/q.after && ls -A $T | grep -v q.after | diff $T/around - && echo "  all as before"
}
for signal in INT TERM KILL; do
    writing $signal longhaul predict --model gpt2 --cluster ideal --gpus 2 --seq 1K --quick \
        --emit-ir --emit-snapshot --emit-chakra -o $T/q
done
# the last file that is asked for cannot be written: none is
rm $T/q/schedule.ir
everything="--emit-ir --emit-snapshot --emit-chakra"
mkdir $T/q/chakra.1.et
longhaul predict --model gpt2 --cluster ideal --gpus 2 --seq 1K --quick $everything -o $T/q || echo "  exit $?"
rmdir $T/q/chakra.1.et
state $T/q $T/q.after
sed /schedule.ir/d $T/q.before | cmp - $T/q.after && echo "  all as before"
longhaul predict --model gpt2 --cluster ideal --gpus 2 --seq 1K --quick $everything -o $T/q > $T/note
ls -A $T/q

# a disk that is full at the second file, or at once
full() { # BLOCKS COMMAND
    code=0
    blocks=$1
    shift
    (ulimit -f $blocks && "$@") > $T/out 2> $T/err || code=$?
    echo "full: exit $code"
    cat $T/out $T/err
    as_before
}
full 40 longhaul predict --model gpt2 --cluster ideal --gpus 2 --seq 1K --quick -o $T/p --emit-chakra
full 100 longhaul report $T/p -o $T/page.html
full 2 longhaul plot waterfall $T/p -o $T/p/f.svg
full 2 longhaul plot timeline $T/p -o $T/p
for command in "predict --model gpt2 --cluster ideal --seq 1K --quick" "report $T/p -o -" \
    "plan --model gpt2 --cluster ideal --gpus 2 --seq 1K --emit megatron" "list models"; do
    code=0
    longhaul $command > /dev/full || code=$?
    echo "${command%% *}: exit $code"
    code=0
    longhaul $command >&- || code=$?
    echo "${command%% *}, closed: exit $code"
done 2>&1
{ longhaul schedule --model llama3-8b --cluster ideal --gpus 4 --pp 4 --batch 16 --seq 8K 2>&1 || echo $? > $T/code; } | head -c 15
echo "... exit $(cat $T/code)"
