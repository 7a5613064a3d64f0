# a program that was started has one thread: a library that starts its own would take a core each, whatever is asked
mkfifo $T/list.ir
longhaul check $T/list.ir &
pid=$!
exec 3> $T/list.ir # returns when the program has opened it, too
ls /proc/$pid/task | wc -l
exec 3>&-
wait $pid || echo "exit $?"

# libraries are the system's, whatever lies in the working folder
libraries=$(ldd "$(command -v longhaul)" | sed -n 's/^\s*\(lib\S*\) => .*/\1/p')
mkdir $T/here
cd $T/here
touch $libraries
longhaul --version > ../version && echo "started beside files of the same names"
