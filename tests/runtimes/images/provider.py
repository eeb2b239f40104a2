"""Replaces a provider of models behind a ModelAPI, and has the paths and answers of OpenAI's API. Answers every chat
with the same fact, in the format that `mem0` asks for. Embeds every text as the same vector, so that a search finds every
text."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers.get("authorization") != "Bearer the-key-of-the-secret":
            return self.reply(401, {"error": {"message": "wrong key"}})
        if self.path == "/v1/embeddings":
            texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
            data = [{"object": "embedding", "index": at, "embedding": [1.0, 0.5, 0.25]} for at in range(len(texts))]
            return self.reply(200, {"object": "list", "model": asked["model"], "data": data, "usage": USAGE})
        said = json.dumps({"facts": ["the ferry leaves at nine"], "memory": [
            {"id": "0", "text": "the ferry leaves at nine", "event": "ADD"}]})
        message = {"role": "assistant", "content": said}
        choices = [{"index": 0, "finish_reason": "stop", "message": message}]
        self.reply(200, {"id": "1", "object": "chat.completion", "created": 1, "model": asked["model"],
                         "choices": choices, "usage": USAGE})

    def reply(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
ThreadingHTTPServer(("0.0.0.0", 8000), Provider).serve_forever()
