# Points of one kind: what is measured, not how fast it is.
longhaul bench --quick --kinds add,h2d --copy-bandwidth '10 GB/s' -o $T/points.csv 2> $T/progress
grep -c . $T/progress
sed -e '/^# \(device\|blas\|date\|version\|host_memory_bytes_per_s\)=/d' -e 's/\(\(,[^,]*\)\{4\}\)$//' $T/points.csv

# a time that no case fits into
longhaul bench --quick --kinds add,h2d --within 1e-9 2> $T/said || echo "exit $?"; sed "s/take .*/take .../" $T/said
# it reads no file: --cluster-out writes one
longhaul bench points.csv 2> $T/said || echo "exit $?"; cat $T/said
