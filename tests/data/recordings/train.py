"""One training loop of models of transformers and diffusers, at the sizes of published models: train.py MODEL [--layers N] [--tokens N]."""
import argparse
import os

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--layers", type=int)
parser.add_argument("--tokens", type=int, default=8192)
parser.add_argument("--checkpoint", action="store_true")
options = parser.parse_args()


def transformer(name):
    import transformers
    configs = {
        "llama3-8b": (transformers.LlamaConfig, dict(
            hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
            num_key_value_heads=8, vocab_size=128256, rope_theta=500000.0)),
        "qwen3-30b-a3b": (transformers.Qwen3MoeConfig, dict(
            hidden_size=2048, intermediate_size=6144, moe_intermediate_size=768, num_hidden_layers=48,
            num_attention_heads=32, num_key_value_heads=4, head_dim=128, num_experts=128, num_experts_per_tok=8,
            norm_topk_prob=True, vocab_size=151936)),
        "mamba2-2.7b": (transformers.Mamba2Config, dict(
            hidden_size=2560, num_hidden_layers=64, state_size=128, num_heads=80, head_dim=64, n_groups=1,
            vocab_size=50288)),
        "qwen3-next-80b-a3b": (transformers.Qwen3NextConfig, dict(num_hidden_layers=48)),
        "gpt-neox-20b": (transformers.GPTNeoXConfig, dict()),
        "gpt2": (transformers.GPT2Config, dict()),
    }
    kind, sizes = configs[name]
    sizes["use_cache"] = False
    if options.layers:
        sizes[{"gpt2": "n_layer"}.get(name, "num_hidden_layers")] = options.layers
    config = kind(**sizes)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)

    def loss():
        ids = torch.randint(0, config.vocab_size, (1, options.tokens), device="cuda")
        return model(input_ids=ids, labels=ids).loss
    return model, loss


def diffusion():
    import diffusers
    model = diffusers.SD3Transformer2DModel(
        sample_size=128, patch_size=2, in_channels=16, num_layers=options.layers or 24, attention_head_dim=64,
        num_attention_heads=24, joint_attention_dim=4096, caption_projection_dim=1536, pooled_projection_dim=2048,
        out_channels=16, pos_embed_max_size=192)

    def loss():
        def noise(*shape):
            return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
        seen = model(hidden_states=noise(4, 16, 128, 128), encoder_hidden_states=noise(4, 333, 4096),
                     pooled_projections=noise(4, 2048), timestep=torch.randint(0, 1000, (4,), device="cuda"),
                     return_dict=False)[0]
        return torch.nn.functional.mse_loss(seen.float(), noise(4, 16, 128, 128).float())
    return model.to(torch.bfloat16), loss


world = int(os.environ.get("WORLD_SIZE", 1))
if world > 1:
    dist.init_process_group("nccl")
model, loss = diffusion() if options.model == "sd3-medium" else transformer(options.model)
model.to("cuda")
if options.checkpoint:
    model.gradient_checkpointing_enable()
model.train()
if world > 1:
    from torch.distributed.fsdp import fully_shard
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) > 1:
            for block in module:
                fully_shard(block)
            break
    fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
while True:
    value = loss()
    value.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
