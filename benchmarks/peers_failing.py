"""What tools do with a failed call, an unreadable reply and a score outside the scale: the figures of docs/peers.md.

Each tool has an environment of its own. The judge is the block of the page; one server on this machine answers all.

    python -m benchmarks.peers_failing install --folder /tmp/peers [--only mlflow]
    python -m benchmarks.peers_failing run     --folder /tmp/peers [--only mlflow]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from judgekit.testing import FaultServer, Reply, Request, chat_reply, server_error

ROOT: Final = Path(__file__).resolve().parent.parent
REQUIREMENTS: Final[Mapping[str, list[str]]] = {
    "deepeval": ["deepeval==4.3.1", "openai==3.57.0"],
    "mlflow": ["mlflow==3.17.2", "openai==3.57.0", "litellm==1.110.2"],
    "inspect": ["inspect-ai==0.3.285", "openai==3.57.0"],
    "promptfoo": ["promptfoo@0.121.20"],
    "judgekit": [],
}
HEADINGS: Final = {"deepeval": "DeepEval", "mlflow": "MLflow", "inspect": "Inspect", "promptfoo": "promptfoo"}
ANSWERS: Final = [f"Dear customer, it is on its way. (answer-{number})" for number in range(1, 6)]
OUTSIDE, FAILING, PROSE = 2, 3, 5
"""Which answers meet which fault."""
SOUND: Final[Mapping[str, tuple[str, str]]] = {
    "deepeval": ('{"score": 8, "reason": "polite"}', '{"score": 75, "reason": "polite"}'),
    "mlflow": ('{"result": 4, "rationale": "polite"}', '{"result": 7, "rationale": "polite"}'),
    "promptfoo": ('{"reason": "polite", "pass": true, "score": 4}', '{"reason": "polite", "pass": true, "score": 7}'),
    "inspect": ("It is polite.\n\nGRADE: C", "It is polite.\n\nGRADE: A"),
    "judgekit": ('{"reasoning": "polite", "score": 4}', '{"reasoning": "polite", "score": 7}'),
}
"""A good reply in the form of each tool, and one outside its scale."""


def answers_of(tool: str, asked: Counter[int]) -> Callable[[Request], Reply]:
    """The server's part; counts the requests about each answer."""

    def answer(request: Request) -> Reply:
        number = next((number for number in range(1, 6) if f"answer-{number}" in request.text), 0)
        asked[number] += 1
        if number == FAILING:
            return server_error(500)
        if number == PROSE:
            return chat_reply("It is hard to say. On the whole the tone seems fine to me.")
        if tool == "deepeval" and not number:
            return chat_reply('{"steps": ["Is it polite?", "Is it professional?"]}')
        return chat_reply(SOUND[tool][number == OUTSIDE])

    return answer


def block_of(page: str, heading: str) -> str:
    """The code below a heading of the page."""
    section = page.partition(f"\n## {heading}\n")[2]
    return str(re.findall(r"^```\w+\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[0])


def install(folder: Path, tool: str) -> None:
    """The environment of one tool."""
    place = folder / tool
    place.mkdir(parents=True, exist_ok=True)
    if tool == "promptfoo":
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", *REQUIREMENTS[tool]], cwd=place, check=True)
    elif tool != "judgekit":
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([str(place / "bin" / "pip"), "install", "--quiet", *REQUIREMENTS[tool]], check=True)


def environment(base_url: str, home: Path) -> dict[str, str]:
    """What a tool sees of this machine: no keys, no proxies, nothing that reports home."""
    quiet = {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    quiet |= {"DO_NOT_TRACK": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_PROXY": "*"}
    address = {"OPENAI_BASE_URL": base_url, "OPENAI_API_BASE": base_url, "OPENAI_API_KEY": "none"}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT), **quiet, **address}


def promptfoo(place: Path, home: Path, block: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """`promptfoo eval`, whose config is the block of the page with prompts and tests."""
    tests = json.dumps([{"vars": {"answer": answer}} for answer in ANSWERS])
    config = f'{block}prompts: ["{{{{answer}}}}"]\nproviders: [echo]\ntests: {tests}\n'
    (home / "promptfooconfig.yaml").write_text(config)
    program = place / "node_modules" / ".bin" / "promptfoo"
    command = [str(program), "eval", "--no-cache", "-o", "out.json"]
    subprocess.run(command, cwd=home, env=dict(variables), capture_output=True, check=False, timeout=600)
    out = json.loads((home / "out.json").read_text())["results"]
    rows = {row["vars"]["answer"]: row for row in out["results"]}
    cases = [[rows[answer]["score"], rows[answer]["success"], rows[answer].get("error")] for answer in ANSWERS]
    return {"cases": cases, "summary": str({name: out["stats"][name] for name in ("successes", "failures", "errors")})}


def judgekit(home: Path, page: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """`judgekit run` with the judge of the page."""
    model = {"model": "gpt-4.1-2025-04-14", "base_url": variables["OPENAI_BASE_URL"]}
    config = {"name": "tone", "cases": "c.jsonl", "system": {"name": "recorded", "path": "o.jsonl"}, "metrics": []}
    config |= {"models": {"judge": model}, **json.loads(block_of(page, "judgekit"))}
    (home / "config.json").write_text(json.dumps(config))
    rows = [{"id": str(number), "question": "Where is my order?"} for number in range(5)]
    (home / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    outputs = [{"case_id": str(number), "answer": answer} for number, answer in enumerate(ANSWERS)]
    (home / "o.jsonl").write_text("".join(json.dumps(row) + "\n" for row in outputs))
    command = [sys.executable, "-m", "judgekit", "run", "config.json", "--run-id", "r", "--json"]
    done = subprocess.run(command, cwd=home, env=dict(variables), capture_output=True, text=True, check=True)
    lines = (home / "results" / "r" / "judgments.jsonl").read_text().splitlines()
    found = {record["case_id"]: record for record in map(json.loads, lines)}
    cases = []
    for number in range(5):
        verdict, failure = found[str(number)]["verdict"], found[str(number)]["failure"]
        cases.append([verdict and verdict["score"], None, failure and f"{failure['kind']}: {failure['message']}"])
    figure = json.loads(done.stdout)["metrics"]["overall"]["tone"]
    return {"cases": cases, "summary": str({name: figure[name] for name in ("value", "n", "n_error", "worst", "best")})}


def run(folder: Path, tool: str) -> None:
    """Every way of one tool, and what became of each answer."""
    page = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    for how in ("default", "lenient") if tool in ("deepeval", "inspect") else ("default",):
        asked: Counter[int] = Counter()
        with tempfile.TemporaryDirectory() as scratch, FaultServer(answers_of(tool, asked)) as server:
            home, variables = Path(scratch), environment(server.base_url, Path(scratch))
            if tool == "judgekit":
                outcome = judgekit(home, page, variables)
            elif tool == "promptfoo":
                outcome = promptfoo(folder / tool, home, block_of(page, HEADINGS[tool]), variables)
            else:
                (home / "judge.py").write_text(block_of(page, HEADINGS[tool]))
                command = [str(folder / tool / "bin" / "python"), "-m", "benchmarks.peers.failing", tool, how, *ANSWERS]
                done = subprocess.run(command, cwd=home, env=variables, capture_output=True, text=True, check=False)
                if done.returncode:
                    print(f"{tool}: {done.stderr.strip().splitlines()[-1]}")
                    continue
                outcome = json.loads(done.stdout.splitlines()[-1])
        print(f"{tool} ({how}): {outcome['summary']}; requests {dict(sorted(asked.items()))}")
        for number, (value, passed, error) in enumerate(outcome["cases"], start=1):
            print(f"  answer {number}: value {value}, passed {passed}, {(error or 'no error')[:120]!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["install", "run"])
    parser.add_argument("--folder", type=Path, required=True, help="of the environments")
    parser.add_argument("--only", action="append", choices=list(REQUIREMENTS), help="may be repeated")
    options = parser.parse_args()
    for tool in options.only or REQUIREMENTS:
        (install if options.what == "install" else run)(options.folder.resolve(), tool)


if __name__ == "__main__":
    main()
