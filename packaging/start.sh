#!/bin/sh
# bin/longhaul of the tarball: the system's glibc where it is new enough, else the one that came with this.
#
# The loader is asked what it would load, and says "not found" of a version that glibc does not have. A start of the
# program tells as much, in ten times as long: 25 ms, of which all but a few are spent on what it loads.
here=$(dirname "$(readlink -f "$0")")/..
program=$here/libexec/longhaul
if [ -z "$LONGHAUL_OWN_GLIBC" ] && found=$(LD_TRACE_LOADED_OBJECTS=1 "$program" 2>&1); then
    case $found in
        *"not found"*) ;;
        *) exec "$program" "$@" ;;
    esac
fi
: "${LONGHAUL_DATA:=$here/share/longhaul}"
export LONGHAUL_DATA
exec "$here/lib/glibc/ld.so" --library-path "$here/lib/glibc:$here/lib" "$program" "$@"
