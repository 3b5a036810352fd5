"""Tests programs that continue after a loss. Records the report of the loss, its source and its delay, and the
resources that remain in the processes. kills.sh starts this program and documents its settings.
"""
import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter

options = argparse.ArgumentParser()
for name in ("c", "torch", "plugin", "output"):
    options.add_argument("--" + name, default="")
options.add_argument("--losses", type=int, default=20)
options = options.parse_args()
LOST = re.compile(r"loss \d+: joined in (\S+) told after (\S+) by (.+?) \(.*\) aborted in (\S+)")
OPEN = re.compile(r"open (early|late): files (\d+) threads (\d+) resident (\d+) gpu (\d+)")
# Deadlines in seconds. They are so short that an aborted communicator which remains would be reported, or would end the
# process, before the program ends.
GRACE, STALL = 3, 3
SHRUNK_SECONDS = 10
SIDES = {"C++ proxy": None}
if options.plugin:
    SIDES.update({"GPU slots": ("shm", "1"), "host slots": ("shm", "0"), "TCP": ("socket", "0")})
OPEN_MAY_GROW = {"files": 2, "threads": 4, "resident": 96, "gpu": 32}  # the JVM starts and ends compiler threads


ARENA = 64 << 20  # alignment of glibc's arenas in bytes, except for the first arena, which is [heap]


def sort_of(name, address, permissions):
    """Returns the sort of a mapping."""
    if name.startswith("/dev/nvidia"):
        return "devices"
    if name.startswith(("/dev/shm/", "/memfd:", "/dev/zero")):
        return "shared memory"
    if name.startswith("/"):
        return "files"
    if name == "[heap]" or not name and address % ARENA == 0 and "w" in permissions:
        return "malloc"
    if not name and address < 1 << 32:
        return "Java heap"  # a small heap has addresses of 32 bits
    return "code" if "x" in permissions else "other anonymous"


def kind(name):
    return re.sub(r"[0-9a-f]{5,}|\d+", "#", name)


def sockets(file):
    """Returns the state of each TCP socket by inode, from a copy of /proc/net/tcp."""
    states = {"01": "connected", "08": "left by the peer", "0A": "listens"}
    with open(file, errors="replace") as table:
        rows = [line.split() for line in list(table)[1:]]
    return {row[9]: f"TCP, {states.get(row[3], 'state ' + row[3])}" for row in rows if len(row) > 9}


def open_of(file, when):
    """Returns the resident MiB of each kind and of each sort of mapping, and the number of files of each kind."""
    memory, sorts, files = Counter(), Counter(), Counter()
    if os.path.exists(f"{file}.{when}.smaps"):
        with open(f"{file}.{when}.smaps", errors="replace") as maps:
            for line in maps:
                head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+\s*(.*)", line)
                if head:
                    mib = int(head[2], 16) - int(head[1], 16) >> 20
                    sort = sort_of(head[4], int(head[1], 16), head[3])
                    name = kind(head[4]) if head[4] else f"{head[3]} of {1 << mib.bit_length()} MiB at most"
                elif line.startswith("Rss:"):
                    memory[name] += int(line.split()[1]) / 1024
                    sorts[sort] += int(line.split()[1]) / 1024
        with open(f"{file}.{when}.fd", errors="replace") as links:
            names = [line.split(" -> ")[1].strip() for line in links if " -> " in line]
        tcp = sockets(f"{file}.{when}.tcp")
        files.update(f"socket, {tcp.get(name[8:-1], 'not TCP, or closed')}" if name.startswith("socket:[") else kind(name) for name in names)
    return memory, sorts, files


class Job:
    """The ranks of one program over one network."""

    def __init__(self, client, side, way, ranks, amount):
        self.client, self.side, self.way, self.ranks, self.amount = client, side, way, ranks, amount
        self.label = f"{client}-{way}-{side.replace(' ', '-')}"
        self.file = os.path.join(tempfile.mkdtemp(), "id")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.status, self.text = [], ""

    def start(self, rank, loss=None):
        environment = dict(os.environ, NCCL_HOSTID=f"{self.label}-{rank}", RANK=str(rank), WORLD_SIZE=str(self.ranks), MASTER_ADDR="127.0.0.1",
                           MASTER_PORT=str(self.port), MILLRACE_LOSS_GRACE=f"{GRACE}s", MILLRACE_STALL_REPORT=f"{STALL}s")
        environment.setdefault("NCCL_SOCKET_IFNAME", "lo")
        environment.pop("NCCL_DEBUG", None)
        if SIDES[self.side]:
            net, slots = SIDES[self.side]
            environment.update(NCCL_NET_PLUGIN=options.plugin, NCCL_NET="Millrace", MILLRACE_NET=net, MILLRACE_DEVICE_SLOTS=slots)
        else:
            environment.update(NCCL_NET="Socket")
        program = [options.c] if self.client == "c" else [sys.executable, options.torch]
        command = program + [str(rank), str(self.ranks), self.file, self.way, str(self.amount)] + ([] if loss is None else [str(loss)])
        with open(self.log(rank), "a") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)

    def log(self, rank):
        return os.path.join(options.output, f"{self.label}.{rank}.log")

    def run(self):
        for rank in range(self.ranks):
            open(self.log(rank), "w").close()
        survives = self.way == "survive"
        survivors = [self.start(rank) for rank in range(self.ranks - 1)]
        victims = [self.start(self.ranks - 1, loss if survives else None) for loss in range(2 if survives else 1)]
        deadline = time.monotonic() + 60 + (8 * self.amount if survives else SHRUNK_SECONDS)
        last = 0
        while any(process.poll() is None for process in survivors) and time.monotonic() < deadline:
            # the next victim is started early, and waits until the previous one is dead
            if survives and victims[last].poll() is not None and last < self.amount:
                last += 1
                if last < self.amount:
                    victims.append(self.start(self.ranks - 1, last + 1))
            time.sleep(0.01)
        time.sleep(0.5)
        self.status = [process.poll() for process in survivors]
        for process in survivors + victims:
            process.kill()
            process.wait()
        for rank in range(self.ranks - 1):
            with open(self.log(rank), errors="replace") as log:
                self.text += log.read()

    def grown(self):
        """Returns the growth of memory and of open files from early to late, by kind."""
        (memory, _, files), (late_memory, _, late_files) = open_of(self.file, "early"), open_of(self.file, "late")
        return ([f"{name}: {late_memory[name] - memory[name]:+.0f} MiB" for name in late_memory if late_memory[name] - memory[name] >= 4] +
                [f"{name}: {count - files[name]:+d} files" for name, count in late_files.items() if count > files[name]])

    def resident(self):
        """Returns the resident memory of each sort, early and late."""
        early, late = open_of(self.file, "early")[1], open_of(self.file, "late")[1]
        return [f"{sort} {early[sort]:.0f} to {late[sort]:.0f}" for sort in sorted(late, key=late.get, reverse=True) if max(early[sort], late[sort]) >= 1]

    def left(self):
        found = {when: dict(zip(OPEN_MAY_GROW, map(int, counts))) for when, *counts in OPEN.findall(self.text)}
        return {what: found["late"][what] - found["early"][what] for what in OPEN_MAY_GROW} if len(found) == 2 else {}

    def row(self, compared):
        """Returns whether the result is good, and the row to print.

        A good job leaves no more resources than the compared job with NCCL's own proxy.
        """
        lost = [(float(told), by, float(aborted)) for _, told, by, aborted in LOST.findall(self.text)]
        expected = (self.amount if self.way == "survive" else 1) * (self.ranks - 1)
        stalls = self.text.count("nothing moves.")
        right = len(re.findall(r"^right", self.text, re.MULTILINE)) == self.ranks - 1 and "wrong" not in self.text
        left, own = self.left(), compared.left()
        good = right and not stalls and len(lost) == expected and all(status == 0 for status in self.status)
        alone = self.client == "c"
        good = good and all(left[what] <= OPEN_MAY_GROW[what] + max(0, own.get(what, 0)) or what == "gpu" and not alone for what in left) and (self.way == "shrink" or bool(left))
        good = good and max(told for told, _, _ in lost) <= 1
        told = [1000 * each for each, _, _ in lost]
        return good, [
            self.client, self.way, self.side, f"{len(lost)} of {expected}",
            f"{statistics.median(told):.1f} / {max(told):.1f} ms" if told else "-", ", ".join(sorted({by for _, by, _ in lost})) or "-",
            f"{statistics.median(each for _, _, each in lost):.2f} s" if lost else "-", "yes" if right else "NO",
            " ".join(f"{left[what]:+d}" for what in left) or "-", str(stalls), " ".join(map(str, self.status))]


def run(jobs, together):
    """Runs some jobs at once. Jobs that measure the device's memory run alone on the device."""
    for begin in range(0, len(jobs), together):
        threads = [threading.Thread(target=job.run) for job in jobs[begin:begin + together]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return jobs


begin = time.monotonic()
done = []
if options.c:
    done += run([Job("c", side, "survive", 2, options.losses) for side in SIDES], 1)
    done += run([Job("c", side, "shrink", 3, SHRUNK_SECONDS) for side in SIDES], len(SIDES))
if options.torch:
    done += run([Job("torch", side, "survive", 2, options.losses) for side in SIDES], len(SIDES))
titles = ["client", "way", "side", "told", "after, median / most", "by", "abort", "right", "left: files threads MiB GPU-MiB", "stalls told", "status"]
rows = [job.row(next(other for other in done if (other.client, other.way) == (job.client, job.way) and not SIDES[other.side])) for job in done]
widths = [max(len(row[i]) for row in [titles] + [cells for _, cells in rows]) for i in range(len(titles))]
print(f"programs that go on: {options.losses} losses each, {time.monotonic() - begin:.0f} s; logs: {options.output}")
for cells in [titles] + [cells for _, cells in rows]:
    print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())
for job in done:
    if job.resident():
        print(f"resident in {job.label}, MiB after 3 losses and at the end:", ", ".join(job.resident()))
    if job.grown():
        print(f"grown in {job.label}:", "; ".join(job.grown()))
# NCCL's own proxy refuses to shrink after an error, so jobs with that proxy do not count.
bad = [job.label for job, (good, _) in zip(done, rows) if not good and SIDES[job.side]]
if bad:
    print("not as it should be:", *bad)
sys.exit(bool(bad))
