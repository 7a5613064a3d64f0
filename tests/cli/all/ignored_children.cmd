# A parent that ignores SIGCHLD (a service manager, trap '' CHLD) hands that on; child processes are waited for all the same.
trap '' CHLD
what="--model gpt2 --cluster ideal --gpus 2 --seq 1K"
longhaul predict $what --quick -o $T/p > $T/out && echo predicted
longhaul plan $what > $T/out && echo planned
longhaul sweep --model gpt2 --cluster ideal --gpus 2 --vary seq=512,1K -o $T/a.csv > $T/out && echo swept
longhaul plot waterfall $T/p -o $T/a.svg && echo drawn
