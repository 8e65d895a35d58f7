#!/usr/bin/env python3
"""WebTransport between crates/webtransport/examples/echo.rs and others, in both roles: webtransport-go, and headless
Chromium as a client. Each client tries streams of both kinds from both ends, datagrams, resets and the closes of both
ends; what the server heard of the client's close is compared, too. `interop/webtransport.sh` builds and runs it."""

import argparse
import http.server
import json
import subprocess
import sys
import tempfile
import threading
import time

from dashboard import Chromium

PATIENCE = 60
CLOSED = {"closed_by_peer": 99, "reason": "that was all"}

# What the page tries. Errors of the API have the fields `streamErrorCode` and `source`.
PAGE = """(async () => {
  const seen = [];
  const check = (what, is) => { if (!is) throw new Error("wrong: " + what); seen.push(what); };
  const hash = Uint8Array.from(FINGERPRINT.match(/../g), digits => parseInt(digits, 16));
  const begin = async () => {
    const session = new WebTransport(URL, {serverCertificateHashes: [{algorithm: "sha-256", value: hash}]});
    await session.ready;
    return session;
  };
  const all = async readable => new Uint8Array(await new Response(readable).arrayBuffer());
  const text = bytes => new TextDecoder().decode(bytes);
  const send = async (writable, data) => {
    const writer = writable.getWriter();
    await writer.write(typeof data == "string" ? new TextEncoder().encode(data) : data);
    await writer.close();
  };
  const ask = async (session, data) => {
    const stream = await session.createBidirectionalStream();
    const [, answer] = await Promise.all([send(stream.writable, data), all(stream.readable)]);
    return answer;
  };
  const next = async streams => {
    const reader = streams.getReader();
    const {value} = await reader.read();
    reader.releaseLock();
    return value;
  };
  const same = (a, b) => a.length == b.length && a.every((byte, at) => byte == b[at]);
  const data = Uint8Array.from({length: 1000000}, (_, at) => at % 251);

  let session = await begin();
  check("a bidirectional stream", same(await ask(session, data), data));
  await send(await session.createUnidirectionalStream(), data);
  check("unidirectional streams", same(await all(await next(session.incomingUnidirectionalStreams)), data));
  const [answer, greeting] = await Promise.all([ask(session, "bi"), (async () => {
    const stream = await next(session.incomingBidirectionalStreams);
    const greeting = text(await all(stream.readable));
    await send(stream.writable, "a reply");
    return greeting;
  })()]);
  check("a bidirectional stream of the server", greeting == "from the server" && text(answer) == "a reply");
  await ask(session, "uni");
  const alone = text(await all(await next(session.incomingUnidirectionalStreams)));
  check("a unidirectional stream of the server", alone == "from the server");
  const code = async promise => promise.then(() => "none", error => error.streamErrorCode);
  const resetting = await session.createBidirectionalStream();
  send(resetting.writable, "reset").catch(() => {});
  const reset = await code(resetting.readable.getReader().read());
  check("the server's reset: " + reset, reset === 42);
  const stream = await session.createBidirectionalStream();
  const writer = stream.writable.getWriter();
  await writer.write(new Uint8Array(1));
  writer.abort(new WebTransportError({streamErrorCode: 7})).catch(() => {});
  const reply = await code(stream.readable.getReader().read());
  check("the answer to a reset: " + reply, reply === 8);

  const datagrams = session.datagrams;
  const to = (datagrams.writable ?? datagrams.createWritable()).getWriter();
  const from = datagrams.readable.getReader();
  let echo;
  from.read().then(({value}) => { echo = text(value); });
  for (let attempt = 0; attempt < 20 && echo === undefined; attempt++) {
    await to.write(new TextEncoder().encode("a datagram"));
    await new Promise(resolve => setTimeout(resolve, 200));
  }
  check("datagrams", echo == "a datagram");
  session.close({closeCode: 99, reason: "that was all"});
  await session.closed;

  session = await begin();
  ask(session, "close").catch(() => {});
  const {closeCode, reason} = await session.closed;
  check("the server's close: " + closeCode + " " + reason, closeCode === 1234 && reason == "good bye");
  return JSON.stringify(seen);
})()"""


class Server:
    """A server that says in lines of JSON where it listens, and how sessions ended."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        said = json.loads(self.process.stdout.readline())
        self.url = f"https://localhost:{said['port']}/echo"
        self.fingerprint = said["fingerprint"]
        self.heard = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.heard.append(json.loads(line))

    def end(self):
        """Waits until it has heard of the client's close, and ends it. Returns what is wrong."""
        deadline = time.monotonic() + PATIENCE
        while CLOSED not in self.heard and time.monotonic() < deadline:
            time.sleep(0.1)
        self.process.kill()
        self.process.wait()
        if CLOSED not in self.heard:
            return [f"the server has heard {self.heard}"]
        return []


def with_client(command, server):
    client = subprocess.run([*command, "try", server.url, server.fingerprint], timeout=PATIENCE, check=False)
    return [f"the client has ended with {client.returncode}"] if client.returncode else []


class Empty(http.server.BaseHTTPRequestHandler):
    """An empty page: WebTransport is there only for pages of secure origins, which 127.0.0.1 is."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()

    def log_message(self, *_):
        pass


def with_chromium(binary, server):
    page = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    threading.Thread(target=page.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Chromium(binary, profile)
        try:
            url = f"http://127.0.0.1:{page.server_address[1]}/"
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            browser.call("Page.enable", session)
            browser.call("Page.navigate", session, url=url)
            deadline = time.monotonic() + PATIENCE
            where = "location.href + document.readyState"
            while browser.call("Runtime.evaluate", session, expression=where)["result"]["value"] != f"{url}complete":
                if time.monotonic() > deadline:
                    return ["Chromium does not open the page"]
                time.sleep(0.1)
            # Chromium takes `localhost` for ::1, and has no need of the certificate's name.
            where = server.url.replace("localhost", "127.0.0.1")
            what = PAGE.replace("URL", json.dumps(where)).replace("FINGERPRINT", json.dumps(server.fingerprint))
            answer = browser.call("Runtime.evaluate", session, expression=what, awaitPromise=True)
        finally:
            browser.end()
            page.shutdown()
    if "exceptionDetails" in answer:
        return [f"Chromium: {json.dumps(answer['exceptionDetails'].get('exception', answer))}"]
    for what in json.loads(answer["result"]["value"]):
        print("ok:", what)
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--echo", required=True, help="the example of crates/webtransport")
    parser.add_argument("--go", help="the program of interop/webtransport-go")
    parser.add_argument("--chromium", help="the browser")
    options = parser.parse_args()
    ours = [options.echo, "serve", "127.0.0.1:0"]
    pairs = [("Sutura with Sutura", ours, lambda server: with_client([options.echo], server))]
    if options.go:
        pairs.append(("webtransport-go with the server of Sutura", ours,
                      lambda server: with_client([options.go], server)))
        pairs.append(("Sutura with the server of webtransport-go", [options.go, "serve"],
                      lambda server: with_client([options.echo], server)))
    if options.chromium:
        pairs.append(("Chromium with the server of Sutura", ours,
                      lambda server: with_chromium(options.chromium, server)))
    failed = False
    for name, command, client in pairs:
        print(f"== {name} ==", flush=True)
        server = Server(command)
        faults = client(server)
        faults += server.end()
        failed |= bool(faults)
        print(*faults or ["passed"], sep="\n", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
