"""Kills and stops ranks of running jobs, and reports the effect on the other ranks. kills.sh starts this program and
documents its settings.
"""
import argparse
import collections
import glob
import os
import queue
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

options = argparse.ArgumentParser()
for name in ("c", "torch", "plugin", "output"):
    options.add_argument("--" + name, default="")
for name, default in (("kills", 200), ("stops", 50), ("parallel", 4), ("seed", 0)):
    options.add_argument("--" + name, type=int, default=default)
for name, default in (("grace", 5.0), ("stop", 5.0), ("start", 120.0)):
    options.add_argument("--" + name, type=float, default=default)
options.add_argument("--ranks", default="2")
options.add_argument("--nets", default="shm socket")
options = options.parse_args()
seed = options.seed or random.randrange(1 << 30)
draw = random.Random(seed)
LIMIT = 2 + options.grace + 1  # one second more for a process to end

OF_PEER = re.compile(r"lost the peer pid (\d+) ")
IN_ERROR = re.compile(r"pid (\d+)")
OF_FILE = re.compile(r"/millrace-[0-9a-f]{16}-(\d+)-")


class Rank:
    """A process, and the lines of its output with their times."""

    def __init__(self, command, environment, log):
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        self.lines = []
        self.log = log
        self.ended = None
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with open(self.log, "w") as log:
            for line in self.process.stdout:
                self.lines.append((time.monotonic(), line.rstrip()))
                log.write(line)
                log.flush()
        self.process.wait()
        self.ended = time.monotonic()

    def said(self, text, since=0.0):
        return next(((at, line) for at, line in list(self.lines) if text in line and at >= since), None)

    def at(self):
        return max((int(line.split()[1]) for _, line in list(self.lines) if re.fullmatch(r"at \d+", line)), default=0)


class Job:
    def __init__(self, number, client, net, ranks):
        self.label = f"{number:04d}-{client}-{net}-{ranks}"
        self.client = client
        base = os.path.join(options.output, self.label)
        self.stop_file = base + ".stop"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.ranks = []
        for rank in range(ranks):
            environment = dict(os.environ, NCCL_HOSTID=f"{self.label}-{rank}", RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1",
                               MASTER_PORT=str(port), MILLRACE_LOSS_GRACE=f"{int(options.grace * 1000)}ms")
            environment.setdefault("NCCL_SOCKET_IFNAME", "lo")
            environment.pop("NCCL_DEBUG", None)
            if options.plugin:
                environment.update(NCCL_NET_PLUGIN=options.plugin, NCCL_NET="Millrace", MILLRACE_NET=net)
            else:
                environment.update(NCCL_NET="Socket")
            command = [options.c, str(rank), str(ranks), base + ".id", self.stop_file] if client == "c" else [sys.executable, options.torch, self.stop_file]
            self.ranks.append(Rank(command, environment, f"{base}.{rank}.log"))

    def await_all(self, what, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not stopping.is_set() and not all(what(rank) for rank in self.ranks):
            if any(rank.ended and not what(rank) for rank in self.ranks):
                break
            time.sleep(0.01)
        return all(what(rank) for rank in self.ranks)

    def close(self):
        for rank in self.ranks:
            rank.process.kill()
        for rank in self.ranks:
            rank.process.wait()


def kill(job, result):
    victim = draw.randrange(len(job.ranks))
    time.sleep(draw.uniform(0.05, 1.5))
    pid = job.ranks[victim].process.pid
    begin = time.monotonic()
    job.ranks[victim].process.kill()
    survivors = [rank for rank in job.ranks if rank.process.pid != pid]
    while time.monotonic() - begin < LIMIT and not all(rank.ended for rank in survivors):
        time.sleep(0.01)
    for rank in survivors:
        told = rank.said("lost the peer", begin) or rank.said("told: ", begin)
        got = rank.said("told: ", begin) or rank.said("raised the following async exception", begin)
        ends = rank.said("ends with status", begin)  # the driver can take seconds to release many contexts of one GPU
        named = [found.group(1) for _, line in list(rank.lines) for found in [OF_PEER.search(line)] if found]
        named += [found.group(1) for _, line in list(rank.lines) if "told: " in line for found in [IN_ERROR.search(line)] if found]
        result["survivors"].append(dict(
            job=job.label, rank=job.ranks.index(rank), victim=victim, told=told and told[0] - begin, ends=ends and ends[0] - begin,
            got=job.client == "torch" and got and got[0] - begin, ended=rank.ended and rank.ended - begin,
            status=rank.process.poll(), right=bool(named) and named[0] == str(pid), named=named))


def stop(job, result):
    victim = draw.choice(job.ranks)
    time.sleep(draw.uniform(0.05, 1.0))
    victim.process.send_signal(signal.SIGSTOP)
    time.sleep(options.stop)
    before = [rank.at() for rank in job.ranks]
    victim.process.send_signal(signal.SIGCONT)
    end = time.monotonic() + 60
    while time.monotonic() < end and not all(rank.at() > at for rank, at in zip(job.ranks, before)) and not any(rank.ended for rank in job.ranks):
        time.sleep(0.05)
    open(job.stop_file, "w").close()
    job.await_all(lambda rank: rank.ended, 60)
    told = [line for rank in job.ranks for _, line in rank.lines if "told: " in line or "millrace: " in line]
    result["stops"].append(dict(job=job.label, told=told, whole=all(rank.said("done ") for rank in job.ranks)))


stopping = threading.Event()  # set by SIGTERM; the results so far are printed


def work(trials, result):
    while not stopping.is_set():
        try:
            what, number, client, net, ranks = trials.get_nowait()
        except queue.Empty:
            return
        job = Job(number, client, net, ranks)
        try:
            if job.await_all(lambda rank: rank.said("ready"), options.start):
                what(job, result)
            elif not stopping.is_set():
                result["not started"].append(job.label)
        finally:
            job.close()


def shared():
    """Returns Millrace's files in /dev/shm whose processes have ended, except traces, which are kept for an hour."""
    files = {file: OF_FILE.search(file) for file in glob.glob("/dev/shm/millrace-*") if not file.endswith(".trace")}
    return {file for file, owner in files.items() if not owner or not os.path.exists("/proc/" + owner[1])}


def times(values):
    values = [value for value in values if value is not None]
    return f"{statistics.median(values):.2f} s (at most {max(values):.2f})" if values else "-"


clients = [client for client in ("c", "torch") if getattr(options, client)]
variants = [(client, net, int(ranks)) for client in clients for net in (options.nets.split() if options.plugin else ["socket"]) for ranks in options.ranks.split()]
result = collections.defaultdict(list)
left_before = shared()
trials = queue.Queue()
for what, count in ((kill, options.kills), (stop, options.stops)):
    for i in range(count):
        trials.put((what, trials.qsize(), *variants[i % len(variants)]))
begin = time.monotonic()
signal.signal(signal.SIGTERM, lambda *_: stopping.set())
workers = [threading.Thread(target=work, args=(trials, result)) for _ in range(options.parallel)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()

if stopping.is_set():
    print(f"ended by SIGTERM: {trials.qsize()} of {options.kills + options.stops} were not begun")
killed = len({each["job"] for each in result["survivors"]})
print(f"seed {seed}; {killed} kills, {len(result['stops'])} stops of {options.stop:g} s in {time.monotonic() - begin:.0f} s; grace {options.grace:g} s; logs: {options.output}")
bad = len(result["not started"])
if result["not started"]:
    print("did not start:", *result["not started"])
print(f"{'client':8}{'net':8}{'ranks':>6}{'survivors':>11}{'told':>6}{'ends':>6}{'ended':>7}{'neither':>9}{'right peer':>12}  told after                     ended after")
for client, net, ranks in variants:
    some = [each for each in result["survivors"] if each["job"].endswith(f"-{client}-{net}-{ranks}")]
    if not some:
        continue
    neither = [each for each in some if each["told"] is None and each["ended"] is None]
    # PyTorch ends a process that got NCCL's error. Before that, it waits and writes its debug information for over 5 s.
    late = [each for each in some if (each["ends"] or each["ended"] or each["got"] or LIMIT + 1) > LIMIT]
    print(f"{client:8}{net:8}{ranks:6}{len(some):11}{sum(each['told'] is not None for each in some):6}{sum(each['ends'] is not None for each in some):6}{sum(each['ended'] is not None for each in some):7}"
          f"{len(neither):9}{sum(each['right'] for each in some):12}  {times(each['told'] for each in some):30} {times(each['ended'] for each in some)}")
    for each in late + [each for each in some if options.plugin and not each["right"] and each not in late]:
        print("   ", each)
    bad += len(late)
disturbed = [each for each in result["stops"] if each["told"] or not each["whole"]]
print(f"stops: {len(result['stops'])}, told or not whole afterwards: {len(disturbed)}")
for each in disturbed:
    print("   ", each)
left = shared() - left_before
print(f"left in /dev/shm: {len(left)}", *sorted(left)[:8])
sys.exit(bool(bad or disturbed or left))
