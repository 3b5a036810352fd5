"""One rank of an endless PyTorch job for kills.sh. Does the same as nccl_loop.c with torch.distributed.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 NCCL_HOSTID=h0 python3 torch_loop.py STOP_FILE

Prints "ready", "at N", and "told: ..." when PyTorch raises an error of NCCL.
"""
import os
import random
import sys
import time

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", rank % torch.cuda.device_count())
torch.cuda.set_device(device)
dist.init_process_group("nccl", rank=rank, world_size=world, device_id=device)
draw = random.Random(1)  # the same on all ranks
data = torch.zeros(1 << 22, device=device)
last = 0.0
n = 0
try:
    while True:
        n += 1
        part = data[: world << draw.randrange(18)]
        kind = draw.randrange(6)
        root = draw.randrange(world)
        if kind == 0:
            dist.broadcast(part, root)
        elif kind == 1:
            dist.all_gather_into_tensor(data[: part.numel() * world], part.clone())
        elif kind == 2 and world > 1:
            operations = [dist.P2POp(dist.isend, part, rank + 1)] if rank + 1 < world else []
            operations += [dist.P2POp(dist.irecv, part, rank - 1)] if rank > 0 else []
            for work in dist.batch_isend_irecv(operations):
                work.wait()
        else:
            dist.all_reduce(part)
            part.zero_()
        if n % 128 == 0:
            flag = torch.tensor([float(os.path.exists(sys.argv[1]))], device=device)
            dist.all_reduce(flag, op=dist.ReduceOp.MAX)
            ends = flag.item() > 0
            if n == 128:
                print("ready", flush=True)
            if time.monotonic() - last > 0.5:
                last = time.monotonic()
                print("at", n, flush=True)
            if ends:
                break
except Exception as error:
    print("told:", " ".join(str(error).split()), flush=True)
    os._exit(3)
dist.destroy_process_group()
print("done", n, flush=True)
