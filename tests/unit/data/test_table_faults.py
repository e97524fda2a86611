"""Tables that are refused, each with a message that says where and why."""

import gzip
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedloom import data
from fedloom.errors import ConfigError, DataError

CLEAN = "u,v,y\n" + "".join(f"{i},{i * 2},{i % 2}\n" for i in range(8))


def refused(path, *words, **settings):
    with pytest.raises(DataError) as caught:
        data.load(path, **({"label": "y"} | settings))
    text = str(caught.value)
    assert path.name in text
    for word in words:
        assert word in text, text


def test_missing_cells_are_refused_with_columns_and_counts(write):
    tokens = ["", "NA", "nan", "?", "null", "N/A", "None"]
    text = "u,v,y\n" + "".join(f"{token},1,{i % 2}\n" for i, token in enumerate(tokens))
    path = write("a.csv", text + "1,,0\n2,na,1\n3,4,0\n")
    refused(path, "column 'u': 7 missing, first in row 1 (line 2)", "column 'v': 2 missing")


def test_blank_labels_are_no_class(write):
    path = write("a.csv", CLEAN + "1,2,\n3,4, \n5,6,NA\n")
    refused(path, "label: 3 missing, first in row 9 (line 10)")
    refused(path, "can't be imputed", missing="impute")
    assert data.load(path, label="y", missing="drop").classes == ("0", "1")


def test_blank_client_ids_are_no_client(write):
    path = write("a.csv", "u,who,y\n1,p,0\n2,,1\n3,q,1\n4,q,0\n")
    refused(path, "client: 1 missing, first in row 2 (line 3)", client="who")


def test_nan_and_infinite_features_are_found_at_load(write):
    path = write("a.csv", CLEAN + "nan,1,0\n2,inf,1\n3,-inf,0\n")
    refused(
        path,
        "column 'u': 1 missing, first in row 9 (line 10)",
        "column 'v': 2 infinite, first in row 10 (line 11)",
    )
    found = data.load(path, label="y", missing="impute")
    assert np.isfinite(found.x_train).all()


def test_all_columns_that_are_not_numeric_are_named_at_once(write):
    head = "price,length,ok,day,clean,y\n"
    row = '"3,500",7 cm,yes,14.03.2021,{},{}\n'
    path = write("a.csv", head + "".join(row.format(i, i % 2) for i in range(6)))
    refused(
        path,
        "4 columns are not numeric",
        "'price' (6 of 6 cells, such as '3,500' in row 1 (line 2))",
        "'length' (6 of 6 cells, such as '7 cm'",
        "'ok' (6 of 6 cells, such as 'yes'",
        "'day' (6 of 6 cells, such as '14.03.2021'",
    )


def test_a_single_bad_cell_is_named_with_its_row(write):
    path = write("a.csv", CLEAN + "4,x7,1\n")
    told = "1 column is not numeric: 'v' (1 of 9 cells is not a number: 'x7' in row 9 (line 10))"
    refused(path, told, "missing='drop'")


@pytest.mark.parametrize("categorical", ["refuse", "onehot"])
def test_a_column_of_numbers_with_a_few_other_cells_is_no_category(write, categorical):
    cells = [str(i) for i in range(80)]
    cells[3] = "-"
    text = "u,v,y\n" + "".join(f"{i},{cell},{i % 2}\n" for i, cell in enumerate(cells))
    refused(
        write("a.csv", text),
        "'v' (1 of 80 cells is not a number: '-' in row 4 (line 5))",
        categorical=categorical,
    )
    more = write("b.csv", text.replace("9,9,1\n", "9,?!,1\n"))
    refused(more, "'v' (2 of 80 cells are not numbers, such as '-' in", categorical=categorical)


def test_numbers_with_a_few_decimal_commas_keep_their_hint(write):
    body = "".join(f"{i}.5;{i % 2}\n" for i in range(20))
    path = write("a.csv", "u;y\n" + body + "3,5;1\n")
    for categorical in ("refuse", "onehot"):
        refused(path, "'3,5'", "decimal=','", separator=";", categorical=categorical)


def test_a_column_of_names_with_some_numbers_is_a_category(write):
    text = "u,y\n" + "".join(f"{'ab12'[i % 4]},{i % 2}\n" for i in range(40))
    found = data.load(write("a.csv", text), label="y", categorical="onehot")
    assert found.features == ("u=1", "u=2", "u=a", "u=b")


def test_other_separators_are_recognised_and_asked_for(write):
    path = write("a.csv", "u;v;y\n1,5;2,0;A\n")
    refused(path, "one column found, separator?", "separator=';'", "decimal=','")
    refused(write("b.csv", "u v y\n1 2 a\n"), "one column found, separator?")
    refused(write("c.csv", "u\tv\ty\n1\t2\ta\n"), "tab marks")


def test_decimal_commas_are_never_read_as_thousands(write):
    path = write("a.csv", "u;y\n1,5;a\n2,5;b\n3,5;a\n4,5;b\n")
    refused(path, "'1,5'", "decimal=','", separator=";")
    dotted = write("b.csv", "u;y\n1.5;a\n2.5;b\n")
    refused(dotted, "'1.5'", separator=";", decimal=",")


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_half_a_parquet_or_gzip_file_is_damaged(write, tmp_path, share):
    pq.write_table(pa.table({"u": list(range(500)), "y": [0, 1] * 250}), tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    refused(write("b.parquet", whole[: int(len(whole) * share)]), "damaged or incomplete")
    packed = gzip.compress(CLEAN.encode() * 50)
    refused(write("c.csv.gz", packed[: int(len(packed) * share)]), "damaged or incomplete")


def test_a_row_with_too_few_fields_is_reported_with_its_line(write):
    refused(write("a.csv", CLEAN + "9,1"), "line 10 has 2", "3 fields expected")
    refused(write("b.csv", CLEAN + "9\n" + "1,2,3,4\n"), "line 10 has 1", "line 11 has 4")
    refused(write("c.csv", "u,v,y\n\n1,2,0\n9,1"), "non-blank line 3 has 2")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"u,y\n", "no rows"),
        (b"u,u,y\n1,2,a\n", "more than once: u"),
        (b",u,y\n0,1,a\n", "column 1 has no name"),
        (b"1,2,0\n3,4,1\n", "the first line holds numbers"),
        ("u,y\n1,\xe4\n".encode("latin-1"), "line 2 is not UTF-8"),
        ("u,y\n1,a\n".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04\x00\x00\x00", "binary content"),
        (b"u,y\n1,a\n2,a\n3,a\n", "one class, 'a'"),
        (b"y\n1\n", "one column found"),
        (b"u,y\n,a\n,b\n", "column 'u': 2 missing"),
    ],
)
def test_text_files_that_are_no_table_are_refused(write, content, word):
    refused(write("a.csv", content), word)


def test_a_column_without_any_value_can_not_be_imputed(write):
    path = write("a.csv", "u,v,y\n,1,a\n,2,b\n,3,a\n,4,b\n")
    refused(path, "column 'u' has no training value", missing="impute")
    refused(path, "no row is left", missing="drop")


def test_a_missing_test_feature_and_an_unseen_class_are_refused(write):
    train = write("train.csv", "u,v,y\n1,2,a\n3,4,b\n")
    lacking = write("t1.csv", "u,y\n1,a\n")
    with pytest.raises(DataError, match=r"t1\.csv: the test file lacks 'v'"):
        data.load(train, test=lacking, label="y")
    with pytest.raises(DataError, match=r"t2\.csv: classes 'c' have test rows but no training"):
        data.load(train, test=write("t2.csv", "u,v,y\n1,2,c\n"), label="y")
    with pytest.raises(DataError, match=r"such as 'x' in row 1 \(line 2\) of t3\.csv"):
        data.load(train, test=write("t3.csv", "u,v,y\n1,x,a\n"), label="y")


def test_columns_that_do_not_exist_are_refused_with_the_nearest(write):
    path = write("a.csv", "u,klass,who\n1,a,p\n2,b,q\n")
    refused(path, "no column 'klas'", "did you mean 'klass'", label="klas")
    refused(path, "no column 'wo' (client)", label="klass", client="wo")
    refused(path, "no column 'zz' (ignore)", label="klass", ignore="zz")
    refused(path, "must name different columns", label="klass", client="klass")
    refused(path, "no feature columns", label="klass", client="who", ignore="u")
    refused(path, "which column is the label?", "'klass'", label=None)


def test_json_lines_are_refused_with_what_is_accepted(write):
    refused(write("a.jsonl", '{"u": 1}\n'), "JSON lines are not read", "CSV", "Parquet", "NPZ")
    refused(write("a.json.gz", b""), "JSON lines are not read")


@pytest.mark.parametrize("name", ["a.xlsx", "a.tar", "a.zip", "a.tar.gz", "a.pkl", "plain"])
def test_other_formats_and_archives_are_refused_unopened(write, name):
    refused(write(name, b"../x"), "not an accepted format", "Accepted: CSV")


def test_a_path_that_does_not_exist_offers_its_neighbour(write):
    path = write("table.csv", CLEAN)
    with pytest.raises(DataError, match=r"did you mean 'table\.csv'"):
        data.load(path.parent / "tabel.csv", label="y")


def test_one_hot_refuses_columns_that_are_free_text(write):
    rows = "".join(f"name{i},{i % 2}\n" for i in range(300))
    refused(write("a.csv", "who,y\n" + rows), "has 300 values", categorical="onehot")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"missing": "mean"}, "missing='mean'"),
        ({"test_share": 1.0}, "test_share=1.0"),
        ({"separator": ";;"}, "one character"),
        ({"separator": ",", "decimal": ","}, "must differ"),
        ({"test": "t.csv", "test_share": 0.5}, "exclude each other"),
        ({"size": 0}, "size=0"),
        ({"size": 28}, "size can't be used here"),
        ({"scale": "minmax"}, "scale='minmax'"),
    ],
)
def test_settings_that_can_not_be_used_are_refused(write, settings, message):
    with pytest.raises(ConfigError, match=message):
        data.load(write("a.csv", CLEAN), label="y", **settings)


def test_parquet_columns_that_are_no_numbers_are_named(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table(
        {"when": pa.array([0, 1], pa.timestamp("s")), "l": [[1], [2]], "y": ["a", "b"]}
    )
    pq.write_table(table, path)
    refused(path, "2 columns are not numeric", "'when'", "'l'")


def test_parquet_nulls_and_nan_are_missing(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"u": [1.0, None, float("nan")], "b": [True, None, False], "y": [1, 2, 1]}), path
    )
    refused(path, "column 'u': 2 missing, first in row 2", "column 'b': 1 missing")


def test_a_table_of_a_hundred_thousand_rows_is_read_in_seconds(write):
    rng = np.random.RandomState(0)
    body = "\n".join(",".join(map(str, row)) for row in rng.randint(0, 9, (100_000, 8)))
    path = write("a.csv", "a,b,c,d,e,f,g,y\n" + body + "\n")
    start = time.perf_counter()
    found = data.load(path, label="y")
    assert found.num_train + found.num_test == 100_000
    assert time.perf_counter() - start < 10
