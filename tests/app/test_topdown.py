"""The page TopDown in a real browser: forecast, one debit, cancelling, an uploaded spec, regions as a tree and on a map."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from app.browser import Explorer, running, serious_faults, tab
from louver.data.samples import write_samples
from louver.groups import groups
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.verify import verify
from louver.topdown import area
from topdown_larger import LARGER, write_larger
from topdown_town import BLOCKS, SPEC, write_town

pytestmark = pytest.mark.chromium

READY = "button:has-text('Publish…'):not([disabled])"
CHANGED = "before => ![undefined, before].includes(document.querySelectorAll('.lane')[3]?.innerHTML) && !document.querySelector('.dim')"
SAME_SHAPE = "n => document.querySelector('.regionmap .own')?.getAttribute('d') === document.querySelectorAll('.regionmap path')[n].getAttribute('d')"
STOPPED = (
    ".problem:has-text('nothing was spent'), .problem:has-text('was debited'), .problem:has-text('too late'), "
    ".verdict:has-text('Released')"
)
"""What is told once it is known what became of the debit."""
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("topdown")
    Ledger.create(made / "town.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(9))
    (made / "county").mkdir()  # in one folder, two ledgers of people who share columns would be asked about
    Ledger.create(made / "county" / "county.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(9))
    (made / "releases").mkdir()
    people, domain = made / "people.csv", made / "domain.csv"
    people.write_text(f"state,home\n{HOSTILE},1\n{HOSTILE},1\nB,2\n")
    domain.write_text(f"state\n{HOSTILE}\nB\n")
    out = made / "releases" / HOSTILE
    groups(people, unit="home", regions=["state"], domain=str(domain), max_size=3, epsilon=1, seed=1, out=out)
    first = SPEC.replace("intervals = 0", "intervals = 1").partition("[[topdown.bounds]]")[0]
    bounds = LARGER[LARGER.index("[[topdown.bounds]]") : LARGER.index("[[topdown.rules]]")]
    write_larger(made / "town", first, LARGER.replace(bounds, "").replace('"first"', '"/elsewhere/town"'))
    return made


@pytest.fixture(scope="module")
def explorer(folder: Path) -> Iterator[Explorer]:
    given = [f"--ledger={folder / 'town.ledger'}", f"--releases={folder / 'releases'}"]
    with running(*given, f"--topdown={folder / 'town' / 'town.toml'}") as found:
        yield found


def measure(page: Any, name: str) -> None:
    page.wait_for_selector(READY)
    page.get_by_label("Name of the release").fill(name)
    page.keyboard.press("Tab")
    page.click(READY)
    page.click("dialog[open] >> button:has-text('Measure')")


def test_a_measurement_is_confirmed_and_debits_once(
    browser: Any, explorer: Explorer, folder: Path, axe: str
) -> None:
    with tab(browser, explorer, "topdown") as page:
        page.wait_for_selector(READY)
        before = page.locator(".lane").nth(3).inner_html()
        page.get_by_label("Shares by level: block", exact=True).evaluate(
            "slider => { slider.value = 200; slider.dispatchEvent(new Event('input')) }"
        )
        page.wait_for_function(CHANGED, arg=before)
        page.wait_for_selector(READY)
        page.get_by_label("Name of the release").fill("town")
        page.keyboard.press("Tab")
        page.click(READY)
        page.wait_for_selector("dialog[open] tr:has-text('In the ledger afterwards'):has-text('7')")
        assert Ledger(folder / "town.ledger").state().spent == 0
        page.click("dialog[open] >> button:has-text('Measure')")
        page.wait_for_selector(".verdict:has-text('The ledger had 9 before and has 7 now.')")
        page.wait_for_selector(".foot >> text=7 left")
        page.wait_for_selector("[role=treegrid]")
        page.evaluate(axe)
        assert not serious_faults(page)
        measure(page, "town")
        page.wait_for_selector(".problem:has-text('already exists')")
    state = Ledger(folder / "town.ledger").state()
    assert state.spent == 2 and len(state.sealed) == 1
    assert verify(folder / "releases" / "town").passed


def test_regions_by_keyboard_and_on_a_map(
    browser: Any, explorer: Explorer, folder: Path, tmp_path: Path, axe: str
) -> None:
    """Needs the release of the test before. A property's name and values are hostile."""
    assert (folder / "releases" / "town").exists()
    features = [
        {
            "type": "Feature",
            "properties": {HOSTILE: block, "label": HOSTILE},
            "geometry": {"type": "Polygon", "coordinates": [[[i, 0], [i + 1, 0], [i + 1, 1], [i, 0]]]},
        }
        for i, block in enumerate(BLOCKS)
    ]
    outlines, other = tmp_path / f"{HOSTILE.replace('/', '')}.geojson", tmp_path / "point.geojson"
    outlines.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    point = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [0, 0]}}
    other.write_text(json.dumps({"type": "FeatureCollection", "features": [point]}))
    with tab(browser, explorer, "releases") as page:
        page.click(f"td button:has-text('{HOSTILE}')")
        page.wait_for_selector(f".rname:has-text('{HOSTILE}')")
        page.click("td button:has-text('town')")
        page.wait_for_selector(".rname:has-text('town')")
        page.focus("[role=treegrid]")
        for key in ("ArrowDown", "ArrowRight", "ArrowDown", "ArrowRight", "ArrowDown"):
            page.keyboard.press(key)
        page.wait_for_selector(".rline.sel .rname:has-text('1A1')")
        assert page.get_attribute(".rline.sel", "aria-level") == "4"
        page.get_by_label("Find a region").fill("2b")
        page.keyboard.press("Enter")
        page.wait_for_selector(".rline.sel .rname:has-text('2B')")
        page.set_input_files("#outlines", str(other))
        page.wait_for_selector(".problem:has-text('neither a Polygon nor a MultiPolygon')")
        page.set_input_files("#outlines", str(outlines))
        page.wait_for_selector(".regionmap")
        assert page.get_by_label("Property that names the region").input_value() == HOSTILE
        page.wait_for_selector("text=9 of 9 regions of the level block have an outline.")
        page.locator(".regionmap path").nth(4).click(force=True)
        page.wait_for_selector(f".rline.sel .rname:has-text('{BLOCKS[4]}')")
        page.focus(".regionmap")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector(f".rline.sel .rname:has-text('{BLOCKS[5]}')")
        page.click(".rname:has-text('1A3')")
        page.wait_for_selector(".rline.sel .rname:has-text('1A3')")
        page.wait_for_function(SAME_SHAPE, arg=2)
        page.get_by_role("button", name="Add up regions", exact=True).click()
        page.wait_for_selector("button[aria-pressed=true]:has-text('Add up regions')")
        page.wait_for_selector(".headline:not(.gone)")
        for number in (0, 4):
            page.locator(".regionmap > path").nth(number).click(force=True)
            page.wait_for_function(
                "n => document.querySelectorAll('.regionmap circle').length === n", arg=1 + (number > 0)
            )
        page.wait_for_selector(f".headline:has-text('{area_words(folder, BLOCKS[0], BLOCKS[4])}')")
        page.click("button:text-is('Error')")
        page.wait_for_selector(".legend:has-text('too noisy alone')")
        page.evaluate(axe)
        assert not serious_faults(page)
        page.click("[aria-label='Light or dark']")
        assert not serious_faults(page)
        page.get_by_label("Property that names the region").select_option("label")
        page.wait_for_selector("text=No outline has the name of a region")
        assert page.query_selector(".main img") is None


def area_words(folder: Path, *codes: str) -> str:
    """How the page tells what `louver topdown area` says."""
    total, leaves = (found := area(folder / "releases" / "town", leaves=codes)).total, found.leaves
    return f"{total.count:,} people in {leaves} regions of the level block; 90 % interval {total.lower_90:,} to {total.upper_90:,}"


def test_regions_are_added_up(browser: Any, explorer: Explorer, folder: Path, tmp_path: Path) -> None:
    """In the tree by mouse and keyboard, by a list, by a file, and as a command. Needs the release of the first test."""
    (tmp_path / "area.csv").write_text("name,block\nx,2B1\ny,1\n")
    with tab(browser, explorer, "releases") as page:
        page.click("td button:has-text('town')")
        page.wait_for_selector(".rname:has-text('town')")
        page.get_by_role("button", name="Add up regions", exact=True).click()
        page.get_by_label("In the area: 2", exact=True).click()
        page.wait_for_selector(f".headline:has-text('{area_words(folder, '2')}')")
        page.focus("[role=treegrid]")
        for key in ("ArrowDown", "ArrowRight", "ArrowDown", " "):
            page.keyboard.press(key)
        page.wait_for_selector(f".headline:has-text('{area_words(folder, '2', '1A')}')")
        assert page.get_by_label("In the area: 1", exact=True).evaluate("box => box.indeterminate")
        page.click("summary:has-text('Use a list')")
        page.get_by_label("List of regions", exact=True).fill("1A\nnowhere\n")
        page.get_by_role("button", name="Use this list", exact=True).click()
        page.wait_for_selector(
            ".problem:has-text('The list has no region of the release (such as a block) on row 2')"
        )
        page.set_input_files("#area", str(tmp_path / "area.csv"))
        page.wait_for_selector(f".headline:has-text('{area_words(folder, '2B1', '1')}')")
        page.get_by_role("button", name="Take 2B1 out", exact=True).click()
        page.wait_for_selector(f".headline:has-text('{area_words(folder, '1')}')")
        page.get_by_role("button", name="Copy the area as…", exact=True).click()
        page.wait_for_selector(".drawer pre:has-text('louver topdown area')")
        page.click(".drawer [data-close]")


def test_shares_are_typed(browser: Any, explorer: Explorer) -> None:
    """Slider and field stay in step, what was typed stays while others are typed, and bad input is marked."""
    with tab(browser, explorer, "topdown") as page:
        page.wait_for_selector(READY)
        slider = {
            name: page.get_by_label(f"Shares by level: {name}", exact=True) for name in ("ward", "block")
        }
        field = {
            name: page.get_by_label(f"Shares by level: {name}, percent") for name in ("ward", "area", "block")
        }
        is_value = "([label, value]) => document.querySelector(`[aria-label='${label}']`).value === value"
        field["ward"].fill("40")
        page.keyboard.press("Enter")
        page.wait_for_function(is_value, arg=["Shares by level: ward", "40"])
        page.wait_for_function(is_value, arg=["Shares by level: block, percent", "20"])
        field["block"].fill("10 %")
        page.keyboard.press("Tab")
        page.wait_for_function(is_value, arg=["Shares by level: area, percent", "25"])
        assert field["ward"].input_value() == "40" and slider["block"].input_value() == "10"
        slider["block"].focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function(is_value, arg=["Shares by level: block, percent", "10.5"])
        for bad in ("much", "0", "100"):
            field["area"].fill(bad)
            page.keyboard.press("Enter")
            page.wait_for_selector("[aria-label='Shares by level: area, percent'][aria-invalid=true]")
            field["area"].fill("20")
            page.keyboard.press("Enter")
            page.wait_for_selector("[aria-label='Shares by level: area, percent']:not([aria-invalid])")
        page.wait_for_function(is_value, arg=["Shares by level: area, percent", "20"])


def go_on(page: Any) -> None:
    """Confirm that a paid release goes on."""
    page.click("button:has-text('Go on…')")
    page.wait_for_selector("dialog[open] tr:has-text('before and after'):has-text('7')")
    assert "Spend" not in page.inner_text("dialog[open]")
    page.locator("dialog[open]").get_by_role("button", name="Go on", exact=True).click()


def test_cancelling_leaves_no_debit_without_its_noise(browser: Any, folder: Path) -> None:
    """Wherever it is stopped: what was debited can be drawn again, and going on pays nothing more."""
    write_samples(folder / "samples")
    given = [f"--ledger={folder / 'county' / 'county.ledger'}", f"--releases={folder / 'releases'}"]
    given.append(f"--topdown={folder / 'samples' / 'county.toml'}")
    with running(*given) as explorer, tab(browser, explorer, "topdown") as page:
        measure(page, "county")
        page.wait_for_selector(".run:not(.gone) .stage, .verdict:has-text('Released')")
        page.keyboard.press("Escape")
        page.wait_for_selector(STOPPED)
        state = Ledger(folder / "county" / "county.ledger").state()
        assert state.spent == 2 * (len(state.pending) + len(state.sealed)) <= 2
        if state.spent and not (folder / "releases" / "county").exists():
            go_on(page)
            page.wait_for_selector(".verdict:has-text('Released')")
        elif not (folder / "releases" / "county").exists():
            measure(page, "county")
            page.wait_for_selector(".verdict:has-text('Released')")
    state = Ledger(folder / "county" / "county.ledger").state()
    assert state.spent == 2 and len(state.sealed) == 1 and not state.pending
    assert verify(folder / "releases" / "county").passed


def test_a_spec_is_uploaded_with_what_it_names(browser: Any, explorer: Explorer, tmp_path: Path) -> None:
    """Attributes and a file name are hostile; a path in the spec is never opened, a missing file is named."""
    town = write_town(tmp_path).parent
    hostile = town / f"{HOSTILE.replace('/', '')}.csv"
    (town / "leaves.csv").rename(hostile)
    spec = SPEC.replace('"leaves.csv"', f"'/etc/{hostile.name}'").replace('"ward total"', f"'{HOSTILE}'")
    (town / "town.toml").write_text(spec)
    with tab(browser, explorer, "topdown") as page:
        page.wait_for_selector(READY)
        page.set_input_files("#spec", [str(town / "town.toml"), str(town / "facilities.csv")])
        page.wait_for_selector("tr:has-text('list of regions'):has-text('missing')")
        page.wait_for_selector("tr:has-text('facilities.csv'):has-text('here')")  # both have arrived
        page.set_input_files("#spec", str(hostile))
        page.wait_for_selector("text=The records people.csv are missing")
        page.locator(".card.form").filter(has_text=HOSTILE).wait_for()
        measure(page, "uploaded")
        page.wait_for_selector(".problem:has-text('choose people.csv too')")
        page.click("button:text-is('epsilon, delta')")
        page.get_by_label("delta").wait_for()
        page.wait_for_selector(".card:has-text('o rho implies a pure epsilon')")
        page.wait_for_selector("[data-run][disabled]")
        page.click("[data-copy]")
        page.wait_for_selector(".drawer pre:has-text('END-OF-SPEC')")
        page.click(".drawer [data-close]")
        assert page.query_selector(".main img") is None
        (town / "bad.toml").write_text("[topdown")
        page.set_input_files("#spec", str(town / "bad.toml"))
        page.wait_for_selector(".problem:has-text('not valid TOML')")


def test_a_release_is_extended(browser: Any, explorer: Explorer, folder: Path, axe: str) -> None:
    """From Releases, by an uploaded spec whose path is not followed, paid by the same ledger. Needs the release of the first test."""
    town = folder / "town"
    before = Ledger(folder / "town.ledger").state().spent
    with tab(browser, explorer, "releases") as page:
        page.click("td button:has-text('town')")
        page.wait_for_selector(".rname:has-text('town')")
        page.get_by_role("button", name="Extend…", exact=True).click()
        page.wait_for_selector("text=No ready-made schema refines the attributes of this release.")
        page.set_input_files(
            "#spec", [str(town / name) for name in ("larger.toml", "leaves.csv", "people.csv")]
        )
        page.wait_for_selector("tr:has-text('years'):has-text('age: 2 labels'):has-text('finer')")
        page.wait_for_selector("tr:has-text('sex'):has-text('new')")
        page.wait_for_selector("tr:has-text('Both together'):has-text('epsilon 3')")
        page.wait_for_selector(READY)
        assert page.get_by_label("Release to extend").input_value() == "town"
        assert page.get_by_label("Name of the release").input_value() == "town-extended"
        page.evaluate(axe)
        assert not serious_faults(page)
        page.click(READY)
        page.wait_for_selector("dialog[open] tr:has-text('In the ledger afterwards'):has-text('6')")
        page.click("dialog[open] >> button:has-text('Measure')")
        page.wait_for_selector(".verdict:has-text('The ledger had 7 before and has 6 now.')")
        page.wait_for_selector("[role=treegrid]")
        page.wait_for_selector("text=the release has no intervals")
    assert verify(folder / "releases" / "town-extended").passed
    assert Ledger(folder / "town.ledger").state().spent == before + 1
