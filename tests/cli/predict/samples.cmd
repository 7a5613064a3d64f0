# A sample of layers or micro-batches stands for the whole list: nothing but the line that says what was simulated differs.
for layout in "--strategy fpdt --seq 512K --chunk 32K" "--strategy megatron-sp --tp 2 --pp 4 --seq 8K --batch 256"; do
    quick="longhaul predict --quick --all --model llama3-8b --cluster dgx-h100 --nodes 1 $layout"
    $quick > sample.txt
    $quick --exact > whole.txt
    diff whole.txt sample.txt | sed 's/, busiest link.*//'
done
rm sample.txt whole.txt
