from manicap.core.terminal import plain


def test_characters_have_plain_ones_in_their_place():
    assert plain("Čech ±0.5 × 3 – é") == "Cech +-0.5 x 3 - e"
    assert plain("╭──┬╮│┃") == "+--++||"
    assert plain("日\udcff") == "??"


def test_ascii_stays_as_it_is():
    assert plain("a b?\n") == "a b?\n"
