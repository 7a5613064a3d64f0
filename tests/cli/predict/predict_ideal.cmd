# On the ideal cluster a step takes its flops over 1 PFLOP/s and nothing else, so these numbers are
# arithmetic. gpt-2.7b, 2K tokens on 4 GPUs: a layer's products are 24 h^2 = 157,286,400 flops a
# token, attention 4 x 80 x 32 heads per visible pair, 2048 x 2049 / 2 pairs; backward twice the
# products and 2.5 times attention, of which a fifth makes the scores again; the head 2 h V a token.
longhaul predict --model gpt-2.7b --cluster ideal --gpus 4 --seq 2K --quick --checkpoint none --json > $T/keep.json
longhaul predict --model gpt-2.7b --cluster ideal --gpus 4 --seq 2K --quick --profile ideal --json > $T/full.json
for name in keep full; do
    echo $name
    grep -E '"(step_s|hfu|model_flops_at_peak_s|recomputation_s|all_to_all_s|host_s)": [0-9]' $T/$name.json |
        awk -F '[":,]+' '{ printf "%s %.9g\n", $2, $3 }'
done
awk 'BEGIN { s = 2048; pairs = s * (s + 1) / 2;
    products = s * 32 * 24 * 2560 * 2560; attention = 32 * 4 * 80 * 32 * pairs; head = 2 * s * 2560 * 50257;
    printf "kept: %.9f ms\n", (3 * (products + head) + 3.5 * attention) / 4 / 1e15 * 1e3 }'

# a step of twice as many sequences on twice as many GPUs takes as long
longhaul predict --model gpt-2.7b --cluster ideal --gpus 8 --dp 2 --seq 2K --quick --checkpoint none --json > $T/two.json
awk -F '[:,]+' '/"step_s"/ { printf "two: %.9f ms\n", $2 * 1e3 }' $T/two.json
longhaul predict --model gpt-2.7b --cluster ideal --gpus 4 --seq 2K --quick --checkpoint none --tokens 1B --price 2 |
    grep -E '^(step|training)'
# the peak is that of the fullest rank: the logits are on the last stage
stages="--profile published --model llama3-8b --cluster 1x4xh100 --pp 4 --batch 4 --seq 8K --quick"
longhaul predict $stages --all | grep -o 'at the peak of rank [0-9]*'
longhaul predict $stages --json | grep -o '"peak_rank": *[0-9]*'
# the exchange alone takes the time that it takes
longhaul predict --model gpt-2.7b --cluster 1x4xh100 --seq 8K --quick --scope attention:exchange | grep -c 'exchange [1-9]'

# Gradients of 64 micro-batches are added up without a stall (in 1.21 s, 0.21 of which are casts to and from
# fp32 and twice the bytes of a reduction), and ideal has no host to wait for.
many="--model gpt-7b --set layers=4 --seq 2048 --batch 64 --cluster dgx-h100 --gpus 8 --strategy ulysses --zero 3 --attention fa2 --quick --json"
for profile in published neutral ideal; do longhaul predict $many --profile $profile; done |
    awk -F '[:,]+' '/"step_s"/ { step[n++] = $2 }
        END { print step[2] < step[1] ? "ideal is faster" : "ideal is slower", step[0] < 1.25 ? "no stall" : "a stall" }'

# HFU is over all ranks, of which a contiguous ring's first has the least to do; what 16 tensor ranks compute alike of 8 key/value heads is
# no model flop.
longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 8 --strategy ring --layout contiguous --seq 128K --quick --checkpoint none --json |
    awk -F '[:,]+' '/"mfu_longhaul"/ && !mfu { mfu = $2 } /"hfu"/ { hfu = $2 } END { print "ring:", (hfu > mfu ? "HFU is more" : "HFU is less") }'
longhaul predict --model llama3-8b --cluster dgx-h100 --gpus 16 --strategy megatron-sp --tp 16 --seq 16K --quick --checkpoint none --json |
    awk -F '[:,]+' '/"mfu_longhaul"/ && !mfu { mfu = $2 } /"step_s"/ { step = $2 } /model_flops_at_peak_s/ { useful = $2 } /"hfu"/ { hfu = $2 }
        END { d = useful / step / mfu - 1; print (d < 1e-4 && d > -1e-4 ? "MFU is" : "MFU is not"), "model flops at peak over the step;", (hfu > mfu ? "HFU is more" : "HFU is less") }'
