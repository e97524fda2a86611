import numpy as np
import pytest

from fedloom import data
from fedloom.errors import ConfigError, DataError

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def draw(tmp_path):
    """Write a picture of one mode into a class folder."""
    count = iter(range(10_000))

    def put(folder, mode="L", size=(6, 4), name=None, value=None):
        place = tmp_path / "set" / folder
        place.mkdir(parents=True, exist_ok=True)
        number = next(count)
        shape = (size[1], size[0])
        if mode == "I;16":
            picture = Image.fromarray(np.full(shape, value or 256 * number + 5, np.uint16))
        else:
            grey = np.full(shape, number if value is None else value, np.uint8)
            picture = Image.fromarray(grey).convert(mode)
        path = place / (name or f"{number}.png")
        picture.save(path)
        return path

    put.root = tmp_path / "set"
    return put


def test_class_folders_are_read_in_sorted_order(draw):
    for i in range(5):
        draw("dog", value=i)
        draw("cat", value=100 + i, name=f"P{i}.PNG")
    found = data.load(draw.root)
    assert found.classes == ("cat", "dog")
    assert (found.input_shape, found.num_train, found.num_test) == ((1, 4, 6), 8, 2)
    assert ((found.x_train[:, 0, 0, 0] >= 100) == (found.y_train == 0)).all()


def test_class_numbers_come_from_the_training_part(draw):
    for folder in ("train/a", "train/b", "train/c", "test/a", "test/c"):
        draw(folder)
    draw("extra/a")
    found = data.load(draw.root)
    assert found.classes == ("a", "b", "c")
    assert found.y_test.tolist() == [0, 2]
    assert found.test_rule == "folder set/test"
    assert "no test rows of class 'b'" in found.notes
    assert any("not used: 'extra'" in note for note in found.notes)


def test_a_class_that_only_the_test_part_has_is_refused(draw):
    for folder in ("train/a", "train/b", "test/a", "test/z"):
        draw(folder)
    with pytest.raises(DataError, match="classes that the training part lacks: 'z'"):
        data.load(draw.root)


def test_hidden_and_system_files_are_passed_over_and_others_are_said(draw):
    for folder in ("a", "b", ".cache", "__MACOSX"):
        draw(folder)
        draw(folder)
    for name in ("a/Thumbs.db", "a/.DS_Store", "a/notes.txt", "desktop.ini"):
        (draw.root / name).write_text("x")
    found = data.load(draw.root, test_share=0.5)
    assert found.num_train + found.num_test == 4
    assert "set: 1 items that are no pictures, not used: 'a/notes.txt'" in found.notes


def test_cut_and_fake_pictures_are_listed_and_skipped_only_on_request(draw):
    for folder in ("a", "b"):
        for _ in range(3):
            draw(folder, size=(40, 30))
    cut = draw("a", size=(40, 30), mode="RGB", name="cut.jpg")
    cut.write_bytes(cut.read_bytes()[:-200])
    (draw.root / "b" / "fake.png").write_text("no picture at all")
    (draw.root / "a" / "blank.gif").write_bytes(b"")
    with pytest.raises(DataError) as caught:
        data.load(draw.root)
    for word in (
        "3 pictures can't be read",
        "a/cut.jpg",
        "b/fake.png (not a picture)",
        "a/blank.gif",
    ):
        assert word in str(caught.value)
    found = data.load(draw.root, bad_files="skip", test_share=0.5)
    assert found.num_train + found.num_test == 6
    assert any(note.startswith("3 unreadable pictures left out") for note in found.notes)


def test_empty_classes_are_listed_and_skipped_only_on_request(draw):
    for folder in ("a", "c"):
        draw(folder)
        draw(folder)
    (draw.root / "b").mkdir()
    with pytest.raises(DataError, match="class folders without pictures: 'b'"):
        data.load(draw.root)
    found = data.load(draw.root, bad_files="skip", test_share=0.5)
    assert found.classes == ("a", "c")
    assert any("empty class folders left out: 'b'" in note for note in found.notes)


def test_every_mode_ends_with_one_channel_count(draw):
    modes = ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"]
    for mode in modes:
        for folder in ("a", "b"):
            draw(folder, mode)
    draw("a", "CMYK", name="c.jpg")
    draw("b", "CMYK", name="c.jpg")
    found = data.load(draw.root, test_share=0.5)
    assert found.input_shape == (3, 4, 6)
    assert found.num_train + found.num_test == 16
    told = "\n".join(found.notes)
    assert "2 pictures of 16 bits reduced to 8" in told
    assert "of mode CMYK turned into RGB" in told
    assert "with transparency laid on white" in told


def test_grey_pictures_of_all_depths_keep_one_channel(draw):
    draw("a", "I;16", value=256 * 77 + 200)
    draw("a", "L", value=78)
    draw("b", "LA", value=79)
    draw("b", "1", value=0)
    found = data.load(draw.root, test_share=0.5)
    values = np.concatenate([found.x_train[:, 0, 0, 0], found.x_test[:, 0, 0, 0]])
    assert sorted(values.tolist()) == [0, 77, 78, 79]


def test_transparent_pixels_are_white(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for i in range(2):
            Image.new("RGBA", (2, 2), (10 * i, 0, 0, 0)).save(tmp_path / name / f"{i}.png")
    assert (data.load(tmp_path, test_share=0.5).x_train == 255).all()


def test_mixed_sizes_are_refused_or_resized_as_told(draw):
    for folder in ("a", "b"):
        draw(folder, size=(6, 4))
        draw(folder, size=(8, 8))
    with pytest.raises(DataError, match=r"pictures of 2 sizes .*4x6 \(2\), 8x8 \(2\)"):
        data.load(draw.root)
    found = data.load(draw.root, size=(5, 7), test_share=0.5)
    assert found.input_shape == (1, 5, 7)
    assert "4 pictures resized to 5x7" in found.notes


def test_folders_without_classes_are_refused(tmp_path, draw):
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DataError, match="no pictures"):
        data.load(tmp_path / "nothing")
    draw("a")
    draw("a")
    with pytest.raises(DataError, match="two classes"):
        data.load(draw.root)
    draw(".", name="loose.png")
    with pytest.raises(DataError, match=r"1 pictures outside class folders: 'loose\.png'"):
        data.load(draw.root)


def test_a_label_column_has_no_meaning_for_a_folder(draw):
    draw("a")
    with pytest.raises(ConfigError, match="label can't be used here"):
        data.load(draw.root, label="y")
