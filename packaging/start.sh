#!/bin/sh
# bin/longhaul of the tarball: the system's glibc where it is new enough, else the one that came with this.
#
# The loader is asked which libraries it would load; it says "not found" if glibc lacks a version that they need.
# The program loads the simulator only when it simulates, so the simulator is preloaded here: then the loader looks at
# its libraries, too.
here=$(dirname "$(readlink -f "$0")")/..
program=$here/libexec/longhaul
simulator=$here/lib/longhaul/longhaul_simgrid.so
if [ -z "$LONGHAUL_OWN_GLIBC" ] && found=$(LD_TRACE_LOADED_OBJECTS=1 LD_PRELOAD=$simulator "$program" 2>&1); then
    case $found in
        *"not found"*) ;;
        *) exec "$program" "$@" ;;
    esac
fi
: "${LONGHAUL_DATA:=$here/share/longhaul}"
export LONGHAUL_DATA
exec "$here/lib/glibc/ld.so" --library-path "$here/lib/glibc:$here/lib" "$program" "$@"
