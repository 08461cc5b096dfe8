"""What asking a live system costs beside the system itself: CPU a case, next to other tools' task calls.

The peers have the environments of `benchmarks.peers_judging install`. Compare the ratios, not the times.

    python -m benchmarks.peers_judging install --folder /tmp/peers --only pydantic_evals --only inspect
    python -m benchmarks.live --folder /tmp/peers [--cases 1000] [--repeats 3]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.peers_judging import PEERS, ROOT, environment, interpreter

NAMES = ("pydantic_evals", "inspect")


def measured(tool: str, python: Path, n_cases: int, sealed: dict[str, str] | None) -> dict[str, Any]:
    """One measurement, in a process of its own."""
    command = [str(python), "-m", "benchmarks.peers.live_driver", tool, "--cases", str(n_cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=sealed)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="of the environments")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3, help="rounds; the table shows medians")
    given = parser.parse_args()
    peers = [peer for peer in PEERS if peer.name in NAMES and interpreter(given.folder.resolve(), peer).exists()]
    rows: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(given.repeats):
            rows.setdefault("judgekit", []).append(measured("judgekit", Path(sys.executable), given.cases, None))
            for peer in peers:
                python = interpreter(given.folder.resolve(), peer)
                sealed = environment(peer, Path(home))
                rows.setdefault(peer.name, []).append(measured(peer.name, python, given.cases, sealed))
    own = [row["cpu_ms_per_case"] for row in rows["judgekit"]]
    print("| tool | version | CPU ms a case (range) | x judgekit |")
    print("| --- | --- | --- | --- |")
    for tool, found in rows.items():
        used = [row["cpu_ms_per_case"] for row in found]
        ratio = statistics.median(mine / theirs for mine, theirs in zip(used, own, strict=True))
        spread = f"{statistics.median(used):.3f} ({min(used):.3f} to {max(used):.3f})"
        print(f"| {tool} | {found[0]['version'] or 'this checkout'} | {spread} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
