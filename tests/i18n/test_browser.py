"""Two visitors with two languages at once, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.browser import Visit, served, visit
from tests.support.synthetic import make_run

pytestmark = pytest.mark.browser

HAN = re.compile("[\u3400-\u9fff]")


def shows(seen: Visit, key: str, name: str) -> None:
    """A choice says this, now or once the page has been drawn."""
    expect(seen.page.locator(f".st-key-{key} input").first).to_have_value(name, timeout=60_000)


def choose(seen: Visit, key: str, name: str) -> None:
    seen.page.locator(f".st-key-{key} input").first.click()
    seen.page.get_by_role("option", name=name, exact=True).click()


def headline(seen: Visit) -> str:
    return seen.page.locator(".uw-headline").inner_text()


def test_switch_keeps_what_was_chosen_and_visitors_do_not_mix(tmp_path: Path) -> None:
    make_run(tmp_path, steps=40, epochs=2, status="running")
    with served(tmp_path) as url, visit() as seen:
        seen.open(f"{url}/weight_curve?epoch=0", charts=1)
        shows(seen, "epoch", "Epoch 0")
        choose(seen, "lang", "中文")
        seen.page.get_by_role("heading", name="权重曲线", exact=True).wait_for()
        seen.page.wait_for_url("**lang=zh**")
        seen.settle(charts=1)
        shows(seen, "epoch", "第 0 轮")

        other = Visit(seen.page.context.new_page())
        other.open(f"{url}/weight_curve", charts=1)
        # the live parts draw themselves again and again meanwhile, in threads of their own
        for _turn in range(3):
            other.page.wait_for_timeout(1500)
            assert HAN.search(headline(seen))
            assert not HAN.search(headline(other))
        other.page.close()

        seen.press_slider("center", "ArrowRight")
        seen.page.wait_for_url("**center=**")
        seen.settle(charts=1)
        shows(seen, "epoch", "第 0 轮")
        families = seen.page.evaluate("getComputedStyle(document.querySelector('h1')).fontFamily")
        assert "Noto Sans CJK SC" in families
        assert seen.page.evaluate("document.documentElement.lang") == "zh-Hans"
        assert seen.exceptions() == []
        assert seen.foreign_hosts() == set()
