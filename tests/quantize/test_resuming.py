"""Calibration that is interrupted, and goes on."""

import pickle

import pytest

from litert_torch.errors import InvalidInputError
from litert_torch.quantize import resuming
from litert_torch.quantize.recipe import OBSERVERS, Recipe
from litert_torch.quantize.resuming import Resumable
from tests.quantize.small_models import Blocks, converted, samples, seeded

pytestmark = pytest.mark.filterwarnings("ignore")

IMAGES = [samples(1, 3, 16, 18, seed=i) for i in range(6)]


class Interrupted(Exception):  # noqa: N818 - stands for Ctrl-C
    pass


class Batches:
    """Batches that count how often they are taken; `fails_at` of all times taken ends it."""

    def __init__(self, fails_at=None):
        self.taken, self.fails_at = 0, fails_at

    def __iter__(self):
        for x in IMAGES:
            if self.taken == self.fails_at:
                raise Interrupted
            self.taken += 1
            yield x


def quantized(calibration, observer="min_max"):
    return converted(seeded(Blocks), IMAGES[0], Recipe.static(
        calibration=calibration, observer=observer
    ))[1]  # fmt: skip


@pytest.fixture(autouse=True)
def writes_each_time(monkeypatch):
    monkeypatch.setattr(resuming, "_EVERY", -1.0)


@pytest.mark.parametrize("observer", OBSERVERS)
def test_it_goes_on_and_gives_the_same_file(tmp_path, observer):
    path, whole = tmp_path / "state", Batches()
    want = quantized(whole, observer)
    for fails_at in (4, whole.taken - 2):
        with pytest.raises(Interrupted):
            quantized(Resumable(Batches(fails_at), path), observer)
        assert path.exists()
    assert quantized(Resumable(IMAGES, path), observer) == want
    assert not path.exists()


def test_batches_that_were_seen_are_not_run_again(tmp_path, monkeypatch):
    from litert_torch.quantize.calibrate import Tapped

    path, ran = tmp_path / "state", []
    run = Tapped.run
    monkeypatch.setattr(Tapped, "run", lambda self, feed: ran.append(1) or run(self, feed))
    with pytest.raises(Interrupted):
        quantized(Resumable(Batches(4), path))
    first = len(ran)
    quantized(Resumable(IMAGES, path))
    resumed = len(ran) - first
    ran.clear()
    quantized(IMAGES)
    assert (first, first + resumed) == (4, len(ran))


def test_another_model_begins_anew(tmp_path):
    path = tmp_path / "state"
    with pytest.raises(Interrupted):
        quantized(Resumable(Batches(4), path))
    other, x = seeded(Blocks), IMAGES[0]
    other.stem.weight.data *= 2
    want = converted(other, x, Recipe.static(calibration=IMAGES))[1]
    recipe = Recipe.static(calibration=Resumable(IMAGES, path))
    assert converted(other, x, recipe)[1] == want


@pytest.mark.parametrize("content", [b"", b"text", pickle.dumps(print), pickle.dumps(("x", {}))])
def test_other_files_are_refused_and_nothing_in_them_runs(tmp_path, content):
    path = tmp_path / "state"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="no file of an interrupted calibration"):
        Resumable(IMAGES, path)
    assert path.read_bytes() == content
