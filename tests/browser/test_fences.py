"""Nothing in a file is obeyed, nobody sees another person's data, and nothing is left behind.

One server with a watch on what it writes serves all of these, and is ended and started again at the end.
"""

import re
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

#: One worker, in this order.
pytestmark = pytest.mark.xdist_group("fences")

ROOT = Path(__file__).resolve().parents[2]
NAMES = (
    "<img src=x onerror=alert(1)>",
    r"$\href{javascript:alert(2)}{x}$",
    "[a](javascript:alert(3)) ![i](http://example.invalid/i.png)",
    ":red[hot] :material/home: \u202eesrever <svg onload=alert(4)>",
    '=HYPERLINK("http://example.invalid")',
)
MODELS = ("<img src=y onerror=alert(5)>", "[m](http//example.invalid) <b>")
FILE = "![x](http\u2044\u2044example.invalid) <b onmouseover=alert(6)> :red[f] \u202e.csv"

PATIENCE = 40_000

#: What a name would have become if it had been obeyed.
OBEYED = """() => {
  const found = [];
  for (const e of document.querySelectorAll('[data-testid=stApp] *'))
    for (const a of e.attributes)
      if (a.name.startsWith('on') || /^\\s*javascript:/i.test(a.value)
          // Links of the app name the file, in their query.
          || (/^(src|href|xlink:href|action|data)$/.test(a.name) && a.value.split('?')[0].includes('example')))
        found.push(e.outerHTML.slice(0, 200));
  for (const e of document.querySelectorAll(
      '[data-testid=stMain] img, .katex, [data-testid=stApp] b')) {
    const own = (e.src || '').startsWith('data:image/svg+xml');  // the sign, and the numbers as pictures
    if (!own || /alert|example|javascript/.test(decodeURIComponent(e.src)))
      found.push(e.outerHTML.slice(0, 200));
  }
  if (document.body.innerText.includes('\\u202e')) found.push('right-to-left override');
  return found;
}"""

#: Of the charts that are on screen: there the words of a point appear.
MIDDLES = """() => [...document.querySelectorAll('.js-plotly-plot')].slice(0, 3)
  .map(e => e.getBoundingClientRect()).map(r => [r.x + r.width / 2, r.y + r.height / 2])"""


@pytest.fixture(scope="module")
def server(start_server):
    return start_server(audit=True)


def _hostile(folder):
    rng = np.random.default_rng(0)
    n, k = 90, len(NAMES)
    groups = f"{NAMES[0]} column"
    head = ["label", "split", "id", groups, *(f"{m}:{c}" for m in MODELS for c in NAMES)]
    lines = [head]
    for i in range(n):
        row = [NAMES[i % k], ["<b>cal</b>", "$t$"][i % 2], f"<i id={i}>", NAMES[i % 3]]
        for concentration in (0.5, 2.0):
            row += [f"{v:.17g}" for v in rng.dirichlet(np.full(k, concentration))]
        lines.append(row)
    path = folder / FILE
    quoted = (",".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines)
    path.write_text("\n".join(quoted) + "\n", encoding="utf-8")
    return path


def test_names_are_text_on_every_page(view, tmp_path):
    from calviz.app.navigation import ROOMS

    tab = view(height=1000).open("/data")
    page, messages = tab.page, []
    page.on("dialog", lambda dialog: (messages.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("console", lambda m: messages.append(m.text) if m.type == "error" else None)
    tab.upload(_hostile(tmp_path))
    tab.expect("90 rows").settle()
    assert "<img src=x" in tab.text.replace("\u2060", "")
    tabs = [(room, spec) for room in ROOMS for spec in room.tabs]
    for room, spec in tabs:
        if spec.key in ("over_time", "judge"):  # no times, no judge: no tab
            continue
        tab.go(room.title, spec.title if len(room.tabs) > 1 else "")
        if spec.key == "recalibrate":
            # So few rows are compared at once.
            tab.expect("What to take").settle()
        page.evaluate(
            "document.querySelectorAll('details:not([open]) summary').forEach(e => e.click())"
        )
        tab.settle()
        for inner in page.get_by_role("tab", selected=False).all_inner_texts():
            page.get_by_role("tab", name=inner, exact=True).click()
            tab.settle()
        for x, y in page.evaluate(MIDDLES):
            page.mouse.move(x, y)
        tab.settle()
        assert page.evaluate(OBEYED) == [], spec.key
        assert "did not foresee" not in tab.text, spec.key
    assert messages == []


def _write(folder, name, mark, rows):
    rng = np.random.default_rng(rows)
    probs = rng.dirichlet([1, 1, 1], rows)
    path = folder / mark / name
    path.parent.mkdir()
    lines = [f"{mark}{k % 3},{a},{b},{1 - a - b}" for k, (a, b, _) in enumerate(probs.round(6))]
    path.write_text(f"label,p_{mark}0,p_{mark}1,p_{mark}2\n" + "\n".join(lines) + "\n")
    return path


def test_two_people_at_once_see_their_own_data_only(view, tmp_path):
    # One file name and one number of rows, so that nothing but the content tells them apart.
    marks = ("alpha", "omega")
    files = [_write(tmp_path, "same.csv", mark, 120) for mark in marks]
    tabs = [view(stranger=True).open("/data") for _ in marks]
    for tab, file in zip(tabs, files, strict=True):
        tab.upload(file)
    for tab, mark in zip(tabs, marks, strict=True):
        # The uploader shows the name of a file before it has it, and a page switch then would end the upload.
        tab.expect(f"{mark}0")
    for title in ("Data", "Classes (MCS)"):
        for tab in tabs:
            tab.expect("same.csv")
            if title != "Data":
                tab.go("Diagnose", title)
        for tab, own, other in zip(tabs, marks, reversed(marks), strict=True):
            tab.expect(f"{own}0" if title == "Data" else "same.csv").settle()
            whole = tab.page.content()
            assert own in whole
            assert other not in whole
    for tab in tabs:
        tab.page.wait_for_url(re.compile(r"data=[0-9a-f]{16}"))
    digests = [re.search(r"data=([0-9a-f]{16})", tab.page.url)[1] for tab in tabs]
    assert digests[0] != digests[1]
    # Nor by a link to the other's data.
    tabs[1].page.goto(f"{tabs[1].server.url}/?data={digests[0]}")
    tabs[1].expect("This link needs its file")


def test_a_page_of_another_name_gets_no_connection(server):
    address = urlsplit(server.url)

    def answer(host):
        head = (
            f"GET /_stcore/stream HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        with socket.create_connection((address.hostname, address.port), timeout=20) as line:
            line.sendall(head.encode())
            return line.recv(40)

    assert b" 101 " in answer(address.netloc)
    assert b" 403 " in answer(f"rebound.example:{address.port}")


def test_an_upload_that_breaks_off_leaves_nothing(view, server):
    tab = view()
    page = tab.page
    tab.open("/data")
    big = {"name": "a.csv", "mimeType": "text/csv", "buffer": b"label,p_a,p_b\na,0.5,0.5\n" * 2}
    with page.expect_request(lambda request: request.method == "PUT") as sent:
        page.locator("input[type=file]").first.set_input_files(big)
    upload = sent.value
    tab.settle()
    headers = upload.all_headers()
    keep = ("cookie", "x-xsrftoken", "origin", "content-type")
    address = urlsplit(server.url)
    head = [f"PUT {urlsplit(upload.url).path}-again HTTP/1.1", f"Host: {address.netloc}"]
    head += [f"{name}: {headers[name]}" for name in keep if name in headers]
    boundary = headers["content-type"].split("boundary=")[1]
    part = f'--{boundary}\r\nContent-Disposition: form-data; name="f"; filename="../../evil.csv"\r\n\r\n'
    text = "\r\n".join([*head, "Content-Length: 9000000", "", part])
    with socket.create_connection((address.hostname, address.port), timeout=20) as line:
        line.sendall(text.encode() + b"x" * 3_000_000)
        time.sleep(0.5)
    page.reload()
    tab.settle()
    # Spools have no names; what has one is the server's own folder and its lock.
    values = [p.name for p in server.temporary.rglob("*")]
    assert len(values) == 2
    assert "in-use" in values
    # Without the token of this browser's session nothing is taken.
    bare = text.replace("x-xsrftoken", "x-nothing").replace("9000000", str(len(part)))
    with socket.create_connection((address.hostname, address.port), timeout=20) as line:
        line.sendall(bare.encode())
        assert b" 403 " in line.recv(200)


def test_a_server_that_starts_again_asks_for_the_file_and_nothing_is_left(
    view, tmp_path, server, start_server
):
    tab = view().open("/data")
    tab.upload(_write(tmp_path, "f.csv", "m", 60))
    tab.expect("f.csv").settle()
    tab.page.wait_for_url("**data=*")
    tab.go("Diagnose", "Reliability")
    before = tab.page.locator("h1").inner_text()
    server.stop()
    assert server.process.returncode == 0
    assert list(server.temporary.iterdir()) == []
    written = {path for kind, path, *_ in server.events if kind == "write"}
    assert written
    assert {p for p in written if not p.startswith(str(server.temporary))} == set()
    port = str(urlsplit(server.url).port)
    # To choose a port it asks for the address that it will listen on.
    own = [e for e in server.events if e[1] == "socket.getaddrinfo" and f"({port}," in e[2]]
    assert [e for e in server.events if e[0] == "outside" and e not in own] == []
    home = sorted(p.name for p in server.log.parent.iterdir())
    assert home == ["audit.txt", "log.txt", "tmp"]
    text = server.log.read_text()
    # Of an upload that breaks off the web server writes a traceback; nothing of ours may.
    assert " failed" not in text
    assert f"{ROOT}/calviz/" not in text

    start_server(port=urlsplit(server.url).port)
    # What was on screen stays; the next change asks for the file of the link.
    page = tab.page
    connected = "[data-testid=stApp][data-test-connection-state=CONNECTED]"
    page.wait_for_selector(connected, timeout=3 * PATIENCE)
    assert page.locator("h1").inner_text() == before
    tab.chip("Bins")
    page.get_by_role("spinbutton", name="Number of bins").fill("9")
    page.keyboard.press("Enter")
    tab.expect("This link needs its file").settle()
    tab.upload(tmp_path / "m" / "f.csv")
    tab.at("Diagnose", "Reliability").expect("f.csv")
