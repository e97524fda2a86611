"""Tables that are read, and the values that come out."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedloom import data
from fedloom.errors import DataError

FRUIT = "a,b,kind\n" + "".join(
    f"{i},{i * 0.5},{['pear', 'fig', 'apple'][i % 3]}\n" for i in range(30)
)


def as_rows(found):
    """Every row of both parts, with its class name, in sorted order."""
    rows = [
        (*map(float, x), found.classes[y])
        for part in ("train", "test")
        for x, y in zip(getattr(found, f"x_{part}"), getattr(found, f"y_{part}"), strict=True)
    ]
    return sorted(rows)


def test_text_labels_get_one_sorted_table_whatever_the_order(write):
    first = data.load(write("a.csv", FRUIT), label="kind")
    lines = FRUIT.splitlines()
    turned = [",".join(reversed(line.split(","))) for line in [lines[0], *reversed(lines[1:])]]
    second = data.load(write("b.csv", "\n".join(turned) + "\n"), label="kind")
    assert first.classes == second.classes == ("apple", "fig", "pear")
    assert as_rows(first) == sorted((a, b, kind) for b, a, kind in as_rows(second))


def test_the_held_out_part_is_stratified_and_stated(write):
    found = data.load(write("a.csv", FRUIT), label="kind", test_share=0.3, seed=4)
    assert np.bincount(found.y_test).tolist() == [3, 3, 3]
    assert found.test_rule == "30 % of the rows, stratified, seed 4"
    assert found.x_train.dtype == np.float32
    assert found.features == ("a", "b")


def test_byte_order_mark_and_carriage_returns_change_nothing(write):
    plain = data.load(write("a.csv", FRUIT), label="kind")
    marked = b"\xef\xbb\xbf" + FRUIT.replace("\n", "\r\n").encode()
    odd = data.load(write("b.csv", marked), label="kind")
    assert odd.digest == plain.digest
    assert odd.features == plain.features
    assert data.inspect(write("c.csv", marked), label="kind").data.digest == plain.digest


def test_gzip_tab_and_parquet_hold_the_same_data(write, tmp_path):
    plain = data.load(write("a.csv", FRUIT), label="kind")
    rows = [line.split(",") for line in FRUIT.splitlines()[1:]]
    table = pa.table(
        {
            "a": [int(row[0]) for row in rows],
            "b": [float(row[1]) for row in rows],
            "kind": pa.array([row[2] for row in rows]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "d.parquet")
    others = [
        write("b.csv.gz", gzip.compress(FRUIT.encode())),
        write("c.tsv", FRUIT.replace(",", "\t")),
        tmp_path / "d.parquet",
    ]
    for path in others:
        assert data.load(path, label="kind").digest == plain.digest


def test_labels_that_start_at_one_are_counted_from_zero(write):
    text = "a,y\n" + "".join(f"{i},{i % 3 + 1}\n" for i in range(12))
    found = data.load(write("a.csv", text), label="y")
    assert found.classes == ("1", "2", "3")
    assert set(found.y_train) == {0, 1, 2}


def test_whole_float_labels_are_classes_and_fractions_are_refused(write):
    text = "a,y\n" + "".join(f"{i},{i % 2}.0\n" for i in range(10))
    assert data.load(write("a.csv", text), label="y").classes == ("0", "1")
    with pytest.raises(DataError, match=r"bad\.csv: label 'y'.*'1\.5' in row 11 \(line 12\)"):
        data.load(write("bad.csv", text + "3,1.5\n"), label="y")


def test_one_label_written_three_ways_is_one_class(write):
    text = "a,y\n" + "".join(f"{i},{['1', '1.0', '01', '0'][i % 4]}\n" for i in range(12))
    found = data.load(write("a.csv", text), label="y")
    assert found.classes == ("0", "1")
    assert any("count as one" in note for note in found.notes)


def test_semicolons_and_decimal_commas_are_read_as_told(write):
    path = write("a.csv", "u;v;y\n" + "1,5;2,0;A\n-2,25;3;B\n" * 5)
    found = data.load(path, label="y", separator=";", decimal=",")
    assert as_rows(found)[0] == (-2.25, 3.0, "B")
    assert as_rows(found)[-1] == (1.5, 2.0, "A")


def test_numbers_in_every_notation_are_read(write):
    path = write("a.csv", "u,y\n+1.5,a\n -2e3 ,b\n.5,a\n5.,b\n-0.0,a\n1E-2,b\n")
    values = sorted(x for x, *_ in as_rows(data.load(path, label="y", test_share=0.4)))
    assert values == sorted([1.5, -2000, 0.5, 5, 0, float(np.float32(0.01))])


def test_quoted_cells_may_hold_separators_and_line_ends(write):
    path = write("a.csv", 'u,"the, kind"\n1,"a\nb"\n2,"c,d"\n' * 1 + '3,"a\nb"\n4,"c,d"\n')
    found = data.load(path, label="the, kind", test_share=0.5)
    assert found.classes == ("a\nb", "c,d")


def test_clients_share_one_table_between_train_and_test(write):
    train = write("train.csv", "x,who,y\n1,B,0\n2,A,1\n3,C,0\n4,B,1\n")
    test = write("test.csv", "x,who,y\n5,A,0\n6,B,1\n7,D,1\n")
    found = data.load(train, test=test, label="y", client="who")
    assert found.groups == ("A", "B", "C", "D")
    assert [found.groups[g] for g in found.groups_train] == ["B", "A", "C", "B"]
    assert [found.groups[g] for g in found.groups_test] == ["A", "B", "D"]
    assert "1 clients are seen only in the test rows: 'D'" in found.notes
    assert "1 clients have no test rows: 'C'" in found.notes
    assert found.features == ("x",)


def test_client_numbers_written_as_floats_are_the_same_clients(write):
    train = write("train.csv", "x,who,y\n1,2,0\n2,10,1\n")
    test = write("test.csv", "x,who,y\n5,10.0,0\n6,2.0,1\n")
    found = data.load(train, test=test, label="y", client="who")
    assert found.groups == ("2", "10")
    assert found.groups_test.tolist() == [1, 0]


def test_a_test_file_is_matched_by_column_name(write):
    train = write("train.csv", "u,v,y\n1,10,a\n2,20,b\n3,30,c\n")
    test = write("test.csv", "y,extra,v,u\na,9,40,4\nb,9,50,5\n")
    found = data.load(train, test=test, label="y")
    assert found.x_test.tolist() == [[4, 40], [5, 50]]
    assert found.test_rule == "file test.csv"
    told = "\n".join(found.notes)
    assert "another order" in told
    assert "not used: 'extra'" in told
    assert "no test rows of class 'c'" in told


def test_a_test_file_without_client_column_leaves_test_rows_without_client(write):
    train = write("train.csv", "u,who,y\n1,p,a\n2,q,b\n")
    test = write("test.csv", "u,y\n4,a\n")
    found = data.load(train, test=test, label="y", client="who")
    assert found.groups_test is None
    assert found.groups_train.tolist() == [0, 1]
    assert any("belong to no client" in note for note in found.notes)


def test_rows_that_stand_in_both_files_are_counted(write):
    rows = "".join(f"{i},{i % 2}\n" for i in range(20))
    extra = "".join(f"{i + 100},{i % 2}\n" for i in range(5))
    train = write("train.csv", "u,y\n" + rows)
    test = write("test.csv", "u,y\n" + "".join(rows.splitlines(True)[:7]) + extra)
    found = data.load(train, test=test, label="y")
    assert "7 of 12 test rows have the features of a training row" in found.notes


def test_rows_of_missing_cells_are_dropped_and_counted(write):
    text = (
        "u,v,y\n"
        + "".join(f"{i},{i},{i % 2}\n" for i in range(10))
        + "NA,1,0\n2,?,1\n3,3,\n4,inf,1\n"
    )
    found = data.load(write("a.csv", text), label="y", missing="drop")
    assert found.num_train + found.num_test == 10
    assert found.classes == ("0", "1")
    assert any(note.startswith("4 of 14 rows dropped") for note in found.notes)


def test_missing_cells_take_the_mean_of_the_training_rows_alone(write):
    train = write("train.csv", "u,v,y\n1,7,a\n3,,b\n,9,a\n")
    test = write("test.csv", "u,v,y\nnull,1000,a\n900,nan,b\n")
    found = data.load(train, test=test, label="y", missing="impute")
    assert found.x_train.tolist() == [[1, 7], [3, 8], [2, 9]]
    assert found.x_test.tolist() == [[2, 1000], [900, 8]]
    assert "column 'u': 2 cells imputed with the training mean 2" in found.notes


def test_scaling_is_fitted_on_training_rows_and_constants_become_zero(write):
    train = write("train.csv", "u,fix,y\n1,5,a\n3,5,b\n5,5,a\n")
    test = write("test.csv", "u,fix,y\n3,8,a\n7,5,b\n")
    found = data.load(train, test=test, label="y", scale="standard")
    assert np.allclose(found.x_train.mean(axis=0), 0, atol=1e-6)
    assert np.isclose(found.x_train[:, 0].std(), 1)
    assert found.x_test[0, 0] == 0
    assert np.isclose(found.x_test[1, 0], 4 / np.std([1, 3, 5]))
    assert not found.x_train[:, 1].any()
    assert not found.x_test[:, 1].any()
    assert "constant in training: 'fix'" in found.notes


def test_a_column_constant_at_one_client_only_stays_finite(write):
    text = "u,who,y\n" + "".join(
        f"{7 if i % 2 else i},{'c2' if i % 2 else 'c1'},{i % 4 // 2}\n" for i in range(16)
    )
    found = data.load(write("a.csv", text), label="y", client="who", scale="standard")
    assert np.isfinite(found.x_train).all()
    assert not any("constant" in note and "'u'" in note for note in found.notes)


def test_text_columns_become_one_column_per_value_seen_in_training(write):
    train = write("train.csv", "u,color,y\n1,red,a\n2,blue,b\n3,?,a\n4,red,b\n")
    test = write("test.csv", "u,color,y\n1,green,a\n2,blue,b\n")
    found = data.load(train, test=test, label="y", categorical="onehot", missing="impute")
    assert found.features == ("u", "color=blue", "color=red")
    assert found.x_train[:, 1:].tolist() == [[0, 1], [1, 0], [0, 1], [0, 1]]
    assert found.x_test[:, 1:].tolist() == [[0, 0], [1, 0]]
    assert any("1 test rows have a value unseen" in note for note in found.notes)
    assert any("most frequent training value 'red'" in note for note in found.notes)


def test_columns_are_left_out_only_when_told(write):
    path = write("a.csv", "id,u,y\nx1,1,a\nx2,2,b\nx3,3,a\nx4,4,b\n")
    found = data.load(path, label="y", ignore="id", test_share=0.5)
    assert found.features == ("u",)
    assert "columns left out as told: 'id'" in found.notes


def test_blank_lines_and_a_missing_last_line_end_are_said(write):
    found = data.load(write("a.csv", "\nu,y\n1,a\n\n2,b\n\n\n3,a\n4,b"), label="y", test_share=0.5)
    assert found.num_train + found.num_test == 4
    assert "a.csv: 3 blank lines left out" in found.notes
    assert any("no line end" in note for note in found.notes)


def test_numbers_too_long_for_float32_are_said(write):
    path = write("a.csv", "u,y\n16777217,a\n3,b\n4,a\n5,b\n")
    assert any(
        "1 whole numbers above" in n for n in data.load(path, label="y", test_share=0.5).notes
    )


def test_the_only_column_called_target_is_the_label(write):
    found = data.load(write("a.csv", "u,Target\n1,a\n2,b\n3,a\n4,b\n"), test_share=0.5)
    assert "column 'Target' is taken as the label" in found.notes
