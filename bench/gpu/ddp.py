"""Trains a small model with DistributedDataParallel, or with fully sharded parameters, and prints the losses. They must
be the same with every network that carries the gradients. With "gpt2" the model is GPT-2 with 12 layers (124 million
parameters; each rank has 4 sequences of 1,024 tokens). With "frees" each step allocates and frees GPU memory and pinned
memory while gradients are in flight. The calls that free wait for the kernels.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 NCCL_HOSTID=h0 [NCCL_NET_PLUGIN=...] python3 ddp.py [ddp|fsdp] [gpt2] [frees]

STEPS (300, at least 70) is the number of steps. Two figures are printed, in milliseconds per step. One covers the last
100 steps, or the last half of fewer than 200 steps. The other covers the 50 steps after the first 10, and includes the
compilation in a young process. torchrun sets OMP_NUM_THREADS=1 for several ranks of a host. Without this setting
PyTorch's threads spin on all cores.
"""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", rank % torch.cuda.device_count())
torch.cuda.set_device(device)
dist.init_process_group("nccl", rank=rank, world_size=world, device_id=device)

torch.manual_seed(1)
torch.use_deterministic_algorithms(True)
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
gpt2 = "gpt2" in sys.argv
if gpt2:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False, attn_implementation="eager")).to(device)
else:
    model = torch.nn.Sequential(
        torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10)
    ).to(device)
if "fsdp" in sys.argv:
    from torch.distributed.fsdp import fully_shard

    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(model)
else:
    model = DistributedDataParallel(model, device_ids=[device.index])
frees = "frees" in sys.argv
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
data = torch.Generator(device="cpu").manual_seed(100 + rank)

steps = int(os.environ.get("STEPS", 300))
assert steps >= 70, f"STEPS={steps}: at least 70"
last = min(100, steps // 2)
losses = []
marks = {}
for step in range(steps):
    if step in (10, 60, steps - last):
        torch.cuda.synchronize()
        marks[step] = time.perf_counter()
    if gpt2:
        x = torch.randint(0, 50257, (4, 1024), generator=data).to(device)
        loss = model(input_ids=x, labels=x).loss
    else:
        x = torch.randn(256, 512, generator=data).to(device)
        y = torch.randint(0, 10, (256,), generator=data).to(device)
        loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    if frees:
        torch.empty(64 << 20, device=device)
        torch.empty(1 << 20).pin_memory()
        torch.cuda.empty_cache()
    optimizer.step()
    if step % 10 == 9 and step < 60 or step == steps - 1:
        losses.append(loss.item())
torch.cuda.synchronize()
steady = (time.perf_counter() - marks[steps - last]) / last * 1e3
young = (marks[60] - marks[10]) / 50 * 1e3
weights = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in model.parameters()]
total = sum(p.double().abs().sum().item() for p in weights)
if rank == 0:
    print("losses", " ".join(f"{v:.9f}" for v in losses), f"weights {total:.9f}", f"({steady:.2f} ms a step, {young:.2f} when young)", flush=True)
dist.destroy_process_group()
