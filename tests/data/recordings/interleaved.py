"""A pipeline of two stages with two chunks each, interleaved, and FSDP2 over two ranks of each stage: interleaved.py."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B

WIDTH, CHUNKS = 512, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


def inputs(batch):
    return torch.randn(batch, 2048, WIDTH, device="cuda", dtype=torch.bfloat16)


dist.init_process_group("nccl")
mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("pp", "dp"))
stage = mesh["pp"].get_local_rank()
parts, parameters = [], []
for chunk in range(CHUNKS):
    model = nn.Sequential(Block(), Block()).to("cuda", torch.bfloat16)
    for block in model:
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    parameters += model.parameters()
    parts.append(PipelineStage(model, 2 * chunk + stage, 2 * CHUNKS, torch.device("cuda"), group=mesh["pp"].get_group(),
                               input_args=(inputs(1).requires_grad_(),), output_args=(inputs(1).requires_grad_(),)))
schedule = ScheduleInterleaved1F1B(parts, n_microbatches=4, loss_fn=lambda y, t: (y.float() - t.float()).pow(2).mean())
optimizer = torch.optim.AdamW(parameters, fused=True)
while True:
    schedule.step(*[inputs(4)] if stage == 0 else [], **{"target": inputs(4)} if stage == 1 else {})
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    optimizer.zero_grad()
