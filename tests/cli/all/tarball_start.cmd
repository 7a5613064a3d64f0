# bin/longhaul of the tarball takes the system's glibc where that is new enough, without starting the program to find out
mkdir -p $T/bin $T/libexec $T/lib/glibc $T/lib/longhaul
cp $S/packaging/start.sh $T/bin/longhaul
echo 'echo "its own glibc: $0 $1 $4 $5 ($LONGHAUL_DATA)"' > $T/lib/glibc/ld.so
chmod +x $T/bin/longhaul $T/lib/glibc/ld.so
program=$(command -v longhaul)
cp $program $T/libexec/longhaul
module=lib/longhaul/longhaul_simgrid.so
cp "$(dirname $program)/longhaul_simgrid.so" $T/$module
$T/bin/longhaul --version | sed 's/ .*//;q'
LONGHAUL_OWN_GLIBC=1 $T/bin/longhaul --version | sed 's|/bin/\.\.||g'

# a version that no glibc has yet
sed 's/GLIBC_2\.\([0-9]\)/GLIBC_9.\1/g' $program > $T/libexec/longhaul
$T/libexec/longhaul --version 2> $T/err || echo "exit $?"
$T/bin/longhaul --version | sed 's|/bin/\.\.||g'

# nor one of the simulator's libraries
cp $program $T/libexec/longhaul
sed 's/GLIBC_2\.\([0-9]\)/GLIBC_9.\1/g' "$(dirname $program)/longhaul_simgrid.so" > $T/$module
$T/bin/longhaul --version | sed 's|/bin/\.\.||g'
$T/libexec/longhaul --version 2>&1 | sed 's/.*GLIBC_9.*/refused/'
rm $T/$module

# no glibc at all: there is no such loader
printf '#!/no/such/loader\n' > $T/libexec/longhaul
$T/bin/longhaul --version | sed 's|/bin/\.\.||g'

# arguments reach the program as they are
printf '#!/bin/sh\nprintf "<%%s>" "$@"' > $T/libexec/longhaul
$T/bin/longhaul predict 'a  b' ''
echo
