# a program that was started has one thread: a library that starts its own would take a core each, whatever is asked
mkfifo $T/list.ir
longhaul check $T/list.ir &
pid=$!
exec 3> $T/list.ir # returns when the program has opened it, too
ls /proc/$pid/task | wc -l
exec 3>&-
wait $pid || echo "exit $?"
