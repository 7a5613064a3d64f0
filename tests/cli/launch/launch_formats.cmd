# Formats of launch files: numbers and lists, a mark before the text, files without an end
bad() { longhaul predict "$@" --cluster dgx-h100 --nodes 1 --quick 2>&1 >/dev/null | sed -n '/error/p' | sed "s|$T/||g"; }
printf '[training]\nseq_len = 8__192\n' > $T/a.toml; bad $T/a.toml
printf '[training]\nseq_len = 08192\n' > $T/a.toml; bad $T/a.toml
# a list is no number, in any format
printf '[training]\nseq_len = [8192]\n' > $T/a.toml; bad $T/a.toml
printf 'model_name_or_path: x\nmax_length: [8192]\n' > $T/a.yaml; bad $T/a.yaml
printf '{"train_batch_size": [8], "zero_optimization": {"stage": 3}}' > $T/a.json; bad $T/a.json
# octal, as PyYAML reads it
printf 'model_name_or_path: x\nmax_length: 020000\nper_device_train_batch_size: 1\nbf16: true\n' > $T/a.yaml
longhaul predict $T/a.yaml --model llama3-8b --cluster h200 --gpus 1 --set layers=2 --quick 2>&1 >/dev/null | grep -o -e '--seq [0-9]*'
# a mark before the text changes nothing, in files of a launch and of a model
for file in config.json fsdp.yaml; do
    case $file in
    config.json) printf '{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 1000}' ;;
    *) printf 'distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\n' ;;
    esac > $T/$file
    mkdir -p $T/marked/same $T/plain-files/same # a model has the name of its folder
    cp $T/$file $T/plain-files/same/$file
    { printf '\357\273\277'; cat $T/$file; } > $T/marked/same/$file
done
small="--cluster dgx-h100 --nodes 1 --seq 1K --batch 8 --strategy local --quick"
longhaul predict --model $T/plain-files/same/config.json --from $T/plain-files/same/fsdp.yaml $small --json > $T/plain 2> $T/err
longhaul predict --model $T/marked/same/config.json --from $T/marked/same/fsdp.yaml $small --json > $T/marked.json 2> $T/err
sed "s|/marked/|/plain-files/|g" $T/marked.json | cmp - $T/plain && echo "the mark changes nothing"
# devices without an end
bad --from /dev/zero
ln -s /dev/zero $T/zero.json
bad --model $T/zero.json --seq 1K
# commands that train nothing
for command in 'swift infer --model Qwen/Qwen3-8B --max_length 2048' 'megatron export --load x --to_hf true' 'llamafactory-cli export x.yaml'; do
    longhaul predict "$command" --cluster dgx-h100 2>&1 || echo "exit $?"
done
longhaul predict "swift export --adapters x
swift sft --model Qwen/Qwen3-8B --tuner_type lora --max_length 2048" --cluster dgx-h100 --quick 2>&1 | grep -e 'another command' -e '^Fits'
# weights that the model's own files have in 4 bits
longhaul predict 'swift sft --model Qwen/Qwen2.5-7B-Instruct-AWQ --tuner_type lora --max_length 2048' --cluster dgx-h100 --quick 2>&1 | grep -e "--at-most bits,lengths$" -e "or fewer"
