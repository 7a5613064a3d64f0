# mpirun spreads the same command over processes; the file is the same
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpi="mpirun --oversubscribe -n 3"
sweep="longhaul sweep --model internlm-7b-mha --cluster loongtrain-a100 --gpus 8 --vary seq=64K..512K:x2 --vary hp=4,3,8 --vary zero=1,3"
$sweep > $T/alone
$mpi $sweep -o $T/a.csv > $T/out 2> $T/err || cat $T/err
summary() { sed -n 's/[0-9]* fit, [0-9]* do not fit/N fit, N do not fit/; / points in /p' $1; }
summary $T/out
cmp $T/a.csv $T/alone && echo "the same bytes"
# all done: still nobody waits for ever
$mpi $sweep -o $T/a.csv > $T/out 2> $T/err
summary $T/out
# it goes on after a kill of everybody
$mpi $sweep --exact -o $T/b.csv > $T/out 2>&1 &
while ! grep -q ' - ' $T/b.csv.part 2> $T/note; do sleep 0.01; done
kill -9 $(pgrep -f "$T/b.cs[v]") 2> $T/note || true
wait 2> $T/note || true
$mpi $sweep --exact -o $T/b.csv > $T/out 2> $T/err
summary $T/out | sed 's/([0-9]* from/(N from/'
$sweep --exact > $T/alone
cmp $T/alone $T/b.csv && echo "nothing lost"
# a fault of rank 0 ends all
$mpi $sweep --zero 2 -o $T/a.csv > $T/out 2> $T/err && echo taken
grep -c 'varied, and given' $T/err > $T/note && echo refused
