# bash itself completes from what we print; zsh: zsh/completion_zsh.cmd
longhaul help --completion bash > $T/bash
longhaul help --completion zsh > $T/zsh
cat > $T/try <<'EOF'
. $T/bash
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _longhaul; echo "$* -> ${COMPREPLY[*]}"; }
try longhaul sw
try longhaul predict --str
try longhaul predict --strategy uly
try longhaul run --checkpoint o
try longhaul list --mo
try longhaul sweep --cluster loong
try longhaul plot wat
try longhaul list mo
try longhaul help plo
try longhaul predict --dtype = f
try longhaul predict --dtype =
try longhaul plot sweep chunks.c
try longhaul predict --sc
try longhaul plan --sc
EOF
bash $T/try
head -n 1 $T/zsh
