"""Blocks, counters, limits and refusals of the noise sources; their laws: exact/ and statistical/."""

import copy
import gc
import linecache
import os
import pickle
import subprocess
import sys
import threading
import weakref
from fractions import Fraction

import attrs
import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from onlineic.errors import ForkedSessionError, InternalError, InvalidParameterError, SessionStateError
from onlineic.noise import Noise, SimulatedNoise, SystemNoise, public_generator, scale_at_least
from onlineic.noise import blocks as _blocks
from onlineic.noise import sources as noise_module
from onlineic.noise.blocks import Blocks
from onlineic.testing import ScriptedNoise
from support.events import FOR_EVER

SCALE = Fraction(37, 10)
DRAWS = {  # every method, at a fixed scale
    "words": lambda noise, size: noise.words(size),
    "geometric": lambda noise, size: noise.geometric(SCALE, size),
    "discrete_laplace": lambda noise, size: noise.discrete_laplace(SCALE, size),
    "discrete_gaussian": lambda noise, size: noise.discrete_gaussian(100, size),
}
SOURCES = {"system": SystemNoise, "simulated": lambda: SimulatedNoise(7)}
each_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
each_source = pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)


def counting_blocks(block=4, held=None):
    """Blocks whose values are 1, 2, 3, .. for each key, so that a lost or repeated one shows."""

    def opener(key):
        counter = iter(range(1, 10**6))
        return lambda: np.array([next(counter) for _ in range(block)], np.int64)

    return Blocks(opener, held=held)


def held_values(noise):
    """Every number that the blocks of a source hold, used or not."""
    blocks = noise._blocks
    return np.concatenate([block.values for block in blocks._by_key.values()]).tolist()


@each_source
@each_draw
def test_draws_have_the_size_and_type_asked_for(make, draw):
    noise = make()
    sizes = [0, 1, 3, 5000, 2]
    values = [draw(noise, size) for size in sizes]

    assert sizes == [value.size for value in values]
    assert {np.dtype(np.uint64 if draw is DRAWS["words"] else np.int64)} == {value.dtype for value in values}
    assert isinstance(noise, Noise)


def test_only_simulated_noise_says_so():
    assert [False, True, True] == [
        SystemNoise().simulated,
        SimulatedNoise(0).simulated,
        ScriptedNoise([]).simulated,
    ]


@each_draw
def test_simulated_values_do_not_depend_on_how_calls_are_chunked(draw):
    sizes = [1, 5, 0, 250, 1, 4090, 3, 10_000, 1, 1]
    whole = draw(SimulatedNoise(7), sum(sizes))
    noise = SimulatedNoise(7)
    chunks = [draw(noise, size) for size in sizes]

    assert whole.tolist() == np.concatenate(chunks).tolist()


@each_draw
def test_simulated_values_do_not_depend_on_what_is_drawn_in_between(draw):
    alone = draw(SimulatedNoise(7), 600)
    noise = SimulatedNoise(7)
    chunks = []
    for _ in range(6):
        for other in DRAWS.values():
            if other is not draw:
                other(noise, 97)
        noise.discrete_laplace(Fraction(5), 3)
        noise.discrete_gaussian(5, 3)
        chunks.append(draw(noise, 100))

    assert alone.tolist() == np.concatenate(chunks).tolist()


def test_every_part_of_method_and_scale_names_a_stream_of_its_own():
    keys = [
        (2, 1, 1),
        (1, 1, 1),
        (2, 2, 1),
        (2, 1, 2),
        (2, 2**32 + 1, 1),
        (2, 1, 2**32 + 1),
        (2, 2**33 + 1, 1),
    ]

    assert len(keys) == len({noise_module._stream(7, key)(16) for key in keys})


@each_draw
def test_seeds_decide_simulated_values(draw):
    first, again, other = (draw(SimulatedNoise(seed), 100).tolist() for seed in (7, 7, 8))

    assert first == again
    assert first != other


def test_equal_scales_are_one_stream_however_they_are_written():
    noise = SimulatedNoise(7)
    together = np.concatenate([noise.geometric(scale, 50) for scale in (Fraction(4, 2), 2, np.int64(2))])

    assert SimulatedNoise(7).geometric(Fraction(2), 150).tolist() == together.tolist()


@each_draw
def test_two_system_sources_differ(draw):
    assert draw(SystemNoise(), 100).tolist() != draw(SystemNoise(), 100).tolist()


@each_draw
@pytest.mark.parametrize("size", [1, 10, 255, 300, 5000, 20_000])
def test_unread_values_come_first_in_the_next_call(draw, size):
    sequence = draw(SimulatedNoise(7), size + 50).tolist()
    count = size // 2 + 1
    noise = SimulatedNoise(7)
    draw(noise, size)
    noise.unread(count, noise.calls - 1)

    assert sequence[size - count :] == draw(noise, count + 50).tolist()


@each_draw
def test_unread_waits_for_its_method_and_scale(draw):
    sequence = draw(SimulatedNoise(7), 20).tolist()
    noise = SimulatedNoise(7)
    draw(noise, 10)
    noise.unread(4, noise.calls - 1)
    noise.discrete_laplace(Fraction(5), 30)
    noise.discrete_gaussian(5, 30)

    assert sequence[6:] == draw(noise, 14).tolist()


def test_unread_restores_what_was_drawn_and_not_what_the_caller_made_of_it():
    sequence = SimulatedNoise(7).discrete_laplace(SCALE, 10).tolist()
    noise = SimulatedNoise(7)
    drawn = noise.discrete_laplace(SCALE, 10)
    drawn += 1000
    noise.unread(10, noise.calls - 1)

    assert sequence == noise.discrete_laplace(SCALE, 10).tolist()


@each_source
@pytest.mark.parametrize("count", [-1, 4, 1.0, True, None])
def test_unread_gives_back_at_most_the_most_recent_call(make, count):
    noise = make()
    noise.words(100)
    noise.discrete_laplace(SCALE, 3)

    with pytest.raises(InvalidParameterError, match="count must be an integer >= 0 and <= 3, got count="):
        noise.unread(count, noise.calls - 1)


@each_source
def test_a_call_is_unread_once(make):
    noise = make()
    noise.discrete_laplace(SCALE, 3)
    noise.unread(2, noise.calls - 1)

    with pytest.raises(InvalidParameterError, match="count must be an integer >= 0 and <= 0, got count=1"):
        noise.unread(1, noise.calls - 1)


def test_nothing_is_unread_before_the_first_call():
    with pytest.raises(InvalidParameterError, match="count must be an integer >= 0 and <= 0, got count=1"):
        SystemNoise().unread(1, -1)


def in_a_thread(act):
    worker = threading.Thread(target=act)
    worker.start()
    worker.join()


@pytest.mark.parametrize("run", [lambda act: act(), in_a_thread], ids=["a handler", "another thread"])
@each_draw
def test_nothing_is_given_back_of_a_call_after_which_another_drew(draw, run):
    """Planted before: the words of a handler that drew in between came again, in the place of one's own."""
    noise, between, sequence = SimulatedNoise(7), [], draw(SimulatedNoise(7), 40).tolist()
    since = noise.calls
    draw(noise, 10)
    run(lambda: between.extend(draw(noise, 10).tolist()))
    noise.unread(9, since)

    assert (sequence[10:20], sequence[20:]) == (between, draw(noise, 20).tolist())


def test_a_handler_that_draws_in_the_middle_of_a_draw_is_refused_and_the_draw_goes_on():
    """Planted before: it waited for ever for the lock of its own thread."""
    caught = []

    def draw():
        with pytest.raises(SessionStateError, match="noise must be asked one call at a time"):
            blocks.take((1, 1, 1), 2)
        with pytest.raises(SessionStateError):
            blocks.take_one((0, 1, 1))
        with pytest.raises(SessionStateError) as refused:
            blocks.unread(0, 0)
        caught.append(refused.value)
        return np.arange(1, 5)

    blocks = Blocks(lambda key: draw, held=None)

    assert [1, 2, 3] == blocks.take((0, 1, 1), 3).tolist()
    assert (1, 4, 1) == (len(caught), blocks.take_one((0, 1, 1)), blocks.take_one((0, 1, 1)))


def test_threads_share_a_source_without_a_value_twice():
    expected = sorted(SimulatedNoise(7).words(12_000).tolist())
    noise = SimulatedNoise(7)
    drawn = []
    workers = [
        threading.Thread(target=lambda: drawn.extend(int(noise.words(1)[0]) for _ in range(3000)))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert expected == sorted(drawn)


@pytest.mark.parametrize("sizes", [[1, 1, 1], [3, 2, 4], [4, 4], [9, 1], [0, 30, 7]])
def test_used_values_are_zeroed_by_the_next_call(sizes):
    blocks = counting_blocks()
    for size in sizes:
        blocks.take((0, 1, 1), size)
    blocks.take((1, 1, 1), 1)
    used = set(range(1, sum(sizes) + 1))

    assert set() == used & set(blocks._by_key[0, 1, 1].values.tolist())


@pytest.mark.parametrize(
    "calls",
    [[1] * 11, [1, 3, 1, 1, 9, 1, 1], [2, -2, 1, 1, 1], [3, -1, 1, 1, 4, 1], [1, -1, 1, 1], [0, 1, 0, 1]],
)
def test_one_value_after_the_other_is_the_sequence_of_all_and_those_used_are_zeroed(calls):
    """A call of more than one is `take`, one below 0 `unread`: what it gives back comes first again."""
    blocks, taken = counting_blocks(), []
    for size in calls:
        if size < 0:
            blocks.unread(-size, blocks.calls - 1)
            del taken[size:]
        elif size == 1:
            taken.append(blocks.take_one((0, 1, 1)))
        else:
            taken += blocks.take((0, 1, 1), size).tolist()
    held = blocks._by_key[0, 1, 1]

    assert taken == [*range(1, len(taken) + 1)]
    assert set(taken[:-1]).isdisjoint(held.values[: held.start].tolist())
    blocks.take_one((0, 1, 1))
    assert set(taken).isdisjoint(held.values.tolist())
    assert held.values[held.at :].tolist() == [*range(len(taken) + 2, held.values[-1] + 1)]


def test_a_block_that_made_room_for_its_refill_is_zeroed():
    """The values that were left are in the new one: the old one could lie in memory for long."""
    blocks = counting_blocks()
    blocks.take((0, 1, 1), 3)
    old = blocks._by_key[0, 1, 1].values
    blocks.take((0, 1, 1), 2)

    assert [0] * 4 == old.tolist()
    assert [6, 7, 8] == blocks.take((0, 1, 1), 3).tolist()


def test_unread_zeroes_what_it_leaves_used():
    blocks = counting_blocks()
    blocks.take((0, 1, 1), 3)
    blocks.unread(1, blocks.calls - 1)

    assert [0, 0, 3, 4] == blocks._by_key[0, 1, 1].values.tolist()


def test_system_values_are_not_held_after_the_next_call():
    noise = SystemNoise()
    drawn = set(noise.words(1000).tolist())
    noise.words(1)

    assert set() == drawn & set(np.array(held_values(noise), np.int64).view(np.uint64).tolist())


def test_a_long_call_leaves_no_long_block():
    noise = SystemNoise()
    noise.discrete_laplace(SCALE, 100_000)
    noise.discrete_laplace(SCALE, 1)
    noise.words(1)

    assert len(held_values(noise)) <= 3 * 4096


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_an_interrupted_refill_loses_no_block_that_was_whole_and_repeats_none(failures):
    stops = iter([False, False, *[True] * failures])
    counter = iter(range(1, 1000))

    def draw():
        if next(stops, False):
            raise KeyboardInterrupt
        return np.array([next(counter) for _ in range(4)], np.int64)

    blocks = Blocks(lambda key: draw, held=None)
    taken = blocks.take((0, 1, 1), 6).tolist()
    for _ in range(failures):
        with pytest.raises(KeyboardInterrupt):
            blocks.take((0, 1, 1), 3)
    taken += blocks.take((0, 1, 1), 3).tolist()

    assert list(range(1, 10)) == taken


def test_an_interruption_at_any_line_hands_out_no_value_twice_and_no_zeroed_one(monkeypatch):
    """Ctrl-C before each line of the blocks in turn: afterwards draws go on, at worst with values skipped."""
    monkeypatch.setattr(_blocks, "_LONG", 3)
    key, other = (0, 1, 1), (1, 1, 1)

    def work(blocks, taken):
        for at, size, count in [(key, 3, 1), (key, 1, 0), (other, 1, 0), (key, 8, 2), (key, 1, 0)]:
            values = [(at, value) for value in blocks.take(at, size).tolist()]
            taken += values[: size - count]
            if count:
                blocks.unread(count, blocks.calls - 1)

    def interrupt_at(line):
        steps = iter(range(line + 1))

        def local(frame, event, argument):
            if event != "line" or "with self._lock" in linecache.getline(_blocks.__file__, frame.f_lineno):
                return local  # CPython delivers no signal between a block and the lock's release
            if next(steps, line) == line:
                sys.settrace(None)
                raise KeyboardInterrupt
            return local

        return lambda frame, event, argument: local if frame.f_code.co_filename == _blocks.__file__ else None

    line, interrupted = 0, True
    while interrupted:
        blocks, taken = counting_blocks(), []
        before = sys.gettrace()
        try:
            sys.settrace(interrupt_at(line))
            work(blocks, taken)
            interrupted = False
        except KeyboardInterrupt:
            line += 1
        finally:
            sys.settrace(before)
        for at, size in [(key, 3), (other, 3), (key, 9)]:
            taken += [(at, value) for value in blocks.take(at, size).tolist()]

        assert 0 not in [value for _, value in taken]
        assert len(taken) == len(set(taken))
    assert line > 50


def test_system_source_holds_a_bounded_number_of_scales():
    noise = SystemNoise()
    for sigma in range(1, 300):
        noise.discrete_gaussian(sigma, 1)

    assert 256 == len(noise._blocks._by_key)
    assert (3, 299, 1) in noise._blocks._by_key
    assert (3, 1, 1) not in noise._blocks._by_key


def test_the_scale_not_used_for_longest_makes_room_and_is_zeroed():
    blocks = counting_blocks(held=2)
    blocks.take((0, 1, 1), 1)
    blocks.take((1, 1, 1), 1)
    evicted = blocks._by_key[1, 1, 1]
    blocks.take((0, 1, 1), 1)
    blocks.take((2, 1, 1), 1)

    assert [(0, 1, 1), (2, 1, 1)] == list(blocks._by_key)
    assert [0, 0, 0, 0] == evicted.values.tolist()


def test_many_scales_do_not_change_simulated_values():
    sequence = SimulatedNoise(7).discrete_gaussian(1000, 40).tolist()
    noise = SimulatedNoise(7)
    first = noise.discrete_gaussian(1000, 20).tolist()
    for sigma in range(1, 300):
        noise.discrete_gaussian(sigma, 1)

    assert sequence == first + noise.discrete_gaussian(1000, 20).tolist()


def test_system_noise_has_no_seed():
    with pytest.raises(TypeError):
        SystemNoise(1)
    with pytest.raises(TypeError):
        SystemNoise(seed=1)


def test_system_noise_shows_nothing():
    noise = SystemNoise()
    drawn = noise.words(50).tolist()
    shown = repr(noise) + str(noise) + f"{noise}" + repr([noise])
    numbers = [str(value) for value in drawn + np.array(held_values(noise)).view(np.uint64).tolist() if value]

    assert "SystemNoise(<hidden>)" == repr(noise)
    assert [] == [number for number in numbers if number in shown]
    with pytest.raises(TypeError):
        vars(noise)


def test_blocks_show_nothing():
    noise = SimulatedNoise(7)
    noise.discrete_laplace(SCALE, 1)
    shown = repr(noise._blocks) + repr(list(noise._blocks._by_key.values()))

    assert "array" not in shown
    assert "[0, " not in shown


def test_simulated_noise_shows_its_seed_only():
    noise = SimulatedNoise(7)
    noise.words(10)

    assert "SimulatedNoise(seed=7)" == repr(noise) == str(noise)


@each_source
@pytest.mark.parametrize(
    "duplicate",
    [
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        lambda noise: copy.deepcopy({"deep": [noise]}),
        lambda noise: [pickle.dumps(noise, protocol) for protocol in range(6)],
    ],
    ids=["copy", "deepcopy", "pickle", "deepcopy of a holder", "old pickles"],
)
def test_noise_refuses_to_be_duplicated(make, duplicate):
    noise = make()
    noise.words(10)

    with pytest.raises(TypeError, match="Noise cannot be copied: "):
        duplicate(noise)


FORK = """
import os, sys
from fractions import Fraction
from onlineic.errors import ForkedSessionError
from onlineic.noise import SimulatedNoise, SystemNoise

noise, simulated = SystemNoise(), SimulatedNoise(1)
noise.discrete_laplace(Fraction(5), 10)
child = os.fork()
if child == 0:
    refused = 0
    calls = [
        lambda: noise.words(1),
        lambda: noise.geometric(Fraction(5), 1),
        lambda: noise.discrete_laplace(Fraction(5), 1),
        lambda: noise.discrete_gaussian(5, 1),
        lambda: noise.unread(1, noise.calls - 1),
    ]
    for call in calls:
        try:
            call()
        except ForkedSessionError as error:
            refused += "noise must be used by the process that made it" in str(error)
    dropped = len(noise._blocks._by_key) == 0 and noise._blocks._latest.values.size == 0
    fresh = SystemNoise().words(1).size == 1
    os._exit(0 if (refused, dropped, fresh) == (5, True, True) else 1)
_, status = os.waitpid(child, 0)
noise.unread(2, noise.calls - 1)
print(os.waitstatus_to_exitcode(status), noise.discrete_laplace(Fraction(5), 12).size)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_is_refused_and_its_parent_goes_on():
    """In a process of its own with one thread: a fork of the test process may warn or deadlock."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", FORK],
        capture_output=True,
        text=True,
        env=environment,
        timeout=FOR_EVER,
        check=False,
    )

    assert ("0 12\n", "", 0) == (run.stdout, run.stderr, run.returncode)


def test_another_process_id_is_refused_even_without_the_fork_hook(monkeypatch):
    noise = SystemNoise()
    noise.words(1)
    monkeypatch.setattr(os, "getpid", lambda: -5)

    with pytest.raises(ForkedSessionError):
        noise.words(1)


def test_what_a_fork_has_duplicated_is_refused_under_every_process_id():
    """Process ids are reused: a grandchild could have that of the process that made the source."""
    noise = SystemNoise()
    noise.words(1)
    noise._disown()

    with pytest.raises(ForkedSessionError):
        noise.words(1)


def test_sources_are_not_kept_alive():
    noise = SystemNoise()
    noise.words(1)
    alive = weakref.ref(noise)
    del noise
    gc.collect()

    assert alive() is None


@each_source
@pytest.mark.parametrize("method", ["geometric", "discrete_laplace"])
@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (Fraction(0), "scale must be positive with numerator and denominator below 2^48, got scale=0; round"),
        (Fraction(-1, 3), "got scale=-1/3; round it up with scale_at_least."),
        (Fraction(2**48), "got scale=281474976710656; "),
        (Fraction(1, 2**48), "got scale=1/281474976710656; "),
        (Fraction(10**5000), "got scale=a ratio of 16610-bit integers; "),
        (0.5, "scale must be a Fraction, got scale=0.5; pass scale_at_least(Fraction(scale))."),
        (float("nan"), "got scale=nan; "),
        (True, "got scale=True; "),
        (None, "got scale=None; "),
        ([1], "got scale=a list; "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_scales_beyond_the_limits_are_refused(make, method, scale, message):
    with pytest.raises(InvalidParameterError) as caught:
        getattr(make(), method)(scale, 1)

    assert message in str(caught.value)


@each_source
@pytest.mark.parametrize("sigma", [0, -3, 2**26 + 1, 2.0, True, None, Fraction(3)])
def test_sigmas_beyond_the_limits_are_refused(make, sigma):
    with pytest.raises(
        InvalidParameterError,
        match=r"sigma must be an integer >= 1 and <= 67108864, got sigma=.*; lower grid",
    ):
        make().discrete_gaussian(sigma, 1)


@each_source
@each_draw
@pytest.mark.parametrize("size", [-1, 1.0, True, None, "3"])
def test_sizes_are_counts(make, draw, size):
    with pytest.raises(InvalidParameterError, match="size must be an integer >= 0, got size="):
        draw(make(), size)


def test_a_refused_call_moves_no_counter():
    sequence = SimulatedNoise(7).discrete_laplace(SCALE, 20).tolist()
    noise = SimulatedNoise(7)
    first = noise.discrete_laplace(SCALE, 10).tolist()
    for scale, size in [(SCALE, -1), (Fraction(0), 1), (0.5, 1)]:
        with pytest.raises(InvalidParameterError):
            noise.discrete_laplace(scale, size)

    assert sequence == first + noise.discrete_laplace(SCALE, 10).tolist()


def test_the_largest_scales_are_drawn():
    noise = SimulatedNoise(7)
    limit = 2**48 - 1

    assert noise.discrete_laplace(Fraction(limit), 100).std() > 2**46
    assert [0] * 100 == noise.geometric(Fraction(1, limit), 100).tolist()
    assert noise.geometric(Fraction(limit, limit - 1), 100).max() > 0
    assert noise.discrete_gaussian(2**26, 100).std() > 2**25


@pytest.mark.parametrize("seed", [-1, 1.0, None, True, "7"])
def test_seeds_are_counts(seed):
    for make in (SimulatedNoise, public_generator):
        with pytest.raises(InvalidParameterError, match="seed must be an integer >= 0, got seed="):
            make(seed)


def test_a_seed_stays_what_it_was():
    with pytest.raises(attrs.exceptions.FrozenAttributeError):
        SimulatedNoise(7).seed = 8


def test_public_generator_is_its_seed_and_no_stream_of_the_noise():
    words = SimulatedNoise(7).words(100).tolist()

    assert public_generator(7).random(10).tolist() == public_generator(7).random(10).tolist()
    assert public_generator(7).random(10).tolist() != public_generator(8).random(10).tolist()
    assert set() == set(words) & set(public_generator(7).bit_generator.random_raw(100).tolist())


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (Fraction(1), Fraction(1)),
        (Fraction(1, 3), Fraction(21846, 2**16)),
        (Fraction(1, 10**12), Fraction(1, 2**16)),
        (Fraction(2**16) - Fraction(1, 2**17), Fraction(2**16)),
        (Fraction(2**16), Fraction(2**16)),
        (Fraction(2**16) + Fraction(1, 2**16), Fraction(2**16 + 1)),
        (Fraction(2**48 - 1), Fraction(2**48 - 1)),
        (5, Fraction(5)),
    ],
)
def test_scale_at_least_by_hand(scale, expected):
    assert expected == scale_at_least(scale)


@hypothesis.given(
    strategies.fractions(min_value=Fraction(1, 10**9), max_value=2**48 - 1, max_denominator=10**12)
)
def test_scale_at_least_is_the_least_representable_scale_not_below(scale):
    rounded = scale_at_least(scale)
    step = Fraction(1, 2**16) if scale < 2**16 else Fraction(1)

    assert scale <= rounded < scale + step
    assert (rounded / step).denominator == 1
    assert rounded == scale_at_least(rounded)
    assert max(rounded.numerator, rounded.denominator) < 2**48


@pytest.mark.parametrize(
    "scale", [0, -1, Fraction(-1, 2**30), 2**48, Fraction(2**49 - 1, 2), 0.1, float("nan"), False, None]
)
def test_scale_at_least_refuses_what_it_cannot_round_up(scale):
    shown = str(scale)

    with pytest.raises(InvalidParameterError) as caught:
        scale_at_least(scale)

    assert f"got scale={shown}; " in str(caught.value)


def test_scripted_noise_plays_its_draws_in_order_and_records_what_was_asked():
    noise = ScriptedNoise([5, -3, 7, 2**64 - 1, -1])

    assert [5] == noise.geometric(Fraction(3, 2), 1).tolist()
    assert [-3, 7] == noise.discrete_laplace(Fraction(4), 2).tolist()
    assert [2**64 - 1] == noise.words(1).tolist()
    assert not noise.exhausted
    assert [-1] == noise.discrete_gaussian(9, 1).tolist()
    assert noise.exhausted
    assert [
        ("geometric", Fraction(3, 2), 1),
        ("discrete_laplace", Fraction(4), 2),
        ("words", None, 1),
        ("discrete_gaussian", 9, 1),
    ] == noise.scales


def test_scripted_noise_plays_unread_draws_again():
    noise = ScriptedNoise([1, 2, 3, 4])
    noise.discrete_laplace(Fraction(4), 3)
    noise.unread(2, noise.calls - 1)

    assert [2, 3, 4] == noise.discrete_laplace(Fraction(4), 3).tolist()
    with pytest.raises(InvalidParameterError, match="count must be an integer >= 0 and <= 3, got count=4"):
        noise.unread(4, noise.calls - 1)


def test_scripted_noise_names_what_its_script_lacks():
    noise = ScriptedNoise([1, 2])
    noise.words(1)

    with pytest.raises(
        InternalError, match=r"got discrete_laplace\(scale=7/2, size=2\) with 1 left; lengthen"
    ):
        noise.discrete_laplace(Fraction(7, 2), 2)
    assert not noise.exhausted
    assert [("words", None, 1)] == noise.scales


@pytest.mark.parametrize(
    ("draws", "draw"),
    [
        ([-1], DRAWS["geometric"]),
        ([-1], DRAWS["words"]),
        ([2**64], DRAWS["words"]),
        ([2**63], DRAWS["discrete_laplace"]),
    ],
)
def test_scripted_noise_refuses_impossible_draws(draws, draw):
    noise = ScriptedNoise(draws)

    with pytest.raises(InvalidParameterError, match=r"draws\[0\] must be an integer >= "):
        draw(noise, 1)
    assert not noise.exhausted


def test_scripted_draws_are_integers():
    with pytest.raises(InvalidParameterError, match=r"draws\[1\] must be an integer, got draws\[1\]=0.5"):
        ScriptedNoise([1, 0.5])
