"""Folders of images and arrays as calibration data."""

import numpy as np
import pytest

from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value
from litert_torch.errors import InvalidInputError
from litert_torch.quantize.calibration_data import feeds
from litert_torch.quantize.calibration_files import CalibrationFiles

Image = pytest.importorskip("PIL.Image")


def graph(*shapes, dtype=DType.FLOAT32):
    names = [f"args_{i}" for i in range(len(shapes))]
    inputs = [Value(TensorType(s, dtype)) for s in shapes]
    return Graph(inputs=inputs, name="serving_default", input_names=names)


@pytest.fixture
def folder(tmp_path):
    """Images of one color each: red i * 20, green 100, blue 0; some in a folder of their own."""
    (tmp_path / "more").mkdir()
    for i in range(5):
        pixels = np.full((10 + i, 30, 3), (i * 20, 100, 0), np.uint8)
        where = tmp_path / "more" if i == 4 else tmp_path
        Image.fromarray(pixels).save(where / f"{i}.png")
    (tmp_path / "notes.txt").write_text("no image")
    return tmp_path


MEAN, STD = (10.0, 20.0, 30.0), (2.0, 4.0, 5.0)


@pytest.mark.parametrize("shape", [(1, 3, 8, 6), (1, 8, 6, 3)])
def test_images_have_the_layout_of_the_input(folder, shape):
    data = CalibrationFiles(folder, mean=MEAN, std=STD)
    found = [f["args_0"] for f in feeds(data, graph(shape))]
    assert [x.shape for x in found] == [shape] * 5
    channels_last = shape[-1] == 3
    for i, x in enumerate(found):
        pixel = x[0, 3, 2] if channels_last else x[0, :, 3, 2]
        np.testing.assert_allclose(pixel, ((i * 20 - 10) / 2, 20, -6), rtol=1e-6)


def test_batches_are_filled_up_and_the_number_limited(folder):
    seen = []
    data = CalibrationFiles(folder, mean=0, std=1, progress=lambda *n: seen.append(n))
    found = [f["args_0"] for f in feeds(data, graph((2, 3, 8, 6)))]
    assert [x[:, 0, 0, 0].tolist() for x in found] == [[0, 20], [40, 60], [80, 0]]
    assert seen == [(2, 5), (4, 5), (5, 5)]
    few = CalibrationFiles(folder, mean=0, std=1, limit=2)
    assert [p.name for p in few.paths] == ["0.png", "4.png"]


def test_gray_images(folder):
    (x, *_) = feeds(CalibrationFiles(folder, mean=0, std=1), graph((1, 1, 8, 6)))
    assert 50 < x["args_0"].mean() < 70  # the luminance of green 100


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        ([(1, 3, 8, 6)], {}, "say how the model wants their pixels"),
        ([(1, 3, 8, 6)], {"mean": (1, 2), "std": 1}, "mean and std have 2 channels"),
        ([(1, 4, 8, 6)], {"mean": 0, "std": 1}, "has not 1 or 3 channels"),
        ([(4, 8)], {"mean": 0, "std": 1}, "images are for models of one float32 input"),
        ([(1, 3, 8, 6), (2,)], {"mean": 0, "std": 1}, "images are for models of one float32"),
    ],
)
def test_what_does_not_fit_is_named(folder, shapes, options, message):
    with pytest.raises(InvalidInputError, match=message):
        list(feeds(CalibrationFiles(folder, **options), graph(*shapes)))


def test_a_broken_image_is_named(folder):
    (folder / "5.jpg").write_bytes(b"\xff\xd8\xff nothing")
    with pytest.raises(InvalidInputError, match=r"cannot read .*5\.jpg"):
        list(feeds(CalibrationFiles(folder, mean=0, std=1), graph((1, 3, 8, 6))))


def test_arrays_win_over_images_beside_them(folder):
    np.save(folder / "x.npy", np.ones((1, 4), np.float32))
    data = CalibrationFiles(folder)
    assert [f["args_0"].shape for f in feeds(data, graph((1, 4)))] == [(1, 4)]


def test_nothing_there_is_named(tmp_path):
    with pytest.raises(InvalidInputError, match=r"is no \.npy, \.npz or image file"):
        CalibrationFiles(tmp_path)
