#!/usr/bin/env python3
"""Training steps of a Llama under Hugging Face's Trainer, as people run it: bf16=True (fp32 parameters under autocast),
gradient checkpointing, the default fused AdamW, clipped gradients, one sequence a step on one GPU.

Prints a line of CSV per configuration: the median, least and most seconds of a step, and peak memory, allocated and
reserved. With --trace DIR, writes a Kineto trace of one step of each (NAME-SEQ.json.gz). Without PyTorch, transformers
or a GPU: one line that says why, exit code 77."""
import argparse
import gc
import gzip
import os
import shutil
import statistics
import sys
import tempfile
import time

from skip import skip

# As the config.json of the model of that name; position limits do not matter to the time.
MODELS = {
    "llama3.2-1b": dict(num_hidden_layers=16, hidden_size=2048, num_attention_heads=32, num_key_value_heads=8,
                        head_dim=64, intermediate_size=8192, vocab_size=128256, tie_word_embeddings=True),
    "llama3.2-3b": dict(num_hidden_layers=28, hidden_size=3072, num_attention_heads=24, num_key_value_heads=8,
                        head_dim=128, intermediate_size=8192, vocab_size=128256, tie_word_embeddings=True),
    "tiny": dict(num_hidden_layers=2, hidden_size=128, num_attention_heads=2, num_key_value_heads=2, head_dim=64,
                 intermediate_size=256, vocab_size=512, tie_word_embeddings=True),
}

try:
    import torch
    import transformers
except ImportError as error:
    skip(f"{error}")


class Tokens(torch.utils.data.Dataset):
    def __init__(self, count, seq, vocab):
        self.rows = torch.randint(vocab, (count, seq), generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "labels": self.rows[i]}


class Watch(transformers.TrainerCallback):
    """The time of each step, from its begin to the end of its work on the GPU; a trace of the last one."""

    def __init__(self, trace, steps):
        self.trace, self.steps, self.seconds, self.profiler = trace, steps, [], None

    def sync(self):
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    def on_step_begin(self, args, state, control, **kwargs):
        self.sync()
        if self.trace and state.global_step == self.steps:
            self.profiler = torch.profiler.profile(record_shapes=True)
            self.profiler.start()
        self.begin = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        self.sync()
        if self.profiler is not None:
            self.profiler.stop()
        else:
            self.seconds.append(time.perf_counter() - self.begin)


def measure(name, seq, steps, warmup, trace, attention, device):
    fields = MODELS[name]
    config = transformers.LlamaConfig(**fields, max_position_embeddings=seq, attn_implementation=attention)
    torch.manual_seed(1)
    with torch.device(device):
        model = transformers.LlamaForCausalLM(config)
    watch = Watch(trace, warmup + steps)
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder, per_device_train_batch_size=1, max_steps=warmup + steps + (1 if trace else 0), bf16=True,
            gradient_checkpointing=True, save_strategy="no", report_to=[], logging_strategy="no", disable_tqdm=True,
            dataloader_num_workers=0, use_cpu=device == "cpu")
        data = Tokens(warmup + steps + 1, seq, fields["vocab_size"])
        trainer = transformers.Trainer(model=model, args=arguments, train_dataset=data, callbacks=[watch])
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        trainer.train()
    seconds = watch.seconds[warmup:]
    peak = [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()] if device == "cuda" else [0, 0]
    print(f"{name},{seq},{attention},{statistics.median(seconds):.6g},{min(seconds):.6g},{max(seconds):.6g},"
          f"{seq / statistics.median(seconds):.6g},{peak[0]},{peak[1]}", flush=True)
    if trace:
        raw = os.path.join(trace, f"hf-{name}-{seq}.json")
        watch.profiler.export_chrome_trace(raw)
        with open(raw, "rb") as source, gzip.open(raw + ".gz", "wb") as target:
            shutil.copyfileobj(source, target)
        os.remove(raw)
    # Trainer and model refer to each other: without a collection the parameters would be in the next run's memory
    del trainer, model, watch
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
        if torch.cuda.memory_reserved() > 64 << 20:
            sys.exit(f"{name}:{seq}: {torch.cuda.memory_reserved() >> 20} MiB stay reserved after the run, so that the "
                     "memory of the next one could not be told: give each run a process of its own")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", nargs="*", help="MODEL:SEQ", default=["llama3.2-1b:8192", "llama3.2-1b:32768",
                                                                      "llama3.2-3b:16384"])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--trace", help="a folder for a trace of one step of each")
    parser.add_argument("--attention", default="sdpa")
    parser.add_argument("--cpu", action="store_true", help="on processors, to try it")
    a = parser.parse_args()
    if not torch.cuda.is_available() and not a.cpu:
        skip("PyTorch sees no GPU")
    print(f"# torch {torch.__version__}, transformers {transformers.__version__}, "
          f"{torch.cuda.get_device_name() if torch.cuda.is_available() else 'cpu'}")
    print("model,seq,attention,median_s,least_s,most_s,tokens_per_s,peak_allocated,peak_reserved")
    for run in a.runs:
        name, seq = run.split(":")
        measure(name, int(seq), a.steps, a.warmup, a.trace, a.attention, "cpu" if a.cpu else "cuda")


if __name__ == "__main__":
    main()
