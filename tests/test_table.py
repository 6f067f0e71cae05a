"""One table in four writings: each is read back by another reader than ours, and gives the same cells."""

import io
import json
from html.parser import HTMLParser

import polars as pl
import pytest
from rich.console import Console

from policyspace.display import TextTable
from policyspace.errors import has_control_characters, printable, safe_json

CELLS = [("speed", "0.041", "controlled"), ("left [brake]", "12.5", "no <b>evidence</b> & more"), ("right", "", "x")]
TABLE = TextTable(("group", "p", "verdict"), CELLS)


class Cells(HTMLParser):
    """The words of every row, and the tags that were opened and closed."""

    def __init__(self):
        super().__init__()
        self.rows, self.open, self.tags = [], [], []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def read_html(text):
    reader = Cells()
    reader.feed(text)
    assert reader.open == []
    return reader


def test_html_is_read_back_by_a_parser():
    read = read_html(TABLE.html(caption="a < b"))
    assert [tuple(row) for row in read.rows] == [tuple(TABLE.columns), *CELLS]
    assert "<caption>a &lt; b</caption>" in TABLE.html(caption="a < b")
    scopes = [attributes.get("scope") for tag, attributes in read.tags if tag == "th"]
    assert scopes == ["col"] * 3 + ["row"] * 3


def test_html_takes_attributes_and_words_of_others():
    text = TABLE.html(attributes=" style='text-align:left'", heading=str.upper, cell=lambda words: "·")
    read = read_html(text)
    assert read.rows[0] == ["GROUP", "P", "VERDICT"] and read.rows[1][1:] == ["·", "·"]
    assert all(a["style"] == "text-align:left" for tag, a in read.tags if tag in ("td", "th"))


def test_markdown_is_read_back_as_separated_values():
    table = TextTable(("a", "b"), [("1", "x|y"), ("2", "")])
    lines = table.markdown().splitlines()
    assert lines[1] == "| --- | --- |"
    text = "\n".join([lines[0], *lines[2:]]).replace("\\|", "/")
    read = pl.read_csv(io.StringIO(text), separator="|", infer_schema=False)
    assert [tuple(str(v).strip() for v in row[1:-1]) for row in read.rows()] == [("1", "x/y"), ("2", "")]


@pytest.mark.parametrize("ruled", [False, True])
def test_text_starts_every_column_at_one_place(ruled):
    lines = TABLE.text(ruled).splitlines()
    rule, lines = (lines[1], [lines[0], *lines[2:]]) if ruled else (None, lines)
    end = lines[0].index(" p ") + 2  # of the numbers, which are aligned on the right
    starts = [0, end - len("0.041"), lines[0].index("verdict")]
    ends = [*starts[1:], None]
    cut = [tuple(line[a:b].strip() for a, b in zip(starts, ends, strict=True)) for line in lines]
    assert cut == [tuple(TABLE.columns), *CELLS]
    assert rule is None or [len(part) for part in rule.split("  ")] == [12, 5, 25]
    assert not any(line.endswith(" ") for line in lines)


def on_a_screen(table, width):
    screen = io.StringIO()
    Console(file=screen, width=width).print(table)
    return screen.getvalue()


def test_a_terminal_shows_names_in_brackets_and_numbers_on_the_right():
    shown = on_a_screen(TABLE.rich(right=("p",)), 100).splitlines()
    assert "left [brake]" in shown[2]
    assert shown[1].index("0.041") + 5 == shown[2].index("12.5") + 4


def test_long_cells_are_broken_only_where_that_is_allowed():
    long = TextTable(("a",), [("word " * 30,)])
    assert len(on_a_screen(long.rich(broken=True), 40).splitlines()) > 3
    assert len(on_a_screen(long.rich(), 40).splitlines()) == 2


def test_controls_in_cells_are_written_out_in_every_writing():
    table = TextTable(("a\x1b", "b"), [("x\x9b\u202ey", "<b>[link](javascript:x)|\n")])
    screen = Console(file=io.StringIO(), width=200)
    screen.print(table.rich())
    for text in (table.text(), table.markdown(), table.html(), screen.file.getvalue()):
        assert "a\\x1b" in text and "x\\x9b\\u202ey" in text
        assert not any(c in text for c in "\x1b\x9b\u202e")
    assert "<b>" not in table.markdown() and "](" not in table.markdown()
    assert len(table.text().splitlines()) == 2 and len(table.markdown().splitlines()) == 3


@pytest.mark.parametrize("words", ["plain", "λ ≤ 0.05", "नमस्ते", "می‌خواهم", "👩‍👩‍👧", "a b"])
def test_words_of_all_scripts_stay_as_they_are(words):
    assert printable(words) == words


def test_json_stays_the_same_json():
    value = {"a\x1b\x9b\u202e\U000e0001\ud800λ": "line\nbreak\x7f"}
    text = safe_json(json.dumps(value, ensure_ascii=False, indent=1))
    assert json.loads(text) == value
    assert all(not has_control_characters(c) or c == "\n" for c in text)
