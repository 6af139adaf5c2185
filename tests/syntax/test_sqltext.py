"""Generated SQL that knows which of its stretches the user wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.syntax.sqltext import Piece, RelationText, SqlText, quoted

USER = "s.val < 25 AND t"


def piece(start: int, stop: int, sql: str = USER) -> Piece:
    return Piece(sql[start:stop], sql, start)


GENERATED = SqlText.of("SELECT (", piece(0, 10), ") FROM ", RelationText("rows"), " WHERE ", piece(15, 16))
NAMES = {"rows": "a_much_longer_name"}


def test_relations_are_named_when_rendered_and_stand_for_themselves_otherwise():
    assert GENERATED.render() == "SELECT (s.val < 25) FROM rows WHERE t"
    assert GENERATED.render(NAMES) == "SELECT (s.val < 25) FROM a_much_longer_name WHERE t"
    assert GENERATED.relations() == ["rows"]


def test_a_relation_that_is_named_twice_is_listed_once():
    assert SqlText.of(RelationText("b"), ", ", RelationText("a"), ", ", RelationText("b")).relations() == [
        "b",
        "a",
    ]


@pytest.mark.parametrize("names", [None, NAMES])
@pytest.mark.parametrize("fragment", ["s.val", "val", "25", "t"])
def test_a_stretch_that_the_user_wrote_is_found_where_they_wrote_it(fragment, names):
    start = GENERATED.render(names).rindex(fragment)
    found = GENERATED.locate(start, start + len(fragment), names)
    assert found is not None
    source, span = found
    assert (source, source[span.start : span.stop]) == (USER, fragment)
    assert span.start == USER.rindex(fragment)


def test_a_stretch_that_begins_in_our_words_is_the_users_part_of_it():
    found = GENERATED.locate(0, 18)
    assert found is not None
    assert USER[found[1].start : found[1].stop] == "s.val < 25"


def test_a_stretch_over_several_pieces_is_the_first_of_them():
    found = GENERATED.locate(8, len(GENERATED.render()))
    assert found is not None
    assert USER[found[1].start : found[1].stop] == "s.val < 25"


@pytest.mark.parametrize(("start", "stop"), [(0, 6), (19, 23), (1000, 1001)])
def test_a_stretch_of_our_words_alone_has_no_place(start, stop):
    assert GENERATED.locate(start, stop) is None


def test_white_space_of_the_user_is_no_place_for_an_error():
    text = SqlText.of(Piece("  ", "  x", 0), "ours ", Piece("x", "  x", 2))
    found = text.locate(0, 8)
    assert found is not None
    assert (found[1].start, found[1].stop) == (2, 3)


@pytest.mark.parametrize(("offset", "character"), [(18, "5"), (19, "5"), (36, "5"), (37, "t"), (1000, "t")])
def test_the_last_character_that_the_user_wrote_before_an_offset(offset, character):
    found = GENERATED.locate_before(offset)
    assert found is not None
    assert USER[found[1].start : found[1].stop] == character


def test_nothing_that_the_user_wrote_stands_before_our_first_words():
    assert GENERATED.locate_before(3) is None


def test_texts_are_joined_with_their_origins():
    joined = SqlText.join(" AND ", (SqlText.of(piece(0, 5)), SqlText.of(piece(15, 16))))
    assert joined.render() == "s.val AND t"
    assert joined.locate(10, 11) == (USER, type(joined.locate(10, 11)[1])(15, 16))
    assert SqlText.join(", ", ()).render() == ""


@pytest.mark.parametrize(("name", "written"), [("a", "`a`"), ("a b", "`a b`"), ("a`b", "`a``b`"), ("", "``")])
def test_a_name_in_backquotes(name, written):
    assert quoted(name) == written


@given(st.lists(st.tuples(st.booleans(), st.text("ab ", min_size=1, max_size=4)), max_size=8))
def test_every_character_that_the_user_wrote_is_found_again(parts):
    user = "".join(text for mine, text in parts if not mine)
    pieces: list[str | Piece] = []
    expected: list[int | None] = []
    at = 0
    for mine, text in parts:
        if mine:
            pieces.append(text)
            expected += [None] * len(text)
        else:
            pieces.append(Piece(text, user, at))
            expected += range(at, at + len(text))
            at += len(text)
    generated = SqlText.of(*pieces)
    for offset, place in enumerate(expected):
        found = generated.locate(offset, offset + 1)
        if place is None:
            assert found is None
        elif generated.parts and found is not None:
            assert found == (user, type(found[1])(place, place + 1))
        else:
            assert user[place] == " "  # a piece of white space alone is no place
