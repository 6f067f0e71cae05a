"""The pages of answers in a real browser: light and dark, on a phone and in print, for eyes, keys and screen readers."""

import json
import re
from html.parser import HTMLParser

import jax
import numpy as np
import pytest

from policyspace import InputError, Study, configure, identify, make_world, plan, rollout
from policyspace.errors import printable
from policyspace.report import DARK, INK, PAPER, QUIET, TEXT, page_of
from policyspace.study import Uniform

RNG = np.random.default_rng(8)
X = RNG.normal(size=(300, 4))
FORCE = X[:, 0] - 0.5 * X[:, 2] + RNG.normal(size=300)
HOSTILE = [
    "<script>alert(1)</script>",
    'a & "b" $\\oops$',
    "_tab\there\x1b[31m\x00 -->",
    "distance to the car in front, which is long",
]
KINDS = ("answer", "lean", "plan", "run", "study")

LOOK = """JSON.stringify((() => {
  const number = text => text.match(/[\\d.]+/g).map(Number);
  const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map(i => a * top[i] + (1 - a) * below[i]); };
  const ground = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(number(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const light = rgb => rgb.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const words = [...document.querySelectorAll("main *")].filter(e => !e.closest("svg") &&
    [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()));
  return {
    contrasts: words.map(e => [e.tagName, e.className,
      contrast(over(number(getComputedStyle(e).color), ground(e)), ground(e))]),
    paper: getComputedStyle(document.querySelector(".panel")).backgroundColor,
    figure: getComputedStyle(document.querySelector("svg.figure path")).fill,
    headings: [...document.querySelectorAll("h1, h2, h3")].map(h => Number(h.tagName[1])),
    pictures: [...document.querySelectorAll("svg.figure")].map(s =>
      [s.getAttribute("role"), s.getAttribute("aria-label"), s.querySelector("title").textContent]),
    cells: [...document.querySelectorAll("th")].map(h => h.getAttribute("scope")),
    captions: [...document.querySelectorAll("table")].map(t => t.caption !== null && t.caption.textContent !== ""),
    boxes: [...document.querySelectorAll(".sideways")].map(b =>
      [b.tabIndex, b.getAttribute("role"), b.getAttribute("aria-label")]),
    ids: [...document.querySelectorAll("[id]")].map(e => e.id),
    scripts: document.scripts.length,
    language: document.documentElement.lang,
    width: document.documentElement.scrollWidth,
    room: document.documentElement.clientWidth,
    smallest: Math.min(...words.map(e => parseFloat(getComputedStyle(e).fontSize))),
  };
})())"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    world = make_world("gridworld")
    space = world.policy_space()
    theta = 0.3 * np.random.default_rng(1).normal(size=space.num_parameters)

    def observe(key, omega, num_episodes):
        return rollout(world, space, theta, omega, key, num_episodes)

    run = configure(world, observe, jax.random.key(0), design=Uniform(), episodes=40, max_rounds=1)
    assert len(list(run)) == 2
    study = Study.create(tmp_path_factory.mktemp("study") / "it's.sqlite", "gridworld", design="uniform", episodes=40)
    study.tell(observe(jax.random.key(1), world.check_configuration({}), 40))
    return {
        "answer": identify(X, FORCE, features=HOSTILE),
        "lean": identify(X, FORCE > 0, features=HOSTILE, test="lean"),
        "plan": plan(X, FORCE, features=HOSTILE),
        "run": run,
        "study": study,
    }


@pytest.fixture(scope="module")
def pages(answers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {kind: answer.report(folder / f"{kind}.html") for kind, answer in answers.items()}


@pytest.fixture
def light(browser):
    """A browser that is left as it was."""
    yield browser
    browser.ask("Emulation.setEmulatedMedia", media="", features=[])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1100])
@pytest.mark.parametrize("kind", KINDS)
def test_a_browser_shows_it_to_everyone(light, pages, kind, width, scheme):
    light.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    address = pages[kind].as_uri()
    light.open(address, width)
    found = json.loads(light.evaluate(LOOK))
    assert light.complaints() == []
    assert [url for url in light.requests() if not url.startswith("data:")] == [address], "nothing else was asked for"
    assert found["scripts"] == 0, "no name becomes a script"
    assert found["width"] <= found["room"] <= width, "the page itself never scrolls sideways"
    assert found["smallest"] >= 12
    assert min(contrast for _, _, contrast in found["contrasts"]) >= 4.5, min(found["contrasts"], key=lambda c: c[2])
    colours = {"light": "rgb(255, 255, 255)", "dark": "rgb(26, 33, 41)"}
    assert found["paper"] == found["figure"] == colours[scheme], "figures lie on the page's own paper"


@pytest.mark.parametrize("kind", KINDS)
def test_a_screen_reader_finds_its_way(browser, pages, kind):
    browser.open(pages[kind].as_uri(), 1100)
    found = json.loads(browser.evaluate(LOOK))
    assert found["language"] == "en"
    assert found["headings"][0] == 1 and found["headings"].count(1) == 1 and set(found["headings"][1:]) == {2}
    for role, label, title in found["pictures"]:
        assert role == "img" and label == title and len(label) > 40, "the picture is told in words"
    assert set(found["cells"]) == {"col", "row"} and all(found["captions"])
    assert all(tab == 0 and role == "region" and label for tab, role, label in found["boxes"]), (
        "keys reach what scrolls"
    )
    assert len(found["ids"]) == len(set(found["ids"]))


def test_keys_reach_every_box_and_open_the_details(browser, pages):
    browser.open(pages["answer"].as_uri(), 375)
    reached = set()
    for _ in range(12):
        for kind in ("keyDown", "keyUp"):
            browser.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.add(
            browser.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.tagName")
        )
        if browser.evaluate("document.activeElement.matches('details:not([open]) > summary')"):
            for kind in ("keyDown", "keyUp"):
                browser.ask(
                    "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r"
                )
    assert {"SUMMARY", "PRE", "Table: Assumptions and checks"} <= reached
    assert browser.evaluate("document.querySelector('details').open") is True


@pytest.mark.parametrize("kind", KINDS)
def test_it_prints_on_paper(light, pages, kind):
    """In print nothing is hidden in a box that scrolls, and dark readers print in light."""
    light.open(pages[kind].as_uri(), 700)  # about the width of A4
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    light.ask("Emulation.setEmulatedMedia", media="print", features=dark)
    style = "getComputedStyle(document.querySelector('{}')).{}"
    assert light.evaluate(style.format(".sideways", "overflowX")) == "visible"
    assert light.evaluate(style.format("body", "color")) == "rgb(31, 41, 51)"
    assert light.ask("Page.printToPDF")["data"].startswith("JVBERi")


def contrast(one, other):
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(c * w for c, w in zip(parts, (0.2126, 0.7152, 0.0722), strict=True))

    low, high = sorted([light(one), light(other)])
    return (high + 0.05) / (low + 0.05)


def test_words_in_figures_can_be_read():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for colour in {INK, QUIET, *TEXT.values()}:
        assert contrast(colour, PAPER) >= 4.5
        assert contrast(DARK[colour], DARK[PAPER]) >= 4.5
    for colour, other in DARK.items():
        assert re.fullmatch("#[0-9a-f]{6}", colour) and re.fullmatch("#[0-9a-f]{6}", other)


class Words(HTMLParser):
    """The words of a page, whatever its tags."""

    def __init__(self, page):
        super().__init__()
        self.found, self.hidden = [], 0
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.hidden += tag in ("style", "svg")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("style", "svg")

    def handle_data(self, data):
        if not self.hidden:
            self.found.append(data)


def words(path):
    return " ".join(" ".join(Words(path.read_text(encoding="utf-8")).found).split())


def test_the_page_holds_the_whole_answer(answers, pages):
    page, answer = words(pages["answer"]), answers["answer"]
    assert printable(answer.sentence) in page and "<script>alert(1)</script>" in page
    assert answer.guarantee.text in page
    for row in answer.table().rows:
        for cell in row[1:]:
            assert cell in page
    for assumption in answer.assumptions:
        assert assumption.name in page and assumption.message[1:] in page
    for test in answer.groups:
        assert f"{test.effect_low:.2f} to {test.effect_high:.2f} sd" in page
    assert "significance 0.05" in page and "policyspace.identify(data, actions, features=[" in page
    assert "% " in words(pages["lean"]) and "share of decisions that change" in words(pages["lean"])


def test_plans_and_rounds_hold_theirs(answers, pages):
    page = words(pages["plan"])
    for note in answers["plan"].notes():
        assert note in page
    assert "policyspace.plan(data, actions, " in page
    for kind in ("run", "study"):
        page, answer = words(pages[kind]), answers[kind]
        assert answer.sentence in page
        for note in answer.notes():
            assert note in page
        for row in answer.table().rows:
            assert all(cell in page for cell in row)
        assert "the agent starts in" in page
    assert "policyspace.configure(world, observe, key, design=design, episodes=40, max_rounds=1)" in words(pages["run"])
    assert "policyspace study status '" in words(pages["study"])


def test_names_are_words_wherever_they_stand(pages):
    for kind in ("answer", "lean", "plan"):
        text = pages[kind].read_text(encoding="utf-8")
        assert "<script" not in text and "\x1b" not in text and "\x00" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_what_contradicts_the_assumptions_is_said():
    wavy = identify(X, np.sin(3 * X[:, 0]) * (1 + X[:, 1] ** 2) + 0.05 * RNG.normal(size=300), test="wilks")
    assert wavy.guarantee is None
    text = "\n".join(page_of(wavy))
    assert "No guarantee" in text and 'class="badge bad"' in text and "violated" in text


def test_the_same_answer_gives_the_same_bytes(answers, pages, tmp_path):
    for kind, answer in answers.items():
        assert answer.report(tmp_path / "again.html").read_bytes() == pages[kind].read_bytes()


def test_a_report_is_a_page(answers, tmp_path):
    with pytest.raises(InputError, match=r"\.html"):
        answers["answer"].report(tmp_path / "answer.pdf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_notebooks_show_it(answers, kind):
    shown = answers[kind]._repr_html_()
    assert shown.startswith("<p><b>") and '<th scope="col"' in shown and "<script" not in shown
