"""The label found by its usual name is checked like one that is named."""

import pytest

from fedloom import data
from fedloom.errors import DataError

TABLE = "a,site,label\n" + "\n".join(f"{i},{i % 2},{i % 3}" for i in range(30))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ignore": ("label",)}, "must name different columns"),
        ({"client": "site", "ignore": ("site",)}, "must name different columns"),
        ({"ignore": ("nope",)}, "no column 'nope'"),
        ({"client": "stie"}, "no column 'stie' .* did you mean 'site'"),
    ],
)
def test_a_column_can_play_one_part_and_must_exist(tmp_path, options, message):
    (tmp_path / "t.csv").write_text(TABLE)
    with pytest.raises(DataError, match=message):
        data.load(str(tmp_path / "t.csv"), **options)
