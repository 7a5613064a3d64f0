# a program that was started has one thread: a library that starts its own would take a core each, whatever is asked
mkfifo $T/list.ir
longhaul check $T/list.ir &
pid=$!
exec 3> $T/list.ir # returns when the program has opened it, too
ls /proc/$pid/task | wc -l
exec 3>&-
wait $pid || echo "exit $?"

# libraries are the system's, whatever lies in the working folder
libraries=$(ldd "$(command -v longhaul)" "$(dirname "$(command -v longhaul)")/longhaul_simgrid.so" | sed -n 's/^\s*\(lib\S*\) => .*/\1/p')
mkdir $T/here
cd $T/here
touch $libraries
longhaul --version > ../version && echo "started beside files of the same names"

# what simulates nothing needs no simulator; what does says where one was looked for
mkdir $T/cut
cp "$(command -v longhaul)" $T/cut/
echo "no library" > $T/cut/longhaul_simgrid.so
$T/cut/longhaul list models > $T/models && echo "listed without a simulator"
$T/cut/longhaul predict --model llama3-8b --cluster dgx-h100 --nodes 1 --seq 64K --strategy ulysses || echo "exit $?"
$T/cut/longhaul --version || echo "exit $?"
