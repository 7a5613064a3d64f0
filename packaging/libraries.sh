# Sourced by packaging/tarball.sh and packaging/gpu.sh.
#
# libraries PROGRAM...: prints the libraries that the programs load, a line "NAME PATH" each. Returns false, with a
# message for each library that is not found, since a package without it would not run.
libraries()
{
    local found missing
    found=$(for program in "$@"; do ldd "$program" || exit; done) || {
        echo "packaging: error: ldd cannot tell what $* load" >&2
        return 2
    }
    missing=$(sed -n 's/^\s*\(\S*\) => not found.*/\1/p' <<<"$found" | sort -u)
    if [[ -n $missing ]]; then
        sed 's/.*/packaging: error: library & is not found on this machine; install it, or put its folder into LD_LIBRARY_PATH/' \
            <<<"$missing" >&2
        return 2
    fi
    sed -n 's/^\s*\(\S*\) => \(\/\S*\) .*/\1 \2/p' <<<"$found" | sort -u
}
