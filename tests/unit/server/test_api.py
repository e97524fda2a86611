"""The Python API: what it adds to a run."""

import pytest

import fedloom
from fedloom.errors import RunDirectoryError

TINY = {"data": "fcube", "clients": 4, "local_steps": 2, "batch_size": 8, "executor": "loop"}


def test_a_run_resumes_with_its_stored_settings_and_more_rounds(tmp_path):
    fedloom.run(out=tmp_path / "a", rounds=1, method="scaffold", **TINY)
    longer = fedloom.run(out=tmp_path / "a", resume=True, rounds=3)
    whole = fedloom.run(out=tmp_path / "b", rounds=3, method="scaffold", **TINY)
    assert longer.config == whole.config
    assert longer.result["final"] == whole.result["final"]


def test_there_must_be_a_run_to_resume(tmp_path):
    with pytest.raises(RunDirectoryError, match="holds no run to resume"):
        fedloom.run(out=tmp_path / "nothing", resume=True, rounds=1, **TINY)
    assert not (tmp_path / "nothing").exists()


def test_report_is_a_function_however_the_package_was_imported(tmp_path):
    import fedloom.reporting

    fedloom.compare(
        methods=["fedavg"], trials=1, out=tmp_path / "c", reference=False, rounds=1, **TINY
    )
    fedloom.report(tmp_path / "c")
    assert fedloom.reporting is not None
    assert (tmp_path / "c" / "report.html").exists()
