# zsh itself completes from what we print: an interactive shell on a terminal of its own, a key that
# completes the word and writes the line to a file
mkdir $T/functions
longhaul help --completion zsh > $T/functions/_longhaul
cat > $T/setup <<'END'
fpath=($T/functions $fpath)
autoload -Uz compinit && compinit -u -d $T/dump
complete-and-write() { zle complete-word; print -r -- "$BUFFER" >> $T/lines; zle kill-whole-line; }
zle -N complete-and-write
bindkey '^I' complete-and-write
print ready >> $T/lines
END
cat > $T/drive <<'END'
zmodload zsh/zpty zsh/zselect
lines() { [[ -f $T/lines ]] && wc -l < $T/lines || print 0; }
await() { # the line of that number, at most 20 s
    local n=$1 i some
    for ((i = 0; i < 2000; i++)); do
        (($(lines) >= n)) && return
        zpty -rt shell some
        zselect -t 1
    done
    print "no line $n came"
    exit 1
}
zpty -b shell zsh -f -i
zpty -w shell "source $T/setup"
await 1
n=1
while read -r line; do
    zpty -n -w shell "$line"$'\t'
    await $((++n))
done
zpty -d shell
END
zsh -f $T/drive <<'END'
longhaul sw
longhaul predict --strat
longhaul predict --strategy uly
longhaul run --checkpoint sel
longhaul sweep --cluster ide
longhaul list --js
longhaul bench --js
longhaul plan --model llama3-8b --cluster ide
longhaul validate --leave
longhaul help --completion z
longhaul plot wat
longhaul list conv
longhaul help calib
END
cat $T/lines
# as docs/installing.md has it, in the shell itself
zsh -f -c "autoload -Uz compinit && compinit -u -d $T/dump2 && source <(longhaul help --completion zsh) && print \$_comps[longhaul]"
