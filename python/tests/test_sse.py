"""Server-sent events out of bytes."""

from __future__ import annotations

import pytest

from pyoco_client import BadAnswer
from pyoco_client.sse import Decoder, Frame

STREAM = (
    '\ufeff: hello\nid: 7\nevent: snapshot\ndata: {"a":\ndata:"é日"}\n\n'
    "event: heartbeat\r\ndata: {}\r\n\r\nretry: 5\rdata\r\rdata: lost"
).encode()
EXPECTED = [Frame("snapshot", '{"a":\n"é日"}', "7"), Frame("heartbeat", "{}", "7"), Frame("", "", "7")]


def decoded(*pieces: bytes) -> list[Frame]:
    decoder = Decoder()
    return [frame for piece in pieces for frame in decoder.push(piece)]


def test_events_are_the_same_wherever_the_bytes_are_cut() -> None:
    assert decoded(STREAM) == EXPECTED
    for first in range(len(STREAM) + 1):
        for second in range(first, len(STREAM) + 1):
            assert decoded(STREAM[:first], STREAM[first:second], STREAM[second:]) == EXPECTED
    assert decoded(*(STREAM[at : at + 1] for at in range(len(STREAM)))) == EXPECTED


def test_an_event_without_data_never_happened() -> None:
    assert decoded(b"event: snapshot\nid: 1\n\n\n\n") == []


def test_a_name_ends_with_its_event_and_an_id_stays() -> None:
    found = decoded(b"event: a\nid: 1\ndata: x\n\ndata: y\n\nid\ndata: z\n\n")
    assert found == [Frame("a", "x", "1"), Frame("", "y", "1"), Frame("", "z", "")]


@pytest.mark.parametrize("endless", [b"data: 12345", b"data:1234\n", b"data:\n"])
def test_what_has_no_end_is_refused_before_it_fills_the_memory(endless: bytes) -> None:
    decoder = Decoder(most_bytes=50)
    with pytest.raises(BadAnswer, match="longer than allowed"):
        for _ in range(20):
            decoder.push(endless)
