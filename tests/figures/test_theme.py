import pytest

from uwml_core.figures.theme import fade, theme


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_text_and_data_stand_out_from_the_page(look):
    for name in ("text", "muted", "accent", "warning"):
        assert contrast(getattr(look, name), look.surface) >= 4.5, name
    for name in ("first", "second", "ghost"):
        assert contrast(getattr(look, name), look.surface) >= 3.0, name


def test_numbers_can_be_read_on_their_band(look):
    for band, text in zip(look.bands, look.on_bands, strict=True):
        assert contrast(band, text) >= 4.5


def test_bands_and_epochs_are_ordered_ramps(look):
    for ramp in (look.bands, look.ramp(7)):
        light = [luminance(color) for color in ramp]
        assert light in (sorted(light), sorted(light, reverse=True))
        assert len(set(ramp)) == len(ramp)


def test_directions_get_their_colour_by_position(look):
    assert look.direction("v2t", ("v2t", "t2v")) == look.first
    assert look.direction("t2v", ("v2t", "t2v")) == look.second
    assert look.direction(None, ("v2t", "t2v")) == look.text
    with pytest.raises(ValueError, match="name='i2t' is no direction of this run"):
        look.direction("i2t", ("v2t", "t2v"))


def test_ramp_of_any_length():
    assert theme("light").ramp(0) == []
    assert len(theme("light").ramp(1)) == 1
    assert theme("dark").ramp(2) == list(theme("dark").ramp_ends)


def test_unknown_base_is_refused():
    with pytest.raises(ValueError, match="base='sepia' is unknown; choose light or dark"):
        theme("sepia")


def test_fade_keeps_the_colour():
    assert fade("#000000", 0.5) == "rgba(0, 0, 0, 0.5)"
