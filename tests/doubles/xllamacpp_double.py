"""Stands for xllamacpp: a server that answers every chat with one verdict, in the process that makes it.

Written as `xllamacpp.py` into a folder of the import path. What it was started with is kept beside the model.
"""

SOURCE = """
import json, os, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class CommonParams:
    def __init__(self):
        self.model = type("Model", (), {})()


class Server:
    def __init__(self, params):
        path = Path(params.model.path)
        if path.read_bytes()[4:8] == b"evil":
            print("0.01 E load: tensor is out of bounds", file=__import__("sys").stderr, flush=True)
            raise RuntimeError("Failed to init server")
        known = {name: value for name, value in vars(params).items() if name not in ("model", "model_alias")}
        path.with_suffix(".started").write_text(json.dumps({**known, "pid": os.getpid()}))
        print("llama.cpp writes on stdout", flush=True)
        dies = path.read_bytes()[4:8] == b"dies"

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                asked = self.rfile.read(int(self.headers["content-length"])).decode()
                if dies and "ready" not in asked:
                    os.kill(os.getpid(), 9)
                is_ready = '{\\\\"ready\\\\": true}' in asked
                verdict = {"ready": True} if is_ready else {
                    "reasoning": "It is there.", "supported_claims": ["hot"], "unsupported_claims": [], "score": 4}
                text = {"role": "assistant", "content": json.dumps(verdict)}
                allowed = self.headers["authorization"] == "Bearer " + params.api_keys[0]
                body = {"model": next(iter(params.model_alias)), "system_fingerprint": "b1",
                        "choices": [{"index": 0, "finish_reason": "stop", "message": text}],
                        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
                found = json.dumps(body if allowed else {"error": {"message": "Invalid API Key"}}).encode()
                self.send_response(200 if allowed else 401)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(found)))
                self.end_headers()
                self.wfile.write(found)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer((params.hostnames[0], params.port), Handler)
        self.listening_address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
"""
