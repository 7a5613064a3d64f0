"""One training loop of models of transformers and diffusers, at the sizes of published models: train.py MODEL [OPTIONS]."""
import argparse
import contextlib
import os

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--layers", type=int)
parser.add_argument("--tokens", type=int, default=8192)
parser.add_argument("--batch", type=int, default=1)
parser.add_argument("--checkpoint", action="store_true")
parser.add_argument("--accelerate", action="store_true",
                    help="as Accelerate prepares a model: outputs are cast to fp32, and FSDP2 gathers the root again for the backward")
parser.add_argument("--mixed", action="store_true", help="fp32 parameters, of which FSDP2 gathers bf16")
parser.add_argument("--replicate", type=int, default=1, help="replicas of HSDP")
parser.add_argument("--tp", type=int, default=1, help="tensor ranks, with sequence and loss parallelism; of Llama")
options = parser.parse_args()


def transformer(name):
    import transformers
    configs = {
        "llama-small": (transformers.LlamaConfig, dict(
            hidden_size=256, intermediate_size=704, num_hidden_layers=2, num_attention_heads=8,
            num_key_value_heads=4, vocab_size=1024)),
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
        "smollm2-1.7b": (transformers.LlamaConfig, dict(
            hidden_size=2048, intermediate_size=8192, num_hidden_layers=24, num_attention_heads=32,
            num_key_value_heads=32, vocab_size=49152, rope_theta=130000.0, tie_word_embeddings=True)),
        "gpt-neox-20b": (transformers.GPTNeoXConfig, dict()),
        "gpt-6.7b": (transformers.GPT2Config, dict(
            n_embd=4096, n_layer=32, n_head=32, n_positions=2048, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)),
    }
    kind, sizes = configs[name]
    sizes["use_cache"] = False
    if options.layers:
        sizes[{"gpt-6.7b": "n_layer"}.get(name, "num_hidden_layers")] = options.layers
    config = kind(**sizes)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32 if options.mixed else torch.bfloat16)

    def loss():
        ids = torch.randint(0, config.vocab_size, (options.batch, options.tokens), device="cuda")
        places = torch.arange(options.tokens, device="cuda")[None]  # otherwise counted of the tokens that this rank embeds
        seen = model(input_ids=ids, labels=ids, position_ids=places)
        if options.accelerate:
            seen.logits = seen.logits.float()
        return seen.loss
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


def tensor_parallel(model, mesh):
    """As torchtitan's Llama: tokens are divided between linear layers, the vocabulary is, and the loss is of its parts."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, parallelize_module)
    parallelize_module(model, mesh, {
        "model.embed_tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "model.norm": SequenceParallel(),
        "lm_head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False)})
    for block in model.model.layers:
        parallelize_module(block, mesh, {
            "input_layernorm": SequenceParallel(),
            "self_attn": PrepareModuleInput(input_kwarg_layouts={"hidden_states": Shard(1)},
                                            desired_input_kwarg_layouts={"hidden_states": Replicate()}),
            "self_attn.q_proj": ColwiseParallel(), "self_attn.k_proj": ColwiseParallel(), "self_attn.v_proj": ColwiseParallel(),
            "self_attn.o_proj": RowwiseParallel(output_layouts=Shard(1)),
            "post_attention_layernorm": SequenceParallel(),
            "mlp": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
            "mlp.gate_proj": ColwiseParallel(), "mlp.up_proj": ColwiseParallel(),
            "mlp.down_proj": RowwiseParallel(output_layouts=Shard(1))})


def parts_of_the_loss():
    if options.tp == 1:
        return contextlib.nullcontext()
    from torch.distributed.tensor.parallel import loss_parallel
    return loss_parallel()


world = int(os.environ.get("WORLD_SIZE", 1))
if world > 1:
    dist.init_process_group("nccl")
model, loss = diffusion() if options.model == "sd3-medium" else transformer(options.model)
model.to("cuda")
if options.checkpoint:
    model.gradient_checkpointing_enable()
model.train()
shards = world // (options.replicate * options.tp)
if world > 1:
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cuda", (options.replicate, shards, options.tp), mesh_dim_names=("rep", "shard", "tp"))
if options.tp > 1:
    tensor_parallel(model, mesh["tp"])
if options.replicate * shards > 1:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    how = {"reshard_after_forward": True} if options.accelerate else {}
    how["mesh"] = mesh["rep", "shard"] if options.replicate > 1 else mesh["shard"]
    if options.mixed:
        how["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) > 1:
            for block in module:
                fully_shard(block, **how)
            break
    fully_shard(model, **how)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
while True:
    with parts_of_the_loss():
        loss().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
