"""Matrix products of 8192 x 8192 bfloat16 values, one behind the other, while another program's log is between two lines. Started by gemm.sh.

    gemm.py LOG FIRST LAST      prints the median of TFLOP/s over windows of 50 ms that begin when LOG has a line with FIRST and end when it has one with
                                LAST, or over 2 s if LOG is "-"
"""
import statistics
import sys
import time

import torch

N = 8192
log, first, last = sys.argv[1:]


def has(text):
    try:
        return text in open(log).read()
    except FileNotFoundError:
        return False


a, b = (torch.randn(N, N, device="cuda", dtype=torch.bfloat16) for _ in range(2))
out = torch.empty_like(a)
windows = []


def window():
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    products = 32
    for _ in range(products):
        torch.matmul(a, b, out=out)
    end.record()
    end.synchronize()
    return products * 2 * N**3 / (begin.elapsed_time(end) * 1e9)


for _ in range(10):
    window()
start = time.monotonic()
while log != "-" and not has(first) and time.monotonic() - start < 60:
    window()
start = time.monotonic()
while time.monotonic() - start < (2 if log == "-" else 60) and (log == "-" or not has(last)):
    windows.append(window())
print(f"{statistics.median(windows):.0f} TFLOP/s in {len(windows)} windows" if windows else "nothing was measured")
