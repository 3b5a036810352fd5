"""A forwarder of TCP connections for cuts.sh that cuts all connections from time to time. cut_connect.c redirects
connections to it.

    python3 cuts.py --path SOCKET --address 127.0.0.2 --cuts 10 --seed 1

Cuts start after --after bytes have been forwarded. Each cut is of one of three kinds and lasts .1 to 3 seconds:

    reset   all connections are reset, and new connections too
    lost    nothing is forwarded; then all connections are reset, and data in flight is lost
    late    nothing is forwarded; then everything is

Prints a line for each cut. When its standard input ends, prints the number of cuts, and the number of bytes that were
forwarded, in total and since the last cut.
"""
import argparse
import os
import random
import socket
import struct
import sys
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("--path", required=True)
parser.add_argument("--address", required=True)
parser.add_argument("--cuts", type=int, required=True)
parser.add_argument("--after", type=int, default=20_000_000)
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()

flows = threading.Event()
flows.set()
refuses = False
lock = threading.Lock()
pairs = set()
forwarded = 0


def reset(pair):
    for each in pair:
        try:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            each.shutdown(socket.SHUT_RD)  # wakes the reading thread
            each.close()
        except OSError:
            pass


def carry(source, target, pair):
    global forwarded
    buffer = memoryview(bytearray(1 << 18))
    try:
        while True:
            count = source.recv_into(buffer)
            flows.wait()
            if count == 0:
                break
            target.sendall(buffer[:count])
            forwarded += count
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pairs.discard(pair)
        reset(pair)


def start(function, *arguments):
    threading.Thread(target=function, args=arguments, daemon=True).start()


def accept(listener, port):
    while True:
        near, _ = listener.accept()
        far = socket.socket()
        with lock:
            if refuses:
                reset((near, far))
                continue
            try:
                far.connect((options.address, port))
            except OSError:
                reset((near, far))
                continue
            pair = (near, far)
            pairs.add(pair)
        for each in pair:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start(carry, near, far, pair)
        start(carry, far, near, pair)


def answer(asked):
    ports = {}
    while True:
        asking, _ = asked.accept()
        with asking:
            port = int(asking.recv(16))
            if port not in ports:
                listener = socket.create_server((options.address, 0), backlog=128)
                ports[port] = listener.getsockname()[1]
                start(accept, listener, port)
            asking.sendall(b"%d\n" % ports[port])


def reset_all():
    with lock:
        count = len(pairs)
        for pair in list(pairs):
            reset(pair)
        pairs.clear()
        return count


made = 0
at_last_cut = 0


def cut_all():
    global refuses, made, at_last_cut
    draw = random.Random(options.seed)
    while forwarded < options.after:
        time.sleep(0.01)
    while made < options.cuts:
        before = forwarded
        time.sleep(0.3 + 1.5 * draw.random())
        while forwarded == before:
            time.sleep(0.01)
        kind = ("reset", "lost", "late")[made % 3]
        seconds = 0.1 + 2.9 * draw.random() ** 2
        refuses = kind == "reset"
        if not refuses:
            flows.clear()
        count = reset_all() if refuses else len(pairs)
        time.sleep(seconds)
        if kind == "lost":
            reset_all()
        refuses = False
        flows.set()
        made += 1
        at_last_cut = forwarded
        print(f"cut {made}: {kind}, {count} connections, {seconds:.2f} s", flush=True)


if os.path.exists(options.path):
    os.unlink(options.path)
asked = socket.socket(socket.AF_UNIX)
asked.bind(options.path)
asked.listen(64)
start(answer, asked)
start(cut_all)
print("ready", flush=True)
sys.stdin.read()
print(f"{made} cuts, {forwarded} bytes, {forwarded - at_last_cut} since the last", flush=True)
