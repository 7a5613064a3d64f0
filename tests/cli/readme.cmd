# what README.md prints is what the program prints; docs_nightly.cmd has what takes longer
sed -n '/^    \$ longhaul predict --model internlm-7b-mha/,/^$/p' $S/README.md | sed '1d; $d; s/^    //' > $T/wanted
longhaul predict --model internlm-7b-mha --cluster loongtrain-a100 --gpus 32 --strategy ulysses --seq 512K --profile published > $T/got
diff $T/wanted $T/got && echo "the first prediction"
longhaul sweep --cluster fpdt-a100-80g --gpus 4 --seq 256K --strategy fpdt --profile published --vary model=gpt-2.7b,gpt-6.7b --vary chunk=256K -o $T/chunks.csv 2> $T/note | grep '^best' > $T/best
grep -F "    $(cat $T/best)" $S/README.md > $T/note && echo "the best chunk"
