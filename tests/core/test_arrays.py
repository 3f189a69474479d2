"""Array files in every format: round trips, broken files, and no unpickling."""

from __future__ import annotations

import io
import pickle
import re
import zipfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jepatlas.core.arrays import check_finite, check_latents, check_rows, read_arrays, write_arrays
from jepatlas.core.errors import InputError

TABLES = [".csv", ".parquet"]
ENDINGS = [".npy", ".npz", ".safetensors", *TABLES]
fast = settings(max_examples=25)
dtypes = st.sampled_from([np.float64, np.float32, np.float16, np.int64, np.int32, np.uint8])
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arrays")


def matrices(rows: int = 0):
    shapes = st.tuples(st.integers(rows, 6), st.integers(1, 13))
    return st.tuples(dtypes, shapes).flatmap(lambda key: hnp.arrays(*key))


@pytest.mark.parametrize("ending", ENDINGS)
@given(array=matrices())
@fast
def test_matrix_round_trips_in_every_format(folder: Path, ending: str, array: np.ndarray):
    path = folder / f"h{ending}"
    write_arrays(path, {"h": array})
    read = read_arrays(path, keep_half=True)
    assert list(read) == ["h"] and read["h"].shape == array.shape
    np.testing.assert_array_equal(read["h"], array)  # including NaN and infinity
    if ending != ".csv":
        assert read["h"].dtype == array.dtype


@pytest.mark.parametrize("ending", ENDINGS)
def test_non_contiguous_arrays_round_trip(tmp_path: Path, ending: str):
    base = np.arange(48.0).reshape(6, 8) + 0.5
    for array in (base.T, base[::2, ::3], base[::-1], np.asfortranarray(base), base.astype(">f8")):
        write_arrays(tmp_path / f"h{ending}", {"h": array})
        np.testing.assert_array_equal(read_arrays(tmp_path / f"h{ending}")["h"], array)


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
@given(array=st.tuples(dtypes, hnp.array_shapes(min_dims=1, max_dims=4, min_side=0)).flatmap(lambda k: hnp.arrays(*k)))
@fast
def test_higher_dimensional_arrays_round_trip(folder: Path, ending: str, array: np.ndarray):
    arrays = {"h": array, "file": array[::-1], "arr.0": array}
    write_arrays(str(folder / f"many{ending}"), arrays)
    read = read_arrays(str(folder / f"many{ending}"), keep_half=True)
    assert set(read) == set(arrays)
    for name, expected in arrays.items():
        np.testing.assert_array_equal(read[name], expected)
        assert read[name].dtype == expected.dtype


@pytest.mark.parametrize("ending", [".npz", *TABLES])
@given(data=st.data(), as_objects=st.booleans())
@fast
def test_matrix_with_ids_and_labels_round_trips(folder: Path, ending: str, data: st.DataObject, as_objects: bool):
    h = data.draw(matrices(rows=1))
    # the first id must not look like a number: a column of ids such as 007 is read as numbers
    ids = np.array(["id", *data.draw(st.lists(texts, min_size=len(h) - 1, max_size=len(h) - 1))])
    label = data.draw(hnp.arrays(np.int64, len(h), elements=st.integers(-(2**63), 2**63 - 1)))
    path = folder / f"ids{ending}"
    write_arrays(path, {"h": h, "id": ids.astype(object) if as_objects else ids, "label": label})
    read = read_arrays(path, keep_half=True)
    assert set(read) == {"h", "id", "label"}
    np.testing.assert_array_equal(read["h"], h)
    assert read["id"].dtype.kind == "U" and read["id"].tolist() == ids.tolist()
    assert read["label"].dtype == np.int64 and np.array_equal(read["label"], label)  # exact


def test_two_matrices_in_a_table_keep_their_columns_in_order(tmp_path: Path):
    rng = np.random.default_rng(0)
    arrays = {"h": rng.normal(size=(4, 12)), "z.true": rng.normal(size=(4, 2))}
    for ending in TABLES:
        write_arrays(tmp_path / f"t{ending}", arrays)
        read = read_arrays(tmp_path / f"t{ending}")
        assert set(read) == set(arrays)
        assert all(np.array_equal(read[name], arrays[name]) for name in arrays)


def csv_file(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.5,2\n3,4\n", {"h": [[1.5, 2], [3, 4]]}),
        ("x,y\n1.5,2\n3,4\n", {"h": [[1.5, 2], [3, 4]]}),
        ("x,name,y\n1.5,a,2\n3,b,4\n", {"h": [[1.5, 2], [3, 4]], "name": ["a", "b"]}),
        ("h.1,label,h.0\n1,5,2\n3,6,4\n", {"h": [[2, 1], [4, 3]], "label": [5, 6]}),
        ("\ufeff1.5,2\n3,4\n", {"h": [[1.5, 2], [3, 4]]}),  # the byte-order mark of Excel is not a header
        ("1.5,2\r\n3,4\r\n\r\n", {"h": [[1.5, 2], [3, 4]]}),  # an empty line at the end
        ("1,2\n3,4", {"h": [[1, 2], [3, 4]]}),
        ("0,1\n0.5,1.5\n2.5,3\n", {"h": [[0.5, 1.5], [2.5, 3]]}),  # unnamed columns written by pandas
        ("0,1\n1,0\n", {"h": [[0, 1], [1, 0]]}),  # whole numbers are data
        ("0\n1\n2\n", {"h": [[0], [1], [2]]}),
        (",0,1\n0,0.5,1.5\n1,2.5,3\n", {"h": [[0.5, 1.5], [2.5, 3]]}),  # pandas' row index
        ("x,y\n1,\n ,4\n", {"h": [[1, np.nan], [np.nan, 4]]}),
        ("x,y\nnan,-inf\n1e-3,+4\n", {"h": [[np.nan, -np.inf], [1e-3, 4]]}),
        ("x,day\n1,2021_03\n2,2021_04\n", {"h": [[1], [2]], "day": ["2021_03", "2021_04"]}),
        (
            "x,id\n.5,12345678901234567890\n.5,12345678901234567891\n",
            {"h": [[0.5], [0.5]], "id": ["12345678901234567890", "12345678901234567891"]},
        ),
        ('x,name\n1,"a,\nb"\n', {"h": [[1]], "name": ["a,\nb"]}),
        ("x,note\n1,\n2,\n", {"h": [[1], [2]], "note": ["", ""]}),
        ("x,sign\n1,+-5\n2,--\n", {"h": [[1], [2]], "sign": ["+-5", "--"]}),
        ("a,b\nx,y\n", {"a": ["x"], "b": ["y"]}),
        ("ids,d0,d1\n7,.5,1\n8,2,3\n", {"h": [[0.5, 1], [2, 3]], "ids": [7, 8]}),
        ("d0,groups,labels,d1\n1,5,0,2\n3,6,1,4\n", {"h": [[1, 2], [3, 4]], "groups": [5, 6], "labels": [0, 1]}),
        ("ID,Label,d0\n7,1,.5\n8,0,2\n", {"h": [[0.5], [2]], "ID": [7, 8], "Label": [1, 0]}),
        ("Unnamed: 0,level_0,d0\n0,0,.5\n1,1,2\n", {"h": [[0.5], [2]]}),  # repeated row index of pandas
        ("x,y,z\n1,2,3\n", {"h": [[1, 2, 3]]}),  # coordinates
        ("d0,d1,z\n1,2,3\n", {"h": [[1, 2]], "z": [[3]]}),  # not a coordinate
        ("h,h_next,z,groups\n1,2,3,4\n", {"h": [[1]], "h_next": [[2]], "z": [[3]], "groups": [4]}),
        ("x,episode,step,cost\n1,0,0,.5\n", {"x": [[1]], "episode": [0], "step": [0], "cost": [0.5]}),
        ("sample_id,d0\n7,.5\n8,2\n", {"h": [[0.5], [2]], "sample_id": [7, 8]}),
        ("UserID,d0\n7,.5\n,2\n", {"h": [[0.5], [2]], "UserID": [7, np.nan]}),
        ("grid,d0\n.5,1\n2,3\n", {"h": [[0.5, 1], [2, 3]]}),
        ("h.0,x,ids\n1,2,3\n", {"h": [[1]], "x": [2], "ids": [3]}),
    ],
)
def test_csv_of_other_programs(tmp_path: Path, text: str, expected: dict[str, list]):
    read = read_arrays(csv_file(tmp_path, text))
    assert set(read) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(read[name], np.array(values))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("x,y\n1,2\n3\n", "line 3 .*1 .*2"),
        ("1,2\n\n3,4\n5,6,7\n", "line 4 .*3 .*2"),
        ("x,x\n1,2\n", "two columns called 'x'"),
        ("h.0,h.00\n1,2\n", "two columns called 'h.00'"),
        (b"x,name\n1,\xff\xfe\n", "could not be read as .csv"),
        ("x\n" + "a" * 200_000, "could not be read as .csv"),
    ],
)
def test_invalid_csv_is_rejected(tmp_path: Path, text: str | bytes, message: str):
    with pytest.raises(InputError, match=message) as caught:
        read_arrays(csv_file(tmp_path, text))
    assert "table.csv" in str(caught.value)


class Bomb:
    """Creates a file when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("unpickled"),)


def test_nothing_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    bombs = np.array([Bomb(), Bomb()], dtype=object)
    np.save("array.npy", bombs, allow_pickle=True)
    np.savez("arrays.npz", h=np.zeros(3), bombs=bombs)
    for name in ("bare.npy", "bare.npz", "bare.safetensors", "bare.parquet"):
        Path(name).write_bytes(pickle.dumps(Bomb()))
    torch.save(Bomb(), "torch.npz")
    paths = [p for p in tmp_path.iterdir() if p.is_file()]
    assert len(paths) == 7
    for path in paths:
        with pytest.raises(InputError, match=path.name):
            read_arrays(path)
    assert not Path("unpickled").exists()
    np.load("array.npy", allow_pickle=True)
    assert Path("unpickled").exists()  # unpickling would have created the file


@pytest.mark.parametrize("ending", [".npy", ".npz", ".safetensors", ".parquet"])  # a CSV has no end marker
def test_truncated_file_is_rejected(tmp_path: Path, ending: str):
    path = tmp_path / f"h{ending}"
    rng = np.random.default_rng(0)
    write_arrays(path, {"h": rng.normal(size=(50, 3))})
    whole = path.read_bytes()
    for length in {0, 1, 5, 9, 40, 130, len(whole) // 2, len(whole) - 9, len(whole) - 1}:
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=rf"h\{ending}"):
            read_arrays(path)


def test_damaged_archive_is_rejected(tmp_path: Path):
    path = tmp_path / "h.npz"
    write_arrays(path, {"h": np.random.default_rng(0).normal(size=(500, 3))})
    whole = path.read_bytes()
    for place in range(60, len(whole) - 200, 997):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        with pytest.raises(InputError, match=r"h\.npz could not be read"):
            read_arrays(path)


def test_file_with_the_wrong_ending_is_rejected(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    np.savez(tmp_path / "b.npz", h=np.zeros(3))
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    (tmp_path / "b.npz").rename(tmp_path / "b.npy")
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("readme.txt", "not an array")
    for name in ("a.npz", "b.npy", "c.npz"):
        with pytest.raises(InputError, match=name):
            read_arrays(tmp_path / name)


@pytest.mark.parametrize("name", ["h.pt", "h.pkl", "h", "h.txt"])
def test_unknown_ending_is_rejected(tmp_path: Path, name: str):
    (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"Known: \.npy, \.npz, \.safetensors, \.csv, \.parquet"):
        read_arrays(tmp_path / name)
    with pytest.raises(InputError, match=re.escape(name)):
        write_arrays(tmp_path / name, {"h": np.zeros(3)})
    assert (tmp_path / name).read_bytes() == b""


def test_capital_endings_are_read_and_missing_files_rejected(tmp_path: Path):
    write_arrays(tmp_path / "H.NPY", {"h": np.arange(3.0)})
    assert read_arrays(tmp_path / "H.NPY")["h"].tolist() == [0, 1, 2]
    for place in (tmp_path / "none.npy", tmp_path / "folder.npy"):
        (tmp_path / "folder.npy").mkdir(exist_ok=True)
        with pytest.raises(InputError, match="There is no file"):
            read_arrays(place)


def test_npz_and_safetensors_of_other_programs(tmp_path: Path):
    h = np.random.default_rng(0).normal(size=(4, 3))
    np.savez(tmp_path / "plain.npz", h=h, z=h[:, 0])
    np.savez_compressed(tmp_path / "packed.npz", h)
    np.save(tmp_path / "h.npy", np.asfortranarray(h))
    assert np.array_equal(read_arrays(tmp_path / "plain.npz")["z"], h[:, 0])
    assert np.array_equal(read_arrays(tmp_path / "packed.npz")["arr_0"], h)
    assert np.array_equal(read_arrays(tmp_path / "h.npy")["h"], h)
    write_arrays(tmp_path / "ours.npz", {"h": h})
    assert np.array_equal(np.load(tmp_path / "ours.npz")["h"], h)


def test_bfloat16_safetensors_are_read(tmp_path: Path):
    h = torch.randn(5, 3).bfloat16()
    tensors = {"h": h, "z": torch.randn(5, 2, dtype=torch.float64), "label": torch.arange(5)}
    safetensors.torch.save_file(tensors, tmp_path / "h.safetensors")
    read = read_arrays(tmp_path / "h.safetensors")
    for name, tensor in tensors.items():
        assert torch.equal(torch.from_numpy(read[name]), tensor.double() if name == "h" else tensor)


def parquet_file(tmp_path: Path, columns: dict) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_parquet_of_other_programs(tmp_path: Path):
    vectors = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    path = parquet_file(tmp_path, {"embedding": vectors, "id": ["a", "b", "c"], "label": [1, 2, 3]})
    read = read_arrays(path)
    assert set(read) == {"embedding", "id", "label"}
    assert np.array_equal(read["embedding"], vectors) and read["id"].tolist() == ["a", "b", "c"]
    path = parquet_file(tmp_path, {"x": [1.0, None], "y": [3, 4], "__index_level_0__": [0, 1]})
    np.testing.assert_array_equal(read_arrays(path)["h"], [[1, 3], [np.nan, 4]])


def test_ids_of_a_parquet_table_are_not_latents(tmp_path: Path):
    read = read_arrays(parquet_file(tmp_path, {"ids": [4, 5], "groups": [0, 1], "d0": [1.0, 2.0]}))
    assert read["h"].tolist() == [[1], [2]] and read["ids"].tolist() == [4, 5] and read["groups"].tolist() == [0, 1]


@pytest.mark.parametrize("column", [["a", None], [[1.0], [1.0, 2.0]], [{"a": 1}, {"a": 2}]])
def test_invalid_parquet_is_rejected(tmp_path: Path, column: list):
    with pytest.raises(InputError):
        read_arrays(parquet_file(tmp_path, {"x": [1.0, 2.0], "y": column}))


@pytest.mark.parametrize("ending", ENDINGS)
def test_python_objects_are_not_written(tmp_path: Path, ending: str):
    path = tmp_path / f"h{ending}"
    for objects in ([1, "a"], ["a", None], [Bomb(), Bomb()]):
        with pytest.raises(InputError, match="'ids' holds Python objects"):
            write_arrays(path, {"ids": np.array(objects, dtype=object)})
    assert not path.exists()


def test_unsupported_arrays_are_rejected(tmp_path: Path):
    h = np.zeros((3, 2))
    cases = [
        ("a.npy", {"h": h, "z": h}, "holds one array, but 2"),
        ("a.safetensors", {"h": h, "id": np.array(["a", "b", "c"])}, "numbers only, but 'id'"),
        ("a.safetensors", {"h": h.astype(complex)}, "numbers only, but 'h'"),
        ("a.csv", {"h": np.zeros((2, 3, 4))}, "'h' has shape"),
        ("a.csv", {"h": np.array(1.0)}, "'h' has shape"),
        ("a.parquet", {"h": np.zeros((3, 0))}, "'h' has shape"),
        ("a.parquet", {"h": np.array(1.0)}, "'h' has shape"),
        ("a.csv", {"h": h, "z": h[:2]}, "'h' has 3, 'z' has 2"),
        ("a.parquet", {"h": h, "z": h[:2]}, "'h' has 3, 'z' has 2"),
    ]
    for name, arrays, message in cases:
        with pytest.raises(InputError, match=message):
            write_arrays(tmp_path / name, arrays)
    assert not list(tmp_path.iterdir())


def test_check_finite_names_count_and_row():
    array = np.zeros((5, 3))
    check_finite("h", array)
    check_finite("h", np.zeros((0, 3)))
    check_finite("label", np.arange(3))
    array[2, 1], array[4] = np.nan, [np.inf, -np.inf, 0]
    with pytest.raises(InputError, match=r"'h' has 3 .*row 2.*columns 0, 1"):
        check_finite("h", array)
    with pytest.raises(InputError, match=r"'z' has 1 .*row 1"):
        check_finite("z", np.array([0, np.nan]))
    with pytest.raises(InputError, match="'h' must hold numbers"):
        check_finite("h", np.array([["1.0", "x"]]))


def test_check_finite_rejects_complex_numbers():
    with pytest.raises(InputError, match=r"'h' .*complex128"):
        check_finite("h", np.ones((4, 2), complex))


@pytest.mark.parametrize("shape", [(4,), (), (4, 3, 2), (3, 2), (4, 0)])
def test_check_latents_names_the_shape(shape: tuple[int, ...]):
    check_latents((4, 1), 4)
    with pytest.raises(InputError) as caught:
        check_latents(shape, 4)
    assert "(4, d)" in str(caught.value) and str(shape) in str(caught.value)


def test_check_rows():
    check_rows({})
    check_rows({"h": np.zeros((3, 2)), "id": np.array(["a", "b", "c"])})
    with pytest.raises(InputError, match="'h' has 3, 'id' has 2"):
        check_rows({"h": np.zeros((3, 2)), "id": np.array(["a", "b"])})


def test_text_column_in_a_matrix_is_rejected(tmp_path: Path):
    read = read_arrays(csv_file(tmp_path, "h.0,h.1\n1,2\n3,oops\n"))
    with pytest.raises(InputError, match="'h' must hold numbers"):
        check_finite("h", read["h"])


def test_failed_write_keeps_the_previous_file(tmp_path: Path):
    write_arrays(tmp_path / "h.npy", {"h": np.ones(3)})
    before = (tmp_path / "h.npy").read_bytes()
    with pytest.raises(InputError):
        write_arrays(tmp_path / "h.npy", {"h": np.array([object()])})
    assert (tmp_path / "h.npy").read_bytes() == before
    buffer = io.BytesIO()
    np.save(buffer, np.ones(3))
    assert buffer.getvalue() == before  # the bytes written by numpy


@pytest.mark.parametrize("ending", [".npy", ".npz", ".safetensors"])
def test_half_precision_becomes_single(ending: str, tmp_path: Path):
    h = np.array([[0.5, 1e-3], [2.0, 60000.0]], np.float16)
    write_arrays(tmp_path / f"half{ending}", {"h": h})
    read = read_arrays(tmp_path / f"half{ending}")["h"]
    assert read.dtype == np.float32 and (read == h).all()
    assert read_arrays(tmp_path / f"half{ending}", keep_half=True)["h"].dtype == np.float16


def test_a_message_says_what_is_in_the_file(tmp_path: Path):
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "objects.npz", h=np.array([None], dtype=object))
    np.savez(tmp_path / "nothing.npz")
    (tmp_path / "pickle.npy").write_bytes(pickle.dumps([1.0]))
    (tmp_path / "text.npy").write_text("1 2 3")
    for name in ("empty.npy", "empty.npz", "empty.csv"):
        (tmp_path / name).touch()
    wanted = {"objects": "Python objects", "nothing": "no arrays", "pickle": "pickle", "text": "not an array"}
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(InputError, match=wanted.get(path.stem, "is empty")) as caught:
            read_arrays(path)
        assert path.name in str(caught.value) and "magic" not in str(caught.value)
