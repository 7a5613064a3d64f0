"""Trains a small decoder until a sequence is too long, and leaves what torch.cuda.memory has recorded of that."""
import sys
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = torch.matmul(q, k.transpose(-1, -2)).softmax(-1)
        return self.out(torch.matmul(scores, v).transpose(1, 2).reshape(batch, length, width))

    def feed_forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, vocabulary=8192, width=256, heads=4, layers=3):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def step(model, optimizer, length):
    tokens = torch.zeros(1, length, dtype=torch.long, device="cuda")
    logits = model(tokens)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def train():
    model = Decoder().to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for length in (512, 1024, 2048, 4096):
        step(model, optimizer, length)


torch.cuda.memory._record_memory_history(max_entries=60, stacks="python")
try:
    train()
except torch.cuda.OutOfMemoryError as error:
    print(error)
    torch.cuda.memory._dump_snapshot(sys.argv[1])
