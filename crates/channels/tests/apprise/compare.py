"""Compares what `deskbell channel preview` shows for Apprise addresses with what Apprise itself sends.

Usage: compare.py DESKBELL [--only KIND] [--verbose]

Every example address of `docs/channels.md` is tried with several texts at four severities. Compared is what the service
would understand: method, host, path, names in the query, authentication, content type, the fields that hold title and
text, and into how many parts a long text is split where the address asks for it. What differs on purpose is listed in `differences.toml` beside this file, with the reason.
"""

import argparse
import base64
import html
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import apprise
import requests

HERE = Path(__file__).parent
SEVERITIES = {"info": "info", "success": "notice", "warning": "warning", "failure": "error"}
TITLE = "Build failed"
TEXTS = {
    "ascii": ("text", "2 of 340 tests failed"),
    "unicode": ("text", "构建失败：第一行\n第二行 🚨 größer"),
    "emoji": ("text", "👩‍👩‍👧 🇩🇪 1️⃣\n\n✅ done"),
    "special": ("text", "a <b> & \"c\" 'd' e>f"),
    "markdown": ("markdown", "**2 of 340** tests failed:\n\n- one\n- two"),
    "long": ("text", "long text " * 1200),
}

# An answer that most services' plugins take for success, also where they first ask for a token.
ANSWER = {
    "ok": True, "success": True, "errcode": 0, "code": 0, "error": 0, "errno": 0, "retcode": 0, "status": "ok",
    "access_token": "an-access-token", "tenant_access_token": "an-access-token", "token": "a-token", "expire": 7200,
    "expires_in": 7200, "user_id": "@me:example.com", "room_id": "!room:example.com", "joined_rooms": ["!room:example.com"],
    "id": "1", "data": {"id": "1", "authToken": "a-token", "userId": "a-user", "errno": 0}, "result": {"message_id": 1},
    "message": "ok", "event_id": "$1", "device_id": "DEVICE", "home_server": "example.com", "ids": ["1"],
}


class Answer(requests.Response):
    """An answer of a service that took the message."""

    def __init__(self):
        super().__init__()
        self.status_code = 200
        self._content = json.dumps(ANSWER).encode()
        self.headers["content-type"] = "application/json"


def apprise_sends(url, title, text, severity, text_format):
    """The requests that Apprise sends."""
    seen = []

    def send(_session, request, **_options):
        body = request.body or ""
        if isinstance(body, bytes):
            body = body.decode("utf-8", "replace")
        headers = {k.lower(): v.decode() if isinstance(v, bytes) else v for k, v in request.headers.items()}
        seen.append({"method": request.method, "url": request.url, "headers": headers, "body": body})
        return Answer()

    requests.Session.send = send
    service = apprise.Apprise.instantiate(url)
    if service is None:
        return None
    service.request_rate_per_sec = 0
    try:
        service.notify(body=text, title=title, notify_type=severity, body_format=text_format)
    except Exception:  # noqa: BLE001 - a plugin that cannot be run here says nothing
        return None
    return seen


def deskbell_sends(program, url, title, text, severity, text_format):
    """The requests that Deskbell would send, or why it would not."""
    command = [program, "channel", "preview", url, "--title", title, "--body", text, "--level", SEVERITIES[severity],
               "--format", text_format, "--json", "--show-secrets"]
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"]}
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=home, check=False)
    if ran.returncode != 0:
        return None, ran.stderr.strip()
    shown = json.loads(ran.stdout)
    return shown["requests"], shown["kind"]


def leaves(value, path=""):
    """Every text in a JSON value with the path to it; texts that are JSON themselves are entered."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    elif isinstance(value, str):
        if value[:1] in "{[" and len(value) > 2:
            try:
                yield from leaves(json.loads(value), path)
                return
            except ValueError:
                pass
        yield path, value


def fields(request):
    """The body's fields: path and text."""
    body, kind = request.get("body") or "", request["headers"].get("content-type", "")
    if body[:1] in "{[":
        try:
            return list(leaves(json.loads(body)))
        except ValueError:
            pass
    if "x-www-form-urlencoded" in kind:
        found = []
        for name, value in parse_qsl(body, keep_blank_values=True):
            found.extend((f".{name}{path}", text) for path, text in leaves(value))
        return found
    return [("", body)]


def plain(text):
    """A text without escapes, joiners and the marks of Markdown, in words."""
    text = html.unescape(html.unescape(text)).replace("\u2060", "")
    text = re.sub(r"</?(b|strong|i|em|p|ul|li|h3|br)\b[^>]*>|[\\*_`#•-]", "", text)
    return re.sub(r"\s+", " ", text)


def where(request, text):
    """The fields that hold the start of `text`, query and headers included."""
    wanted = plain(text)[:20].strip()
    query = [(f"?{name}", value) for name, value in parse_qsl(urlsplit(request["url"]).query)]
    headers = [(f":{name}", value) for name, value in request["headers"].items()]
    path = [("/", unquote(urlsplit(request["url"]).path))]
    return {place for place, held in fields(request) + query + headers + path if wanted and wanted in plain(held)}


# Headers by which a service knows a repeat, which Apprise does not send.
REPEATS = {"idempotency-key", "x-line-retry-key"}


def login(name, value):
    """A header that authenticates, without what differs whenever something of the request does."""
    scheme, _, rest = value.partition(" ")
    if name == "authorization" and scheme == "Basic":
        # Where there is no password Apprise sends Python's word for it.
        return base64.b64decode(rest + "==").decode("utf-8", "replace").removesuffix("None")
    return re.sub(r"Signature=\w+", "Signature", re.sub(r"\bt=[\w.-]+", "t", value))


def host(url):
    """The host, and the port where it is not that of the scheme."""
    name = url.netloc.rpartition("@")[2]
    return name.removesuffix({"http": ":80", "https": ":443"}[url.scheme])


def meaning(request):
    """What a service understands of a request, without its texts."""
    url, headers = urlsplit(request["url"]), request["headers"]
    secrets = {n: login(n, v) for n, v in headers.items()
               if re.search(r"auth|token|key|secret|ocs", n) and n not in REPEATS}
    return {
        "method": request["method"],
        "host": host(url),
        "path": re.sub("//+", "/", unquote(url.path)).rstrip("/"),
        "query": sorted({name for name, _ in parse_qsl(url.query, keep_blank_values=True)}),
        "auth": secrets,
        "type": headers.get("content-type", "").split(";")[0].strip(),
    }


def differences(ours, theirs, text):
    """Aspects in which the requests that carry the text differ."""
    def carriers(sent):
        # An e-mail address or a token call carries no text.
        found = [request for request in sent if where(request, text)]
        return found or sent[-1:]

    our_carriers, their_carriers = carriers(ours), carriers(theirs)
    if not our_carriers or not their_carriers:
        return [("requests", f"{len(ours)} requests", f"{len(theirs)} requests")]
    # Places are told in an order of our own, and some of theirs fail at the script's answers.
    pairs = (between(one, other, text) for one in our_carriers for other in their_carriers)
    return min(pairs, key=len)


def parts(sent, text):
    """How many of the requests carry words of a text that is the same words over and over."""
    return sum(1 for request in sent if where(request, text))


def split(url):
    """The address by which a text that is too long becomes several messages."""
    return f"{url}{'&' if '?' in url else '?'}overflow=split"


def between(one, other, text):
    """Aspects in which two requests differ."""
    found = []
    for aspect, value in meaning(one).items():
        if value != meaning(other)[aspect]:
            found.append((aspect, value, meaning(other)[aspect]))
    for aspect, words in (("title", TITLE), ("body", text)):
        mine, its = where(one, words), where(other, words)
        if its and not mine & its:
            found.append((aspect, sorted(mine), sorted(its)))
    return found


def examples():
    """The example addresses of each kind, from the generated page."""
    page = (HERE / "../../../../docs/channels.md").read_text()
    for section in page.split("\n## ")[1:]:
        kind = section.split("\n", 1)[0].strip()
        line = re.search(r"^As an address: (.*)$", section, re.M)
        for url in re.findall(r"`([^`]+)`", line.group(1)) if line else []:
            yield kind, url


# A subscription of a browser, with the keys of the appendix of RFC 8291.
BROWSER = {"endpoint": "https://push.example.net/p/JzLQ3raZJfFBR0aqvOMsLrt5", "keys": {
    "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    "auth": "BTBZMqHH6r4Tts7J_aSIgg"}}


def with_files(url, folder):
    """The address with files that are there, where it names a key and a subscription of a browser."""
    key, browsers = folder / "vapid.pem", folder / "push.json"
    url = re.sub(r"keyfile=[^&]+", f"keyfile={key}", url)
    url = re.sub(r"subfile=[^&]+", f"subfile={browsers}", url)
    if str(key) in url and not key.exists():
        made = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout"]
        key.write_bytes(subprocess.run(made, capture_output=True, check=True).stdout)
        browsers.write_text(json.dumps({name: BROWSER for name in ("ada@example.com", "phone", "laptop")}))
    return url


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("deskbell")
    arguments.add_argument("--only", help="one kind")
    arguments.add_argument("--verbose", action="store_true", help="every case that differs")
    options = arguments.parse_args()
    logging.disable(logging.CRITICAL)
    on_purpose = tomllib.loads((HERE / "differences.toml").read_text())

    program = str(Path(options.deskbell).resolve())
    files = tempfile.TemporaryDirectory()
    cases = []
    for kind, url in examples():
        url = with_files(url, Path(files.name))
        if options.only in (None, kind):
            cases += [(kind, url, name, severity) for name in TEXTS for severity in SEVERITIES]

    def ours(case):
        _, url, name, severity = case
        text_format, text = TEXTS[name]
        return deskbell_sends(program, url, TITLE, text, severity, text_format)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        previews = list(pool.map(ours, cases))
        long_ones = [(kind, url) for kind, url, name, severity in cases if (name, severity) == ("long", "info")]
        split_previews = list(pool.map(ours, [(kind, split(url), "long", "info") for kind, url in long_ones]))

    seen, explained, alone, same, differ, counted = {}, 0, set(), 0, 0, 0
    for (kind, url, name, severity), (sent, told) in zip(cases, previews):
        text_format, text = TEXTS[name]
        theirs = apprise_sends(url, TITLE, text, severity, text_format)
        if sent is None:
            found = [("refused", told, "")]
        elif not theirs:
            alone.add((kind, url))
            continue
        elif not any("url" in request for request in sent):
            alone.add((kind, url))
            continue
        else:
            found = differences([request for request in sent if "url" in request], theirs, text)
        reasons = on_purpose.get(kind, {})
        left = [it for it in found if it[0] not in reasons]
        explained += len(found) - len(left)
        same += not left
        differ += bool(left)
        for aspect, mine, its in left:
            seen.setdefault((kind, url, aspect, str(mine), str(its)), []).append(f"{name}/{severity}")
    for (kind, url), (sent, told) in zip(long_ones, split_previews):
        text_format, text = TEXTS["long"]
        theirs = apprise_sends(split(url), TITLE, text, "info", text_format)
        if not sent or not theirs or (kind, url) in alone or "parts" in on_purpose.get(kind, {}):
            continue
        mine, its = parts(sent, text), parts(theirs, text)
        counted += 1
        if its and mine != its:
            seen.setdefault((kind, url, "parts", str(mine), str(its)), []).append("long/info")
    for (kind, url, aspect, mine, its), places in seen.items():
        print(f"{kind}  {url}\n  {aspect} ({len(places)} cases, {places[0]}):\n    ours   {mine}\n    theirs {its}")
    print(f"{len(cases)} cases: {same} mean the same, {differ} differ, "
          f"{explained} differences on purpose, {counted} counts of parts compared, {len(alone)} addresses that Apprise does not send by HTTP here")
    if options.verbose:
        print("not compared:", *sorted(alone), sep="\n  ")
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
