"""Noise is fresh: in every process, after every fork, from the operating system."""

from __future__ import annotations

import copy
import os
import pickle

import pytest

from stillroom.errors import NotSanitised
from stillroom.gate import entropy as entropy_module
from stillroom.gate.entropy import Entropy


def test_a_forked_child_does_not_repeat_its_parent():
    entropy = Entropy()
    entropy.octets(8)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, entropy.octets(16))
        os._exit(0)
    ours = entropy.octets(16)
    theirs = os.read(reader, 16)
    os.waitpid(child, 0)
    assert len(theirs) == 16
    assert ours != theirs


def test_two_streams_differ():
    assert Entropy().octets(16) != Entropy().octets(16)


@pytest.mark.parametrize("copy_it", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_stream_cannot_be_copied(copy_it):
    with pytest.raises(NotSanitised, match="cannot be copied"):
        copy_it(Entropy())


def test_the_key_is_changed_in_time(monkeypatch):
    monkeypatch.setattr(entropy_module, "_BYTES_PER_KEY", 64)
    entropy = Entropy()
    keys = {id(entropy._stream)}
    for _ in range(4):
        entropy.octets(48)
        keys.add(id(entropy._stream))
    assert len(keys) > 1


def test_signs_and_integers_cover_their_range():
    entropy = Entropy()
    assert set(entropy.signs(200).tolist()) == {-1, 1}  # fails once in 2^199
    assert all(0 <= entropy.integer(3) < 8 for _ in range(50))
    assert len(entropy.words(3)) == 3
