"""A page as PDF: which browser prints, what it is told, and what is said where none does."""

import sys

import pytest

from calviz.core.errors import NotAvailable
from calviz.report import document as pdf
from tests.inputs.command_line import run

FAKE = """#!{python}
import sys
asked = dict(a.lstrip("-").partition("=")[::2] for a in sys.argv[1:-1])
page = open(sys.argv[-1].removeprefix("file://"), encoding="utf-8").read()
if "print-to-pdf" in asked and "é" in page and "{works}":
    open(asked["print-to-pdf"], "wb").write(b"%PDF-1.4 " + asked["host-resolver-rules"].encode())
"""


@pytest.fixture
def browser(tmp_path, monkeypatch):
    def install(works="yes"):
        path = tmp_path / "browser"
        path.write_text(FAKE.format(python=sys.executable, works=works))
        path.chmod(0o755)
        monkeypatch.setenv(pdf.BROWSER_VARIABLE, str(path))

    return install


@pytest.mark.skipif(sys.platform == "win32", reason="the browser is a script")
def test_the_page_is_printed_without_the_network(browser):
    browser()
    assert pdf.why_no_pdf() == ""
    assert pdf.to_pdf("<p>é") == b"%PDF-1.4 MAP * ~NOTFOUND"
    browser(works="")
    with pytest.raises(NotAvailable, match="did not print; open the HTML file in any browser"):
        pdf.to_pdf("<p>é")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the browser is a script")
def test_the_command_line_writes_it_or_says_before_the_work_why_not(browser, tmp_path, monkeypatch):
    file, target = tmp_path / "é.csv", tmp_path / "report.pdf"
    file.write_text("label,p_a,p_b\n" + "a,0.6,0.4\nb,0.3,0.7\n" * 20, encoding="utf-8")
    options = ["audit", str(file), "--resamples", "20", "--pdf", str(target)]
    browser()
    result = run(*options)
    assert result.exit_code == 0, result.output
    assert target.read_bytes().startswith(b"%PDF-1.4")
    target.unlink()
    monkeypatch.setenv(pdf.BROWSER_VARIABLE, "/nowhere/chrome")
    refused = run(*options)
    assert refused.exit_code != 0
    assert "a PDF needs Chromium, Chrome or Edge" in refused.output
    assert not target.exists()


def test_where_there_is_no_browser_one_sentence_says_so(monkeypatch):
    monkeypatch.setenv(pdf.BROWSER_VARIABLE, "/nowhere/chrome")
    assert "CALVIZ_CHROMIUM names '/nowhere/chrome', which is not a program" in pdf.why_no_pdf()
    with pytest.raises(NotAvailable, match=r"^a PDF needs Chromium, Chrome or Edge.*print it\.$"):
        pdf.to_pdf("<p>x")
    monkeypatch.delenv(pdf.BROWSER_VARIABLE)
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    monkeypatch.setattr(pdf, "_BROWSER_PATHS", {})
    assert pdf.why_no_pdf().startswith(
        "a PDF needs Chromium, Chrome or Edge, and there is none here;"
    )
