"""A whole evaluation, from files to a written result: `judgekit run` beside other tools with default settings.

One groundedness judgment of each answer, by a server on this machine that answers at once. CPU, time and memory are
those of whole processes, with start-up and all files. The environments are those of `benchmarks.peers_judging install`.

    python -m benchmarks.peers_end_to_end --peers /tmp/peers --folder /tmp/whole [--items 300]
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.peers.driving import QUESTION
from benchmarks.peers_judging import N_WARM, PEERS, PeerServer, environment, interpreter, write_inputs
from benchmarks.scale import Row, judgekit, measured, print_table

DEFAULTS = {"deepeval": "evaluate", "inspect": "eval", "pydantic_evals": "evaluate"}
"""How each tool is driven: with its default settings."""


def peers(folder: Path, environments: Path, n_items: int) -> list[Row]:
    """One judgment of each recorded answer by a model that answers at once: whole processes, files read and written."""
    folder.mkdir(parents=True)
    inputs = folder / "inputs.jsonl"
    rows = []
    with PeerServer() as server:
        write_inputs(inputs, n_items - N_WARM)
        model = {"model": "judge-2025-01-01", "base_url": server.base_url, "max_concurrency": 64}
        (folder / "config.json").write_text(json.dumps(config_of(inputs, model)))
        rows.append(Row("judgekit run", judgekit(folder, "run", "config.json", "--run-id", "peers")))
        for peer in PEERS:
            python = interpreter(environments, peer)
            if peer.name in DEFAULTS and python.exists():
                home = folder / peer.name
                home.mkdir()
                case = DEFAULTS[peer.name]
                command = [str(python), "-m", f"benchmarks.peers.{peer.name}_driver", "--case", case, "--warm", "0"]
                command += ["--base-url", server.base_url, "--inputs", str(inputs), "--in-flight", "64"]
                rows.append(Row(peer.requirements[0], measured(command, home, environment(peer, home))))
    return rows


def config_of(inputs: Path, model: Mapping[str, Any]) -> dict[str, Any]:
    """A config for the items that the drivers of the other tools read, with its data beside it."""
    items = [json.loads(line) for line in inputs.read_text(encoding="utf-8").splitlines()]
    cases = [{"id": item["name"], "question": QUESTION} for item in items]
    outputs = [
        {"case_id": item["name"], "answer": item["answer"], "retrieved": [{"text": text} for text in item["passages"]]}
        for item in items
    ]
    for name, rows in (("cases", cases), ("outputs", outputs)):
        (inputs.parent / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {
        "name": "peers",
        "cases": "cases.jsonl",
        "system": {"name": "recorded", "path": "outputs.jsonl"},
        "judges": [{"name": "groundedness", "model": "m"}],
        "models": {"m": model},
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, required=True, help="of the environments")
    parser.add_argument("--folder", type=Path, required=True, help="new; inputs and results are left there")
    parser.add_argument("--items", type=int, default=300)
    options = parser.parse_args()
    print_table(peers(options.folder.resolve(), options.peers.resolve(), options.items), options.items)


if __name__ == "__main__":
    main()
