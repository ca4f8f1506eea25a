"""Arrays of NumPy inside a saved object stay arrays."""

import io

import pytest

import tinygrad_ext as tg


def through_file(obj, **kwargs):
    """obj saved and loaded again."""
    file = io.BytesIO()
    tg.save(obj, file)
    file.seek(0)
    return tg.load(file, **kwargs)


ARRAYS = [
    "np.arange(6, dtype='u2').reshape(2, 3)",
    "np.asfortranarray(np.arange(6.0).reshape(2, 3))",
    "np.arange(12.0)[::2]",
    "np.arange(6.0)[::-1]",
    "np.array(3.5)",
    "np.zeros((0, 3), 'f4')",
    "np.array(['a', 'bcd'])",
    "np.array([b'a', b''])",
    "np.array(['2020-01-01', 'NaT'], 'M8[D]')",
    "np.arange(3, dtype='>i4')",
    "np.array([1 + 2j], 'c16')",
    "np.array([True, False])",
    "np.array([1, 2], 'u8')",
]


@pytest.mark.parametrize("text", ARRAYS)
def test_arrays_stay_arrays(text):
    np = pytest.importorskip("numpy")
    array = eval(text, {"np": np})
    again = through_file({"x": [array, tg.ones(1)]}, map_location="cpu")["x"][0]
    assert type(again) is np.ndarray and again.dtype == array.dtype and again.shape == array.shape
    assert again.flags.f_contiguous or not array.flags.f_contiguous
    assert again.tobytes() == array.tobytes()


def test_arrays_of_objects_and_records_are_refused_by_place():
    np = pytest.importorskip("numpy")
    for array in (np.array([None]), np.zeros(2, "i4,f4"), np.zeros(1, np.longdouble), np.zeros((2,), "V3")):
        with pytest.raises(TypeError, match=r"state\['x'\]\[0\] is an array of"):
            tg.save({"x": [array]}, io.BytesIO())
    with pytest.raises(TypeError, match="numpy.*MaskedArray"):
        tg.save(np.ma.array([1]), io.BytesIO())


def test_a_row_of_the_table_of_arrays_that_does_not_fit_is_refused():
    np = pytest.importorskip("numpy")
    file = io.BytesIO()
    tg.save(np.arange(6.0), file)
    data = file.getvalue()
    for old, new in (("<f8", "|O8"), ("<f8", "<f4"), ("[6]", "[7]"), ("[6]", "[-6]"), ("<f8", "f4,O")):
        edited = data.replace(f'\\"{old}\\"'.encode(), f'\\"{new}\\"'.encode()) if "[" not in old else None
        edited = edited or data.replace(f", {old}, false".encode(), f", {new}, false".encode())
        assert edited != data
        size = int.from_bytes(data[:8], "little") + len(edited) - len(data)
        with pytest.raises(RuntimeError, match="damaged"):
            tg.load(io.BytesIO(size.to_bytes(8, "little") + edited[8:]))


def test_the_package_safetensors_reads_what_is_written(tmp_path):
    np = pytest.importorskip("numpy")
    from safetensors.numpy import load_file

    base = tg.arange(24.0).reshape(4, 6)
    state = {
        "a": base.t(),
        "b": tg.ones(3, dtype=tg.bool),
        "c": np.arange(5, dtype="u2"),
        "d": tg.ones(0),
        "\u00e9": base[0],
    }
    tg.save(state, tmp_path / "x")
    found = load_file(tmp_path / "x")
    assert found["b"].all() and found["c"].dtype == "u2" and found["d"].shape == (0,) and set(found) >= {"a", "b", "c"}
    tg.save({"t": base.t()}, tmp_path / "y")
    assert load_file(tmp_path / "y")["t"].tolist() == base.t().tolist()
