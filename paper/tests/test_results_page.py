"""The page of results in a real browser: no errors, every figure seen, links that lead somewhere, nothing too wide."""

import json
import re
import shutil
import sys
from html.parser import HTMLParser
from types import ModuleType

import numpy as np
import pytest
from matplotlib.figure import Figure
from policyspace_paper.execution import EXPERIMENTS, Experiment, Record, RunSize
from policyspace_paper.page import AUTHORS_TIMES, AuthorsTime, Results, duration, write_page
from policyspace_paper.panels import FEWEST, Claim, ClaimPart, Panel

from policyspace import InputError
from policyspace.report import inline_svg

ORDER = ("first-fake", "second-fake")

LOOK = """JSON.stringify({
  figures: [...document.querySelectorAll("svg.figure")].map(s => {
    const box = s.getBoundingClientRect();
    return [box.width, box.height, s.getAttribute("aria-label"), getComputedStyle(s).visibility];
  }),
  drawn: [...document.querySelectorAll("svg.figure use")].filter(u => {
    const target = document.querySelector(u.getAttribute("xlink:href"));
    return target === null || u.closest("svg") !== target.closest("svg");
  }).length,
  anchors: [...document.querySelectorAll('a[href^="#"]')].map(a => [a.hash, !!document.getElementById(a.hash.slice(1))]),
  files: [...document.querySelectorAll("a[href]")].map(a => a.getAttribute("href")).filter(h => !h.startsWith("#")),
  ids: [...document.querySelectorAll("[id]")].map(e => e.id),
  width: document.documentElement.scrollWidth,
  room: document.documentElement.clientWidth,
  fetched: performance.getEntriesByType("resource").map(e => e.name),
  boxes: [...document.querySelectorAll(".sideways")].map(b => [b.clientWidth, b.scrollWidth]),
})"""


def figure(kind):
    drawn = Figure(figsize=(7.2, 3.8), layout="constrained", facecolor="white")
    axes = drawn.add_subplot()
    x = np.array([10, 40, 120, 400, 1000])
    for k, label in enumerate(("no configuration", "uniform", "ours")):
        axes.plot(x, np.exp(-x / 200 * (k + kind)), marker="o", label=label)
    axes.set_xscale("log")
    axes.set_xlabel("episodes observed in total")
    axes.set_ylabel("controlled features missed, β̂")
    axes.legend(frameon=False)
    return drawn


def panels(records):
    kind = len(records)
    columns = ("design", "episodes", "runs", "β̂ (95 % interval)", "α̂ (95 % interval)", "runs with a false selection")
    rows = [
        (d, str(n), "25", "0.410 ± 0.052", "0.0012 ± 0.0010", "3 %") for n in (40, 400) for d in ("none", "uniform <b>")
    ]
    found = ([True], [True, None]) if kind == 1 else ([False], None)
    return [
        Panel(
            f"fake-{kind}-{i}", f"Errors against episodes, {kind}.{i} & more",
            Claim("Configuring finds what is <hidden>.", "Runs <enough> and intervals." if parts else ""),
            "β̂ falls from 0.41 to 0.02 with it, to 0.30 without.", figure(kind + i), columns, rows,
            {"rate": np.float64(0.41), "margin": float("nan"), "counts": np.arange(3)},
            [ClaimPart("", holds) for holds in parts or ()], FEWEST,
        )
        for i, parts in enumerate(found)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def fakes():
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setitem(AUTHORS_TIMES, "first-fake", AuthorsTime(1234.5, "25 runs × 49 h"))
    for name, title in (("first_fake", "Discrete grid world"), ("second_fake", "Our own <table>")):
        module = ModuleType(f"policyspace_paper.{name}")
        module.EXPERIMENT = Experiment(name.replace("_", "-"), title, lambda scale: [], lambda setting: {}, panels)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(EXPERIMENTS, name.replace("_", "-"), f"{name}:EXPERIMENT")
    yield
    monkeypatch.undo()


def records(number, **setting):
    return [Record("x", {"seed": i, **setting}, "0.1.0", 61.5, {"x": 1}, 31.0) for i in range(number)]


@pytest.fixture(scope="module")
def made(tmp_path_factory, fakes):
    """A page of two experiments, of which one was made by the paper's settings, too."""
    folder = tmp_path_factory.mktemp("results")
    Results(folder, RunSize(), ORDER).add("second-fake", records(2))
    Results(folder, RunSize(), ORDER).add("first-fake", records(1, procedure="literal") + records(1, procedure="ours"))
    return folder


@pytest.mark.parametrize("width", [360, 390, 1200])
def test_a_browser_shows_it_whole(browser, made, width):
    address = (made / "index.html").as_uri()
    browser.open(address, width)
    found = json.loads(browser.evaluate(LOOK))
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [address], "nothing else was asked for"
    assert len(found["figures"]) == 6
    for wide, high, label, visibility in found["figures"]:
        assert wide > 250 and high > 100 and visibility == "visible"
        assert label.startswith("Errors against episodes")
    assert found["drawn"] == 0, "every mark of a figure is drawn from its own definitions"
    assert len(found["ids"]) == len(set(found["ids"]))
    assert found["width"] <= found["room"], "the page itself never scrolls sideways"
    assert all(name[1] for name in found["anchors"])
    assert len(found["anchors"]) == 8
    assert found["files"] == []


def test_these_tests_would_see_a_fault(browser, made, tmp_path):
    spoilt = tmp_path / "spoilt.html"
    page = (made / "index.html").read_text(encoding="utf-8")
    fault = '<script>console.error("wrong")</script><img src="absent.png"><div style="width: 3000px">wide</div>'
    spoilt.write_text(page.replace("</main>", fault + "</main>"), encoding="utf-8")
    browser.open(spoilt.as_uri(), 390)
    found = json.loads(browser.evaluate(LOOK))
    assert {"Runtime.consoleAPICalled", "Network.loadingFailed"} <= {event["method"] for event in browser.complaints()}
    assert found["width"] > 390 and len(browser.requests()) >= 2


def test_links_lead_to_their_panels(browser, made):
    browser.open((made / "index.html").as_uri(), 390)
    assert browser.evaluate("scrollY") == 0
    browser.evaluate("""document.documentElement.style.scrollBehavior = "auto";
                        document.querySelector('a[href="#panel-fake-2-1"]').click()""")
    top = browser.evaluate('document.getElementById("panel-fake-2-1").getBoundingClientRect().top')
    assert browser.evaluate("location.hash") == "#panel-fake-2-1"
    assert browser.evaluate("scrollY") > 1000
    assert 0 <= top < 900, "the panel is in sight"


def test_wide_tables_scroll_in_their_own_box_on_a_phone(browser, made):
    browser.open((made / "index.html").as_uri(), 390)
    boxes = json.loads(browser.evaluate(LOOK))["boxes"]
    assert all(inner <= 390 for inner, _ in boxes)
    assert sum(content > inner for inner, content in boxes) >= 4
    browser.open((made / "index.html").as_uri(), 1200)
    assert all(content <= inner for inner, content in json.loads(browser.evaluate(LOOK))["boxes"])


def test_it_prints(browser, made):
    browser.open((made / "index.html").as_uri(), 1200)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    inside = browser.evaluate('getComputedStyle(document.querySelector(".panel")).breakInside')
    browser.ask("Emulation.setEmulatedMedia", media="")
    assert inside == "avoid"


class Text(HTMLParser):
    """The words of a page, and that its elements are closed."""

    VOID = ("meta", "link")

    def __init__(self, page):
        super().__init__()
        self.words, self.open = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)


def words(path):
    text = Text(path.read_text(encoding="utf-8"))
    assert text.open == []
    return " ".join(" ".join(text.words).split())


def test_the_page_says_what_was_found(made):
    page = words(made / "index.html")
    assert "By the paper's own settings, of 3 claims 1 holds, 1 holds partly, 1 not run." in page
    assert "By our settings, of 3 claims 1 holds, 1 holds partly, 1 does not hold." in page
    assert "Judged by Runs <enough> and intervals." in page
    assert "Configuring finds what is <hidden>." in page and "uniform <b>" in page, "words are never taken for tags"
    assert page.index("Discrete grid world") < page.index("Our own <table>"), "the order of the paper, not of the runs"
    assert "Literal 1 cells, 62 s of processor time, 31 s on the clock Ours 1 cells, 62 s of processor time" in page
    assert "≈ 7.3 weeks: 25 runs × 49 h" in page, "an estimate, and what it was multiplied from"
    assert "Ours 3 cells, 3.1 min of processor time, 93 s on the clock" in page, "all of it together"
    assert page.count("policyspace reproduce first-fake") == 2
    assert "miniature" not in page and "Not here yet" not in page
    assert all((made / "figures" / folder / "fake-1-0.svg").is_file() for folder in (".", "literal"))


def test_a_column_without_records_is_said_to_be_not_run(made):
    page = words(made / "index.html")
    second = page[page.rindex("Our own <table>") :]
    assert "Literal not run Ours" in second and "Literal – not run Ours ✗ does not hold" in second
    assert "Question Configuring finds what is <hidden>. Ours ◇ our own" in second, "the paper was never asked"


def test_one_column_again_leaves_the_other(tmp_path, fakes):
    Results(tmp_path, RunSize(), ORDER).add("first-fake", records(1))
    Results(tmp_path, RunSize(as_published=True), ORDER).add("first-fake", records(1))
    columns = json.loads((tmp_path / "results.json").read_text("utf-8"))["experiments"]["first-fake"]["columns"]
    assert set(columns) == {"ours", "literal"}
    assert columns["literal"]["command"] == "policyspace reproduce first-fake --as-published"


def test_a_miniature_says_so(tmp_path, fakes):
    Results(tmp_path, RunSize(quick=True), ORDER).add("first-fake", records(1))
    Results(tmp_path, RunSize(runs=3), ORDER).add("second-fake", records(2))
    page = words(tmp_path / "index.html")
    assert "A miniature: first-fake. A quick look" in page
    assert "Not the paper's number of runs ( --runs ): second-fake." in page
    assert "policyspace reproduce first-fake --quick" in page and "policyspace reproduce second-fake --runs 3" in page


def test_the_same_records_give_the_same_bytes(tmp_path, fakes):
    for folder in (tmp_path / "a", tmp_path / "b"):
        Results(folder, RunSize(), ORDER).add("first-fake", records(1))
    for name in ("index.html", "results.json", "figures/fake-1-0.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_numbers_are_plain_json(made):
    results = json.loads((made / "results.json").read_text(encoding="utf-8"))
    assert list(results["experiments"]) == ["first-fake", "second-fake"]
    entry = results["experiments"]["first-fake"]
    column = entry["columns"]["ours"]
    assert column["num_cells"] == 1 and column["seconds_of_computing"] == 61.5 and entry["authors_hours"] == 1234.5
    panel = column["panels"][0]
    assert panel["numbers"] == {"rate": 0.41, "margin": None, "counts": [0, 1, 2]}
    assert panel["verdict"] == "holds" and len(panel["rows"]) == 4 and len(panel["columns"]) == len(panel["rows"][0])


def test_a_number_stays_with_its_interval(made):
    page = (made / "index.html").read_text(encoding="utf-8")
    assert page.count('<td><span class="line">0.410 ± 0.052</span></td>') == 24
    assert page.count('<th scope="col">β̂ <span class="line">(95 % interval)</span></th>') == 6


def test_figures_on_one_page_share_no_names():
    svg = (
        '<?xml version="1.0"?><svg width="10pt" height="5pt" viewBox="0 0 10 5" xmlns:xlink="x"><style>*{}</style>'
        '<defs><path id="m"/><clipPath id="c"/></defs><use xlink:href="#m" clip-path="url(#c)"/></svg>'
    )
    one, other = (inline_svg(svg, name, 'a "title"') for name in ("one", "other"))
    names = [set(re.findall(r'id="([^"]+)"', text)) for text in (one, other)]
    assert names == [{"one-m", "one-c"}, {"other-m", "other-c"}]
    assert 'href="#one-m" clip-path="url(#one-c)"' in one
    assert 'aria-label="a &quot;title&quot;"' in one and "<style" not in one and "10pt" in one


HOSTILE = "<script>alert(1)</script>\"'&\x1b\x9b\u202e"


def everywhere(value, keep=("name", "verdict", "figure", "quick", "runs")):
    """Results in which every word is hostile, but those that must be one of a few."""
    if isinstance(value, dict):
        return {key: inside if key in keep else everywhere(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [everywhere(inside) for inside in value]
    return HOSTILE if isinstance(value, str) else value


def test_words_from_the_file_of_results_stay_words(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    results = everywhere(json.loads((tmp_path / "results.json").read_text(encoding="utf-8")))
    name, entry = next(iter(results["experiments"].items()))
    ours = entry["columns"]["ours"]
    more = {"columns": {"ours": ours | {"runs": 7, "quick": False}}}
    results["experiments"] = {name: entry | {"columns": {"ours": ours | {"quick": True}}}, HOSTILE: entry | more}
    (tmp_path / "results.json").write_text(json.dumps(results), encoding="utf-8")
    write_page(tmp_path, (name,))
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page and not any(c in page for c in "\x1b\x9b\u202e")
    assert page.count("&lt;script&gt;") > 20 and Text(page).open == []


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../../secret"},
        {"name": HOSTILE},
        {"verdict": HOSTILE},
        {"rows": [[HOSTILE]], "columns": 5},
        {"title": None},
    ],
)
def test_a_crafted_file_of_results_is_refused_in_a_sentence(made, tmp_path, change):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    next(iter(results["experiments"].values()))["columns"]["ours"]["panels"][0] |= change
    (tmp_path / "results.json").write_text(json.dumps(results), encoding="utf-8")
    with pytest.raises(InputError, match="is not a file of results"):
        write_page(tmp_path, ())


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        "<g onload='x'/>",
        '<g onload="x"/>',
        '<image xlink:href="https://example.org/x.png"/>',
        '<use xlink:href="javascript:x"/>',
        '<g style="fill: url(https://example.org)"/>',
        "<foreignObject/>",
        "<!--><script>alert(1)</script>-->",
        "<!-- x --!><script>alert(1)</script>",
    ],
)
def test_a_figure_is_a_drawing_and_nothing_else(inside):
    svg = f'<svg viewBox="0 0 10 5"><g id="a">{inside}</g></svg>'
    try:
        drawn = inline_svg(svg, "one", "title")
    except ValueError:
        return
    assert "script" not in drawn  # inside a comment, which is left out


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.04, "0.0 s"),
        (45, "45 s"),
        (119, "119 s"),
        (150, "2.5 min"),
        (5400, "90 min"),
        (36000, "10 hours"),
        (3e6, "5.0 weeks"),
    ],
)
def test_durations_in_a_persons_units(seconds, told):
    assert duration(seconds) == told
