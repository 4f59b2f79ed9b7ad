"""Encoders: de-duplication, cache, truncation, controls, and the packaged MiniLM."""

import numpy as np
import pytest

from explorl import encoders
from explorl.errors import ConfigError


class Letters:
    """A stand-in network: counts letters, and remembers what it was asked."""

    def __init__(self):
        self.batches = []

    def embed(self, texts):
        self.batches.append(list(texts))
        return np.array([[text.count(c) for c in "abc"] for text in texts])

    def encoder(self, max_tokens=None, **limits):
        return encoders.Encoder("letters", self.embed, lambda texts: list(map(len, texts)), max_tokens, **limits)


def test_each_distinct_text_is_encoded_once_and_rows_keep_their_order():
    net = Letters()
    encode = net.encoder(batch_size=2)
    vectors = encode(["aaa", "b", "aaa", "cc"])
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[3, 0, 0], [0, 1, 0], [3, 0, 0], [0, 0, 2]]
    assert net.batches == [["b", "cc"], ["aaa"]], "sorted by length, two at a time"
    assert encode.stats == encoders.Stats(asked=4, distinct=3, hits=0, encoded=3, truncated=0)


def test_the_cache_answers_later_calls_and_is_bounded():
    net = Letters()
    encode = net.encoder(cache_size=2)
    encode(["a", "b"])
    encode(["a"])
    assert encode.stats.hits == 1 and len(net.batches) == 1
    encode(["c"])  # pushes out "b", the least recently used
    encode(["a"])
    assert len(net.batches) == 2
    encode(["b"])
    assert net.batches[-1] == ["b"]


def test_more_texts_than_the_cache_holds_are_still_all_returned():
    encode = Letters().encoder(cache_size=1)
    assert encode(["a", "b", "c"]).tolist() == np.eye(3).tolist()


def test_no_texts():
    encode = Letters().encoder()
    assert encode([]).shape == (0, 0) and encode.count_tokens([]).shape == (0,)
    assert encode.truncated_share == 0.0


def test_truncated_texts_are_counted_with_repeats_and_from_the_cache():
    encode = Letters().encoder(max_tokens=3)
    encode(["aaaa", "aaaa", "b", "c"])
    encode(["aaaa"])
    assert encode.stats.truncated == 3 and encode.truncated_share == 3 / 5


def test_a_huge_text_is_cut_before_the_network_sees_it():
    net = Letters()
    encode = net.encoder(max_tokens=3)
    encode(["a" * 1_000_000])
    assert len(net.batches[0][0]) < 1_000 and encode.stats.truncated == 1


@pytest.mark.parametrize("name", encoders.CONTROLS)
def test_controls_depend_on_the_text_alone(name):
    one, other = encoders.load(name), encoders.load(name)
    first = one(["add all three", "multiply", "\ud800 odd \0"])
    np.random.seed(1)
    assert np.array_equal(first, other(["warm-up", "add all three", "multiply", "\ud800 odd \0"])[1:])
    assert np.allclose(np.linalg.norm(first, axis=1), 1)


def test_the_random_control_sees_no_meaning_and_the_constant_one_no_difference():
    random, constant = encoders.load("random")(["a", "b"]), encoders.load("constant")(["a", "b"])
    assert abs(float(random[0] @ random[1])) < 0.3
    assert np.array_equal(constant[0], constant[1])


@pytest.mark.parametrize("setting", [{"batch_size": 0}, {"cache_size": -1}, {"dtype": "float8"}])
def test_wrong_limits(setting):
    with pytest.raises(ConfigError, match=next(iter(setting))):
        encoders.load("random", **setting)


def test_an_encoder_that_is_not_here_names_itself_and_the_way_to_get_it():
    with pytest.raises(ConfigError, match="python -m explorl fetch nobody/no-such-encoder") as caught:
        encoders.load("nobody/no-such-encoder")
    assert caught.value.field == "encoder" and caught.value.value == "nobody/no-such-encoder"


@pytest.fixture(scope="module")
def minilm():
    return encoders.load("minilm")


SAME = ["First add the two numbers, then add the third.", "Sum the first two numbers, then add the last one."]
OTHER = "Draw the triangle and use the theorem of Pythagoras."


def test_minilm_has_384_unit_dimensions_and_puts_paraphrases_together(minilm):
    a, b, c = minilm([*SAME, OTHER])
    assert a.shape == (384,) and np.allclose([a @ a, b @ b, c @ c], 1, atol=1e-5)
    assert a @ b > 0.8 > 0.5 > a @ c


def test_minilm_vectors_do_not_depend_on_batch_mates(minilm):
    alone = encoders.load("minilm", batch_size=1)
    texts = [*SAME, OTHER, "x"]
    assert np.allclose(alone(texts), minilm(texts), atol=1e-5)
    backwards = encoders.load("minilm", batch_size=1)(texts[::-1])[::-1]
    assert np.array_equal(alone(texts), backwards), "to the last bit with batch_size=1"


def test_minilm_in_bfloat16_gives_nearly_the_same_cosines(minilm):
    texts = [*SAME, OTHER]
    H, B = minilm(texts), encoders.load("minilm", dtype="bfloat16")(texts)
    assert B.dtype == np.float32 and 0 < np.abs(H @ H.T - B @ B.T).max() < 0.02


def test_minilm_reads_256_word_pieces(minilm):
    head = "add " * 300
    before = minilm.stats.truncated
    a, b = minilm([head + "seven", head + "nothing of the kind"])
    assert minilm.max_tokens == 256 and minilm.stats.truncated == before + 2
    assert np.allclose(a, b, atol=1e-6), "what differs after the window is not seen"
    assert minilm.count_tokens(["add", head]).tolist() == [3, 302]


@pytest.mark.parametrize("text", ["", "\0", "\u202e right to left", "🦙" * 50, "\ud800"])
def test_minilm_encodes_odd_texts(minilm, text):
    assert np.isfinite(minilm([text])).all()
