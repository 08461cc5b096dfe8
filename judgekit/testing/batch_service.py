"""The batch endpoint of the fault server: files, batches made of them, and what may go wrong with these."""

import hashlib
import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs

from judgekit.testing.exchange import Fault, Reply, Request
from judgekit.testing.replies import error_reply

_PATH: Final = re.compile(r"(?:/v1)?/(files|batches)(?:/([^/]+))?(?:/(content|cancel))?")
_OPEN: Final = ("validating", "in_progress", "finalizing", "cancelling")
_MOST_REQUESTS: Final = 50_000
_MOST_BYTES: Final = 200 * 10**6

LineAnswer = Callable[[bytes], tuple[int, Any]]
"""Status and body of the reply to the body of one line."""


@dataclass
class BatchFaults:
    """What goes wrong with batches; may be changed while the server runs. Shares are drawn from the custom id."""

    is_there: bool = True
    """False: the server has no batch endpoint."""
    missing: float = 0.0
    """Share of the requests that are in neither file, although the batch is completed."""
    expired: float = 0.0
    """Share of the requests that were not answered in time; such a batch ends as `expired`."""
    failed: float = 0.0
    """Share of the requests that ended in a server error, in the error file."""
    twice: float = 0.0
    """Share of the replies that stand in the output file twice."""
    n_foreign: int = 0
    """Replies with ids that the batch does not have."""
    is_invalid: bool = False
    """Every batch fails validation."""
    is_cut: bool = False
    """The last line of the output file is cut off."""
    n_without_room: int = 0
    """So many batches fail, since too much of the model waits already."""
    seconds: float = 0.0
    """How long a batch takes."""
    lists: bool = True
    """False: there is no list of batches."""
    keeps_metadata: bool = True
    """False: a batch is given back without what was attached to it."""
    lost: dict[str, int] = field(default_factory=dict)
    """By step (`upload`, `create`, `retrieve`, `list`, `content`, `cancel`): so many requests are carried out, and the
    connection is reset in place of a reply."""
    hung: dict[str, int] = field(default_factory=dict)
    """By step: so many requests are carried out and never answered."""
    refused: dict[str, int] = field(default_factory=dict)
    """By step: so many requests get a 503, and nothing is done."""


@dataclass
class _Batch:
    """One batch, with the lines that it was made of."""

    fields: dict[str, Any]
    lines: list[dict[str, Any]]
    ends_at: float


class BatchService:
    """Keeps files and batches in memory; a batch is carried out when it is looked at after its time."""

    def __init__(self, answer_line: LineAnswer) -> None:
        self.faults = BatchFaults()
        self.files: dict[str, bytes] = {}
        """Contents by file id."""
        self.n_created = 0
        """Batches that were made, which is what a client pays for."""
        self.calls: Counter[str] = Counter()
        """Requests by step."""
        self.asked: Counter[str] = Counter()
        """How often each custom id was submitted."""
        self._names: dict[str, str] = {}
        self._batches: dict[str, _Batch] = {}
        self._answer_line = answer_line

    def answer(self, request: Request) -> Reply | None:
        """The reply to a request for files or batches; None if it is for something else."""
        match = _PATH.fullmatch(request.path)
        if match is None or not self.faults.is_there:
            return None
        step = _step(request.method, *match.groups())
        self.calls[step] += 1
        if self._takes(self.faults.refused, step):
            return error_reply(503, "The server is overloaded.")
        reply = self._do(step, match[2] or "", request)
        if self._takes(self.faults.lost, step):
            return Reply(fault=Fault("reset"))
        return Reply(fault=Fault("hang")) if self._takes(self.faults.hung, step) else reply

    @property
    def batches(self) -> list[dict[str, Any]]:
        """All batches as they are now, in order of creation."""
        return [self._shown(batch) for batch in self._batches.values()]

    def forget_batches(self) -> None:
        """From now on no batch is known that was made before."""
        self._batches.clear()

    @staticmethod
    def _takes(counts: dict[str, int], step: str) -> bool:
        if not counts.get(step):
            return False
        counts[step] -= 1
        return True

    def _do(self, step: str, name: str, request: Request) -> Reply:
        match step:
            case "upload":
                return self._upload(request)
            case "create":
                return self._create(request)
            case "list" if self.faults.lists:
                return self._list(request)
            case "content" if name in self.files:
                return Reply(body=self.files[name], headers={"content-type": "application/jsonl"})
            case "file" if name in self.files:
                return Reply(body=self._file(name))
            case "delete" if name in self.files:
                del self.files[name]
                return Reply(body={"id": name, "object": "file", "deleted": True})
            case "retrieve" | "cancel" if name in self._batches:
                batch = self._batches[name]
                if step == "cancel" and self._shown(batch)["status"] in _OPEN:
                    self._carry_out(batch, "cancelled", 0)
                return Reply(body=self._shown(batch))
        return error_reply(404, f"No such resource: {request.method} {request.path}", code="not_found")

    def _file(self, name: str) -> dict[str, Any]:
        about = {"id": name, "object": "file", "bytes": len(self.files[name]), "created_at": int(time.time())}
        return {**about, "filename": self._names.get(name, name), "purpose": "batch", "status": "processed"}

    def _upload(self, request: Request) -> Reply:
        parts = dict(_parts(request))
        if parts.get("purpose", ("", b""))[1] != b"batch" or "file" not in parts:
            return error_reply(400, "A file and the purpose `batch` are required.", code="invalid_request_error")
        filename, content = parts["file"]
        if len(content) > _MOST_BYTES:
            return error_reply(413, "The file is larger than 200 MB.")
        name = f"file-{len(self.files) + 1:04}-{hashlib.sha256(content).hexdigest()[:8]}"
        self.files[name] = content
        self._names[name] = filename
        return Reply(body=self._file(name))

    def _create(self, request: Request) -> Reply:
        file_id = str(request.get("input_file_id"))
        if file_id not in self.files:
            return error_reply(400, f"No such file: {file_id}", code="invalid_request_error")
        self.n_created += 1
        fields = {
            "id": f"batch_{self.n_created:04}",
            "object": "batch",
            "endpoint": request.get("endpoint"),
            "errors": None,
            "input_file_id": file_id,
            "completion_window": request.get("completion_window"),
            "status": "validating",
            "output_file_id": None,
            "error_file_id": None,
            "created_at": int(time.time()),
            "metadata": request.get("metadata") if self.faults.keeps_metadata else None,
        }
        lines, errors = _checked(self.files[file_id], str(request.get("endpoint")))
        if self.faults.is_invalid:
            errors = [{"code": "invalid_json_line", "message": "This line is not parseable as valid JSON.", "line": 1}]
        if self.faults.n_without_room:
            self.faults.n_without_room -= 1
            errors = [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached.", "line": None}]
        if errors:
            fields |= {"status": "failed", "errors": {"object": "list", "data": errors}}
            lines = []
        fields["request_counts"] = {"total": len(lines), "completed": 0, "failed": 0}
        self.asked.update(line["custom_id"] for line in lines)
        self._batches[fields["id"]] = _Batch(fields, lines, time.monotonic() + self.faults.seconds)
        return Reply(body=dict(fields))

    def _list(self, request: Request) -> Reply:
        """Newest first, a page at a time."""
        asked = parse_qs(request.query)
        found = self.batches[::-1]
        after = asked.get("after", [""])[0]
        if after:
            names = [batch["id"] for batch in found]
            found = found[names.index(after) + 1 :] if after in names else []
        n = int(asked.get("limit", ["20"])[0])
        page = found[:n]
        last = page[-1]["id"] if page else None
        return Reply(body={"object": "list", "data": page, "last_id": last, "has_more": len(found) > n})

    def _shown(self, batch: _Batch) -> dict[str, Any]:
        fields = batch.fields
        if fields["status"] in _OPEN:
            if time.monotonic() >= batch.ends_at:
                self._carry_out(batch, "expired" if self.faults.expired else "completed", len(batch.lines))
            else:
                fields["status"] = "in_progress"
        return dict(fields)

    def _carry_out(self, batch: _Batch, status: str, n: int) -> None:
        """Answer the first so many lines, and write the two files."""
        output: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        for line in batch.lines[:n]:
            self._answered(line, output, errors)
        for number in range(self.faults.n_foreign if n else 0):
            output.append({**output[0], "custom_id": f"somebody-elses-{number}"} if output else {"custom_id": "?"})
        output.sort(key=lambda item: _draw(item["custom_id"], "order"))  # in no order that a client could rely on
        for name, lines in (("output", output), ("error", errors)):
            if lines:
                file_id = f"file-{batch.fields['id']}-{name}"
                content = "".join(json.dumps(item) + "\n" for item in lines).encode()
                self.files[file_id] = content[:-20] if name == "output" and self.faults.is_cut else content
                batch.fields[f"{name}_file_id"] = file_id
        counts = {"total": len(batch.lines), "completed": len(output), "failed": len(errors)}
        batch.fields |= {"status": status, "request_counts": counts, f"{status}_at": int(time.time())}

    def _answered(self, line: dict[str, Any], output: list[dict[str, Any]], errors: list[dict[str, Any]]) -> None:
        """What becomes of one line."""
        name, faults = line["custom_id"], self.faults
        if _draw(name, "missing") < faults.missing:
            return
        found = {"id": f"batch_req_{_draw(name, 'id'):.12f}", "custom_id": name, "response": None, "error": None}
        if _draw(name, "expired") < faults.expired:
            text = "This request could not be executed before the completion window expired."
            errors.append({**found, "error": {"code": "batch_expired", "message": text}})
            return
        status, body = self._answer_line(json.dumps(line["body"]).encode())
        if _draw(name, "failed") < faults.failed:
            status, body = 500, {"error": {"message": "The server had an error.", "type": "server_error"}}
        found["response"] = {"status_code": status, "request_id": found["id"], "body": body}
        (output if status < 300 else errors).append(found)
        if status < 300 and _draw(name, "twice") < faults.twice:
            output.append(found)


def _step(method: str, what: str, name: str | None, action: str | None) -> str:
    if what == "files":
        return "upload" if name is None else action or ("delete" if method == "DELETE" else "file")
    if name is None:
        return "create" if method == "POST" else "list"
    return action or "retrieve"


def _checked(content: bytes, endpoint: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The lines of a file of requests, and what is wrong with it."""
    lines: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    names: set[str] = set()
    for number, text in enumerate(content.splitlines(), start=1):
        try:
            line = json.loads(text)
        except ValueError:
            errors.append({"code": "invalid_json_line", "message": "This line is not JSON.", "line": number})
            continue
        name = line.get("custom_id")
        if not isinstance(name, str) or name in names or len(name) > 64:
            errors.append({"code": "duplicate_custom_id", "message": "The custom_id is not unique.", "line": number})
        elif line.get("url") != endpoint or line.get("method") != "POST":
            errors.append({"code": "mismatched_endpoint", "message": "Another endpoint.", "line": number})
        names.add(str(name))
        lines.append(line)
    if not lines:
        errors.append({"code": "empty_file", "message": "The file has no requests.", "line": None})
    if len(lines) > _MOST_REQUESTS:
        errors.append({"code": "too_many_requests", "message": "More than 50,000 requests.", "line": None})
    return lines, errors


def _draw(name: str, what: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return math.ldexp(int.from_bytes(hashlib.blake2b(f"{what}|{name}".encode(), digest_size=6).digest(), "big"), -48)


def _parts(request: Request) -> Iterator[tuple[str, tuple[str, bytes]]]:
    """Name, file name and content of the parts of a form."""
    match = re.search(r"boundary=\"?([^\";]+)", _content_type(request.headers))
    if match is None:
        return
    for part in request.raw_body.split(b"--" + match[1].encode())[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        name = re.search(rb'[; ]name="([^"]*)"', head)
        filename = re.search(rb'filename="([^"]*)"', head)
        if name is not None:
            yield name[1].decode(), (filename[1].decode() if filename else "", content.removesuffix(b"\r\n"))


def _content_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "")
