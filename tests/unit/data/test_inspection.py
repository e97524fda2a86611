import io

import numpy as np
import pytest
from rich.console import Console

from fedloom import data
from fedloom.errors import DataError

TEXT = "u,[b]who,kind\n" + "".join(f"{i},{'pq'[i % 2]},{'ab'[i // 2 % 2]}\n" for i in range(20))


def printed(found):
    out = io.StringIO()
    Console(file=out, width=100).print(found)
    return out.getvalue()


def test_a_table_is_described_as_a_run_would_see_it(write):
    found = data.inspect(write("a.csv", TEXT), label="kind", client="[b]who", test_share=0.5)
    assert (found.num_train, found.num_test, found.form) == (10, 10, "CSV file")
    assert [(c.name, c.kind, c.role) for c in found.columns] == [
        ("u", "number", "feature"),
        ("[b]who", "text", "client"),
        ("kind", "text", "label"),
    ]
    assert [(name, train + test) for name, train, test in found.classes] == [("a", 10), ("b", 10)]
    assert [(name, train + test) for name, train, test in found.clients] == [("p", 10), ("q", 10)]
    text = printed(found)
    for word in (
        "[b]who",
        "10 training and 10 test rows, 1 input column",
        "50 % of the rows",
        "classes",
        "clients",
    ):
        assert word in text


def test_without_label_the_columns_are_shown(write):
    found = data.inspect(write("a.csv", TEXT))
    assert found.data is None
    assert (found.num_train, len(found.columns)) == (20, 3)
    assert "no label column named" in printed(found)


def test_what_is_missing_is_counted_per_column(write):
    path = write("a.csv", "u,y\n1,a\n,b\nNA,a\n4,b\n5,a\n6,b\n")
    assert data.inspect(path, label="y", missing="drop").columns[0].missing == 2
    with pytest.raises(DataError, match="column 'u': 2 missing"):
        data.inspect(path, label="y")


def test_archives_folders_and_named_sets_can_be_inspected(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((8, 2)), y=np.arange(8) % 2)
    found = data.inspect(tmp_path / "a.npz", test_share=0.5)
    assert (found.form, found.shape) == ("NPZ file", (2,))
    cube = data.inspect("fcube")
    assert (cube.num_train, cube.form) == (4000, "data set by name")
    assert "4,000 training" in printed(cube)


def test_many_clients_are_cut_and_said(write):
    text = "u,who,y\n" + "".join(f"{i},c{i // 2},{i % 2}\n" for i in range(200))
    shown = printed(data.inspect(write("a.csv", text), label="y", client="who"))
    assert "100 clients, the first 40 shown" in shown
    assert "training and 40 test rows, 1 input column\n" in shown
    assert "training rows per client" in shown


def test_one_client_is_not_called_clients(write):
    text = "u,v,who,y\n" + "".join(f"{i},{i},p,{i % 2}\n" for i in range(100))
    shown = printed(data.inspect(write("a.csv", text), label="y", client="who"))
    assert "80 training and 20 test rows, 2 input columns" in shown
    assert "\n1 client\n" in shown
    assert "0 clients without any" in shown
