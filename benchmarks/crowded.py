"""What two programs at once cost each other where both use all cores: seconds of a thousand small
operations of torch, alone and two at a time, with threads that spin while they wait for each other
(what torch does) and as `import ludus` sets them (GOMP_SPINCOUNT).

python benchmarks/crowded.py        about three minutes on two cores; nothing else may run beside it
"""

import subprocess
import sys

SPINNING, LUDUS = "", "import ludus"
TIMED = """
import os, time, torch
torch.set_num_threads(len(os.sched_getaffinity(0)))
layer, x = torch.nn.Linear(64, 256), torch.randn(192 * 13, 64)  # a layer of the small strategy encoder in 192 matches

def operations(count):
    for _ in range(count):
        (torch.nn.functional.silu(layer(x)) + 1).softmax(-1)

with torch.no_grad():
    operations(20)
    start = time.perf_counter()
    operations(1000)
    print(time.perf_counter() - start)
"""


def seconds(first: str, at_once: int) -> float:
    """Of the slowest; the median of three trials. Each in a session of its own, as in two
    terminals."""
    command = [sys.executable, "-c", f"{first}\n{TIMED}"]
    found = []
    for _ in range(3):
        programs = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
            for _ in range(at_once)
        ]
        found.append(max(float(program.communicate()[0]) for program in programs))
    return sorted(found)[1]


def main() -> None:
    print("| programs at once | threads spin | as ludus sets them |\n| --- | --- | --- |")
    for at_once in (1, 2):
        print(
            f"| {at_once} | {seconds(SPINNING, at_once):.1f} s | {seconds(LUDUS, at_once):.1f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main()
