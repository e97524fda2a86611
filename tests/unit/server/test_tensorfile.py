import json
import pickle
import zipfile
from pathlib import Path

import pytest
import safetensors.torch
import torch

from fedloom.errors import RunDirectoryError
from fedloom.server import tensorfile

INFO = {"kind": "fedloom test", "note": "Äü"}


@pytest.mark.parametrize("dtype", tensorfile.DTYPES)
def test_every_dtype_comes_back_to_the_bit_and_other_readers_agree(
    tmp_path: Path, dtype: torch.dtype
) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {
        "scalar": torch.ones((), dtype=dtype),
        "none": torch.ones((0, 3), dtype=dtype),
        "turned": torch.arange(6).reshape(2, 3).to(dtype).T,
        "odd": torch.ones(3, dtype=torch.uint8),
        "last": torch.zeros(1, dtype=dtype),
    }
    tensorfile.write(path, tensors, INFO)
    content = tensorfile.read(path)
    assert content.info == INFO
    assert list(content.tensors) == list(tensors)
    for found in (content.tensors, safetensors.torch.load_file(path)):
        for name, leaf in tensors.items():
            assert found[name].dtype == leaf.dtype
            assert found[name].shape == leaf.shape
            assert torch.equal(found[name], leaf)


def test_nan_payloads_and_negative_zero_survive(tmp_path: Path) -> None:
    bits = torch.tensor([0x7FC00001, -0x80000000, 0x7F800000], dtype=torch.int32)
    tensorfile.write(tmp_path / "a", {"w": bits.view(torch.float32)}, INFO)
    assert torch.equal(tensorfile.read(tmp_path / "a").tensors["w"].view(torch.int32), bits)


def test_tensors_that_share_memory_are_stored_each(tmp_path: Path) -> None:
    w = torch.arange(4.0, requires_grad=True)
    tensorfile.write(tmp_path / "a", {"w": w, "same": w, "part": w[1:3]}, INFO)
    found = tensorfile.read(tmp_path / "a").tensors
    assert found["part"].tolist() == [1.0, 2.0]
    found["w"].zero_()
    assert found["same"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_equal_content_makes_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tensorfile.write(tmp_path / name, {"w": torch.arange(4.0)}, INFO)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("part", ["tensor", "info", "name"])
def test_a_changed_byte_is_found(tmp_path: Path, part: str) -> None:
    path = tmp_path / "a"
    tensorfile.write(path, {"weight": torch.zeros(4)}, INFO | {"note": "abc"})
    data = path.read_bytes()
    if part == "tensor":
        data = data[:-1] + b"\1"
    else:
        old, new = {"info": (b"abc", b"abd"), "name": (b"weight", b"weighs")}[part]
        assert data.count(old) == 1
        data = data.replace(old, new)
    path.write_bytes(data)
    with pytest.raises(RunDirectoryError, match="doesn't match its sha256"):
        tensorfile.read(path)


def test_a_file_of_ours_without_its_hash_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a"
    safetensors.torch.save_file({"w": torch.zeros(1)}, path, INFO)
    with pytest.raises(RunDirectoryError, match="sha256"):
        tensorfile.read(path)


def test_a_file_of_others_is_read_with_what_it_says(tmp_path: Path) -> None:
    safetensors.torch.save_file({"w": torch.ones(1)}, tmp_path / "a", {"sha256": "theirs"})
    content = tensorfile.read(tmp_path / "a")
    assert content.tensors["w"].tolist() == [1.0]
    assert content.info == {"sha256": "theirs"}


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_cut_file_is_damaged(tmp_path: Path, share: float) -> None:
    path = tmp_path / "cut.safetensors"
    tensorfile.write(path, {"w": torch.zeros(1000)}, INFO)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(RunDirectoryError, match=r"cut\.safetensors is damaged"):
        tensorfile.read(path)


class Marker:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5, "torch", "old torch"])
def test_a_pickle_is_refused_and_nothing_runs(tmp_path: Path, protocol: int | str) -> None:
    path, marker = tmp_path / "model.safetensors", tmp_path / "marker"
    if isinstance(protocol, int):
        path.write_bytes(pickle.dumps(Marker(marker), protocol=protocol))
    else:
        torch.save(Marker(marker), path, _use_new_zipfile_serialization=protocol == "torch")
    with pytest.raises(RunDirectoryError, match=r"refused|damaged") as caught:
        tensorfile.read(path)
    assert ("it is a pickle" in str(caught.value)) == (protocol not in (0, 1))
    assert not marker.exists()


def test_an_archive_is_told_from_a_header_of_any_length(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        archive.writestr("x", "{")
    assert tensorfile.is_pickle((tmp_path / "a").read_bytes())
    for length in (0x0280, 0x0480, 0x04034B50):
        assert not tensorfile.is_pickle(length.to_bytes(8, "little") + b"{")


@pytest.mark.parametrize(
    ("leaf", "named"),
    [
        (torch.zeros(2, dtype=torch.complex64), "complex64"),
        (torch.eye(2).to_sparse(), "sparse"),
        ([1.0], "list"),
    ],
)
def test_what_cannot_be_stored_is_named(tmp_path: Path, leaf: object, named: str) -> None:
    with pytest.raises(TypeError, match=f"'w' is .*{named}"):
        tensorfile.write(tmp_path / "a", {"w": leaf}, INFO)  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="__metadata__"):
        tensorfile.write(tmp_path / "a", {"__metadata__": torch.zeros(1)}, INFO)
    assert not list(tmp_path.iterdir())


def test_too_long_a_header_is_refused_before_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorfile, "HEADER_LIMIT", 100)
    with pytest.raises(RunDirectoryError, match="1 tensors need a header of"):
        tensorfile.write(tmp_path / "a", {"w": torch.zeros(1)}, INFO)
    assert not list(tmp_path.iterdir())


def test_the_header_is_strict_json_on_a_boundary_of_eight(tmp_path: Path) -> None:
    tensorfile.write(tmp_path / "a", {"w": torch.zeros(1)}, INFO)
    data = (tmp_path / "a").read_bytes()
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    assert json.loads(data[8 : 8 + length])["w"] == {
        "dtype": "F32",
        "shape": [1],
        "data_offsets": [0, 4],
    }
