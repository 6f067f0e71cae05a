"""A figure's SVG as a part of an HTML page: a drawing alone, no names that meet those of other figures, no fixed size."""

import re

from policyspace.printable import escaped
from policyspace.report.style import DARK

_ROOT = re.compile(r"<svg\b[^>]*>", re.DOTALL)
_ID = re.compile(r'(\sid=")([^"]+)"')
_REFERENCE = re.compile(r'(url\(#|href="#)([^")]+)')
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_LEFT_OUT = re.compile(r"<style\b.*?</style>|<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
_ELEMENT = re.compile(r'</?(?:svg|g|path|use|defs|clipPath|rect|image)((?:\s+[\w:-]+="[^"<>]*")*)\s*/?>')
_ATTRIBUTE = re.compile(r'([\w:-]+)="([^"]*)"')
_HARMLESS = {"id", "d", "style", "transform", "clip-path", "x", "y", "width", "height"}


def inline_svg(svg: str, name: str, title: str) -> str:
    """The <svg> element alone, its identifiers prefixed by a name that is unique on the page, as wide as there is room.

    Its colours are those of the page, so that it can be read in the dark too.
    Matplotlib's style rule is for every element of the document: in a page it moves to the element itself.
    """
    root = _ROOT.search(svg)
    if root is None:
        raise ValueError(f"{name}: expected an SVG with one <svg> element")
    inside = _LEFT_OUT.sub("", svg[root.end() :]).strip()
    _check_drawing(inside, name)
    inside = _ID.sub(rf'\g<1>{name}-\g<2>"', inside)
    inside = _COLOUR.sub(lambda found: f"var(--{found[0][1:]})" if found[0] in DARK else found[0], inside)
    inside = _REFERENCE.sub(rf"\g<1>{name}-\g<2>", inside)
    width, height = _size(root.group())
    label = escaped(title)
    return (
        f'<svg class="figure" role="img" aria-label="{label}" viewBox="0 0 {width:g} {height:g}" '
        f'style="--width: {width:g}pt" stroke-linejoin="round" xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink"><title>{label}</title>{inside}'
    )


def _check_drawing(inside: str, name: str) -> None:
    """Lines, areas and pictures, as Matplotlib draws them, and nothing that a browser would run or fetch."""
    if "<" in _ELEMENT.sub("", inside):
        raise ValueError(f"{name}.svg holds more than a drawing")
    for attributes in _ELEMENT.findall(inside):
        for key, value in _ATTRIBUTE.findall(attributes):
            local = key == "xlink:href" and value.startswith(("#", "data:image/png;base64,"))
            if not (local or key in _HARMLESS) or "url(" in value.replace("url(#", ""):
                raise ValueError(f"{name}.svg holds the attribute {key!r}, which is no part of a drawing")


def _size(root: str) -> tuple[float, float]:
    """The size in points, from the view box."""
    box = re.search(r'viewBox="\s*[\d.]+\s+[\d.]+\s+([\d.]+)\s+([\d.]+)\s*"', root)
    if box is None:
        raise ValueError("expected an <svg> element with a viewBox")
    return float(box.group(1)), float(box.group(2))
