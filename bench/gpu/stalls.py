"""A rank that stalls in PyTorch, for stalls.sh. The environment holds MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE.

    python3 stalls.py rank CASE      one rank; CASE is sleep, stop, kill or absent
    python3 stalls.py ras            the report of NCCL's RAS at port 28028, as `ncclras -f json` prints it

Rank 1 sleeps, stops itself, kills itself, or does not join the communicator: it is in the process group, but does not
call ncclCommInitRank, in which rank 0 waits. In the cases absent, sleep and stop the ranks continue, and check the sums.
"""
import os
import signal
import socket
import sys
import time

SECONDS = 25


def ras():
    """Prints the answer to a status request in JSON."""
    with socket.create_connection(("127.0.0.1", 28028), 5) as server:
        server.settimeout(15)
        lines = server.makefile("rw")
        for request in ("client protocol 2", "timeout 5", "set format json", "verbose status"):
            lines.write(request + "\n")
            lines.flush()
            if request != "verbose status":
                answer = lines.readline().strip()
                if answer.startswith("ERROR"):
                    print(f"{request}: {answer}", file=sys.stderr)
        print(lines.read())


def run(case):
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    data = torch.ones(1 << 20, device="cuda")
    if case != "absent":
        for _ in range(3):
            dist.all_reduce(data)
        torch.cuda.synchronize()
    if rank == 1:
        print("stalls", flush=True)
        if case in ("sleep", "absent"):
            time.sleep(SECONDS)
        else:
            os.kill(os.getpid(), signal.SIGSTOP if case == "stop" else signal.SIGKILL)
    data = torch.ones(1 << 20, device="cuda")
    dist.all_reduce(data)
    torch.cuda.synchronize()
    print("right" if bool((data == 2).all()) else "WRONG", flush=True)
    dist.destroy_process_group()


ras() if sys.argv[1] == "ras" else run(sys.argv[2])
