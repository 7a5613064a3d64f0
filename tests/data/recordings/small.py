"""Small steps that hold what models of libraries do not: small.py compile | ring | ulysses | stage | grid."""
import sys

import torch
import torch.distributed as dist
from torch import nn

WHAT = sys.argv[1]
HEADS, HEAD = 8, 64
WIDTH = HEADS * HEAD


class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        dist.all_to_all_single(y, x.contiguous())
        return y

    @staticmethod
    def backward(ctx, gradient):
        return AllToAll.apply(gradient)


def exchange(x):
    """(tokens of this rank, all heads) to (all tokens, heads of this rank), or back."""
    world = dist.get_world_size()
    if x.shape[1] == HEADS:  # (B, H, T, D)
        parts = torch.stack(x.chunk(world, dim=1))
        return torch.cat(AllToAll.apply(parts).unbind(0), dim=2)
    return torch.cat(AllToAll.apply(torch.stack(x.chunk(world, dim=2))).unbind(0), dim=1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).view(*x.shape[:2], 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        if WHAT == "ulysses":
            q, k, v = exchange(q), exchange(k), exchange(v)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        if WHAT == "ulysses":
            y = exchange(y)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


if WHAT != "compile":
    dist.init_process_group("nccl")
model = nn.Sequential(Block(), Block()).to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
tokens = 4096


def inputs(batch=1):
    return torch.randn(batch, tokens, WIDTH, device="cuda", dtype=torch.bfloat16)


def ring():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    while True:
        x = inputs()
        with context_parallel(mesh, buffers=[x], buffer_seq_dims=[1], no_restore_buffers={x}):
            with nn.attention.sdpa_kernel(nn.attention.SDPBackend.FLASH_ATTENTION):
                model(x).float().pow(2).mean().backward()
        yield


def stage(group=None):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    example = inputs().requires_grad_()
    part = PipelineStage(model, rank, world, torch.device("cuda"), input_args=(example,), output_args=(example,), group=group)
    schedule = Schedule1F1B(part, n_microbatches=8, loss_fn=lambda y, t: (y.float() - t.float()).pow(2).mean())
    while True:
        schedule.step(*[inputs(8)] if rank == 0 else [], **{"target": inputs(8)} if rank == world - 1 else {})
        yield


def grid():
    """Stages whose weights FSDP2 divides: ranks 0 and 1 are the first stage, 2 and 3 the second."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    global optimizer
    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("pp", "dp"))
    for block in model:
        fully_shard(block, mesh=mesh["dp"], reshard_after_forward=False)
    fully_shard(model, mesh=mesh["dp"], reshard_after_forward=False)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    yield from stage(mesh["pp"].get_group())


def plain():
    global model
    if WHAT == "compile":
        model = torch.compile(model)
    while True:
        model(inputs()).float().pow(2).mean().backward()
        yield


for _ in {"ring": ring, "stage": stage, "grid": grid}.get(WHAT, plain)():
    optimizer.step()
    optimizer.zero_grad()
