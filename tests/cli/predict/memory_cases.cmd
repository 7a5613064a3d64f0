# Llama 3 8B at 128K tokens on eight B200s, parameters and moments in bf16, compiled layers and a compiled loss, which keeps 2
# bytes a logit: it fits, in about 108 of 178 GiB
cat > $T/titan.toml <<'END'
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 131072
dtype = "bfloat16"
[parallelism]
data_parallel_shard_degree = 8
[activation_checkpoint]
mode = "full"
[compile]
enable = true
components = ["model", "loss"]
END
longhaul predict $T/titan.toml --cluster 1x8xb200 --quick 2> $T/note > $T/out
sed -n 's/^\(Fits\): a GPU needs \([0-9]*\) GiB of its \([0-9]*\) GiB.*/\1 \2 \3/p' $T/out |
    awk '{ print $1, ($2 >= 105 && $2 <= 112 ? "about 108" : $2), "of", $3 }'
