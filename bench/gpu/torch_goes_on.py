"""Does the same as `nccl_life ... survive` with torch.distributed. The process group is destroyed and created again in
the same processes. For kills.sh.

    MASTER_PORT=29500 NCCL_HOSTID=h0 python3 torch_goes_on.py RANK RANKS FILE survive LOSSES [LOSS]

The last rank is a new process for each loss, and is killed during a transfer. Work.is_completed() asks
ncclCommGetAsyncError, as PyTorch's watchdog does. Work.wait() then raises, because of TORCH_NCCL_BLOCKING_WAIT, and
aborts the communicator.
"""
import ctypes
import os
import random
import shutil
import signal
import sys
import time

os.environ.update(TORCH_NCCL_BLOCKING_WAIT="1", TORCH_NCCL_ASYNC_ERROR_HANDLING="0", TORCH_NCCL_ENABLE_MONITORING="0")
import torch
import torch.distributed as dist

UNTOLD_SECONDS = 15
rank, ranks, file, losses = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[5])
loss = int(sys.argv[6]) if len(sys.argv) > 6 else 0
dies = rank == ranks - 1
device = torch.device("cuda", rank % torch.cuda.device_count())
torch.cuda.set_device(device)


def join(store, size, number):
    dist.init_process_group("nccl", store=store, rank=number, world_size=size, device_id=device)


def leave(abort):
    """Ends the process group. Does not wait for other ranks if the group is aborted."""
    end = getattr(dist.distributed_c10d, "_abort_process_group", None)
    if abort and end:
        end()
    else:
        dist.destroy_process_group()


class Lost(Exception):
    """Loss of a rank: the time of the report, the duration of the communicator's abort, and the error text."""


def reduce(most):
    data = torch.full((1 << 20,), float(rank + 1), device=device)
    right = ranks * (ranks + 1) // 2
    for n in range(most):
        part = data.clone()
        begin, told = time.monotonic(), None
        try:
            work = dist.all_reduce(part, async_op=True)
            while not work.is_completed():
                if time.monotonic() - begin > UNTOLD_SECONDS:
                    print(f"rank {rank}: not told within {UNTOLD_SECONDS} s", flush=True)
                    os._exit(6)
                time.sleep(0.0005)
            told = time.monotonic()
            work.wait()
        except RuntimeError as error:
            told = told or time.monotonic()
            raise Lost(told, time.monotonic() - told, " ".join(str(error).split())) from error
        if n % 8 == 0 and not bool((part == right).all()):
            print(f"rank {rank}: wrong", flush=True)
            os._exit(5)


def die():
    parts = [torch.full((1 << 20,), float(rank + 1), device=device) for _ in range(20)]
    # Keeps all work objects until the process dies. The peer checks some of the sums, and they would be wrong if memory
    # of a released object were reused.
    works = [dist.all_reduce(part, async_op=True) for part in parts]
    time.sleep(random.random() / 200)
    with open(f"{file}.{loss}.killed", "w") as stamp:
        stamp.write(f"{time.monotonic():.6f}\n")
    os.kill(os.getpid(), signal.SIGKILL)
    del parts, works


def say_what_is_open(when):
    torch.cuda.empty_cache()
    time.sleep(0.5)  # threads that are not joined end in this time
    ctypes.CDLL(None).malloc_trim(0)  # free memory in malloc's arenas does not count
    shutil.copyfile("/proc/self/smaps", f"{file}.{when}.smaps")
    shutil.copyfile("/proc/net/tcp", f"{file}.{when}.tcp")
    with open(f"{file}.{when}.fd", "w") as names:
        names.writelines(f"{each.name} -> {os.readlink(each.path)}\n" for each in os.scandir("/proc/self/fd") if os.path.islink(each.path) and os.path.lexists(each.path))
    with open("/proc/self/statm") as statm:
        resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20
    unused, whole = torch.cuda.mem_get_info()
    print(f"open {when}: files {len(os.listdir('/proc/self/fd'))} threads {len(os.listdir('/proc/self/task'))} resident {resident} gpu {whole - unused >> 20}", flush=True)


if dies:  # a new process loads NCCL and its libraries before it joins
    join(dist.HashStore(), 1, 0)
    dist.destroy_process_group()
common = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=rank == 0, wait_for_workers=False)
while loss <= losses:
    if rank == 0:
        common.set(f"begun {loss}", "")
    else:
        common.wait([f"begun {loss}"])
    begin = time.monotonic()
    join(dist.PrefixStore(str(loss), common), ranks, rank)
    reduce(1)
    joined = time.monotonic() - begin
    try:
        reduce(200 if loss == losses else 30 if dies else 1 << 30)
        if dies and loss < losses:
            die()
        leave(abort=False)
    except Lost as lost:
        told, aborted, words = lost.args
        with open(f"{file}.{loss}.killed") as stamp:
            after = told - float(stamp.read())
        begin = time.monotonic()
        leave(abort=True)
        print(f"loss {loss}: joined in {joined:.3f} told after {after:.4f} by PyTorch ({words[:60]}) aborted in {aborted + time.monotonic() - begin:.3f}", flush=True)
        if loss == 2:
            say_what_is_open("early")
    loss += 1
if not dies:
    say_what_is_open("late")
print(f"right {losses + 1}", flush=True)
os._exit(0)  # the owner of TCPStore may wait for its clients
