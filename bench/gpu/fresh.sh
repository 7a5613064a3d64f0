# Sourced by bench/gpu/run and packaging/gpu.sh.
#
# fresh FOLDER: makes an empty folder with a marker in it. If FOLDER exists and is not empty, its content is deleted
# only if it has the marker, that is, if one of these programs made it; else fresh prints a message and returns false.
fresh()
{
    local marker=$1/.made-by-longhaul
    if [[ -e $1 && ! -d $1 ]]; then
        echo "$1: error: is no folder" >&2
        return 2
    fi
    if [[ -d $1 && ! -e $marker ]]; then
        local there
        there=$(ls -A "$1") || return 2
        if [[ -n $there ]]; then
            echo "$1: error: is not empty, and nothing in it says that longhaul made it (${marker##*/}); another folder would do" >&2
            return 2
        fi
    fi
    if ! { mkdir -p "$1" && find "$1/" -mindepth 1 -delete && : >"$marker"; }; then
        echo "$1: error: cannot be made, or emptied" >&2
        return 2
    fi
}
