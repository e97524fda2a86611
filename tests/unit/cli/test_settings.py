"""What the command line makes of flags, files and presets; nothing here trains."""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedloom.cli import contest, extras
from fedloom.cli.folders import slug
from fedloom.config import RunConfig
from fedloom.errors import ConfigError

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def plain(text):
    """Text without colours, boxes and line ends."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─|+]", " ", text).split())


def planned(monkeypatch):
    """The configurations that reach the planner, in place of planning them."""
    from fedloom.server import plan

    seen = []
    monkeypatch.setattr(plan, "plan", lambda config: seen.append(config) or "planned")
    return seen


@pytest.fixture
def resolve(cli, monkeypatch):
    """Flags -> the configuration in force."""
    seen = planned(monkeypatch)

    def call(*arguments):
        result = cli("run", "--dry-run", *arguments)
        assert result.exit_code == 0, result.output
        return seen[-1]

    return call


def test_every_setting_is_a_flag_with_its_help(cli):
    shown = plain(cli("run", "--help").output)
    for name, field in RunConfig.model_fields.items():
        assert f"--{name.replace('_', '-')}" in shown
        assert field.description.split(" ")[0] in shown
    assert "multistep(milestones=[..])" in shown
    assert "Examples" in shown


@pytest.mark.parametrize(
    "command",
    ["run", "compare", "report", "list", "partition", "data inspect"],
)
def test_the_help_of_every_command_has_examples(cli, command):
    result = cli(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"fedloom {command}" in plain(result.output)


def test_both_spellings_of_a_flag_are_one(resolve):
    assert resolve("--local_epochs", "3").local_epochs == resolve("--local-epochs=3").local_epochs


def test_numbers_have_one_value_wherever_they_are_written(resolve, tmp_path):
    (tmp_path / "a.toml").write_text("lr = 1e-3\n")
    digests = {
        resolve("--lr", "1e-3").digest,
        resolve("--set", "lr=0.001").digest,
        resolve("--config", "a.toml").digest,
    }
    assert len(digests) == 1


def test_flags_win_over_set_and_set_over_the_file(resolve, tmp_path):
    (tmp_path / "a.toml").write_text("rounds = 1\nseed = 1\nlr = 1.0\n")
    config = resolve("--config", "a.toml", "--set", "seed=2", "--set", "lr=2", "--lr", "3")
    assert (config.rounds, config.seed, config.lr) == (1, 2, 3.0)


@pytest.mark.parametrize("name", ["FEDAVG", "fed_avg", "Fed-Avg", "fedavg"])
def test_methods_are_found_whatever_their_case_and_separators(resolve, name):
    assert resolve("--method", name).method == "fedavg"


def test_options_of_the_method_are_flags(resolve):
    assert resolve("--method", "fedprox", "--mu", "1e-3").method == "fedprox(mu=0.001)"
    config = resolve("--method", "fednova", "--normalise-w", "--server_lr=0.5")
    assert config.spec("method").options == {"normalise_W": True, "server_lr": 0.5}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--normalise-W", "False"],
        ["--normalise-W", "0"],
        ["--normalise-W=no"],
        ["--no-normalise-W"],
    ],
)
def test_false_in_every_way_of_writing_is_false(resolve, arguments):
    config = resolve("--method", "fednova", *arguments)
    assert config.spec("method").options == {"normalise_W": False}


def test_names_of_the_benchmark_are_accepted(resolve):
    config = resolve(
        *("--dataset", "fcube", "--alg", "fedprox", "--mu", "0.1", "--n_parties", "8"),
        *("--partition", "noniid-labeldir", "--beta", "0.1", "--comm_round", "3"),
    )
    assert config.method == "fedprox(mu=0.1)"
    assert config.partition == "label_dirichlet(alpha=0.1)"
    assert (config.clients, config.rounds) == (8, 3)
    assert resolve("--partition", "noniid-#label2").partition == "label_count(k=2)"


def test_a_preset_fills_in_and_its_deviations_are_printed(cli, monkeypatch):
    seen = planned(monkeypatch)
    result = cli("run", "--dry-run", "--preset", "niid-published", "--lr", "0.5")
    assert seen[0].model == "linear"
    assert "deviation: lr = 0.5 (niid_published: 0.01)" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "fedfomo"], "unknown method 'fedfomo'"),
        (["--method", "fedporx"], "did you mean 'fedprox'?"),
        (["--method", ""], "method = ''"),
        (["--local-epoch", "3"], "did you mean --local-epochs?"),
        (["--set", "local_epoch=3"], "did you mean 'local_epochs'?"),
        (["--set", "lr"], "expected KEY=VALUE"),
        (["--mu", "0.1"], "no option of the chosen method"),
        (["--method", "fedprox(mmu=1)"], "did you mean 'mu'?"),
        (["--method", "fedprox", "--mu", "big"], "mu='big'"),
        (["--method", "fednova", "--normalise-W=maybe"], "normalise_W='maybe'"),
        (["--method", "fedprox(mu=1)", "--mu", "2"], "mu is given twice"),
        (["--rounds", "2", "--comm_round", "3"], "given twice"),
        (["--partition", "label_count(q=3)"], "no option 'q'"),
        (["--partition", "dirichlet"], "label_dirichlet"),
        (["--partition", "sorted_shards(shards=0)"], "shards"),
        (["--model", "cn"], "did you mean 'cnn'?"),
        (["--sampler", "unifrom"], "did you mean 'uniform'?"),
        (["--schedule", "cosin"], "did you mean 'cosine'?"),
        (["--preset", "niid"], "niid_published"),
        (["--cohort", "20", "--clients", "10"], "at most the 10 clients"),
        (["--participation", "0.5", "--cohort", "2"], "give one of them"),
        (["stray"], "unexpected argument 'stray'"),
        (["--config", "absent.toml"], "absent.toml"),
        (["--config", "a.yaml"], "TOML"),
        (["--resume"], "--out"),
        (["--resume", "--overwrite", "--out", "x"], "exclude each other"),
        (["--resume=maybe"], "--resume"),
        (["--dry-run=maybe"], "--dry-run"),
    ],
)
def test_a_mistake_ends_with_code_2_and_names_it(cli, arguments, words):
    result = cli("run", *arguments)
    assert result.exit_code == 2, result.output
    assert words in plain(result.output)
    assert "Traceback" not in result.output


def test_all_mistakes_come_in_one_message_before_any_work(cli, tmp_path):
    (tmp_path / "a.toml").write_text('epochs = 3\n[method]\nname = "fedprox"\nmuu = 1\n')
    result = cli(
        *("run", "--config", "a.toml", "--rounds", "-1", "--batch-size", "0"),
        *("--partition", "nowhere", "--bacth-size", "3"),
    )
    assert result.exit_code == 2
    for words in ("'epochs'", "muu", "rounds = -1", "batch_size", "nowhere", "--bacth-size"):
        assert words in result.output
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--trials", "0"], "trials = '0'"),
        (["--jobs", "two"], "jobs = 'two'"),
        (["--target", "95"], "at most 1"),
        (["--methods", "fedavg,fedprx"], "did you mean 'fedprox'?"),
        (["--methods", "fedavg,FEDAVG"], "listed twice"),
        (["--methods", "fedavg", "--mu", "1"], "--mu"),
        (["--methods", "fedprox", "--mu", "0.1,big"], "big"),
        (["--baseline", "fedfoo"], "none of the methods compared"),
        (["--method", "fedavg"], "did you mean --methods?"),
        (["--reference=maybe"], "--reference"),
    ],
)
def test_a_mistake_in_a_comparison_ends_with_code_2(cli, arguments, words):
    result = cli("compare", *arguments)
    assert result.exit_code == 2, result.output
    assert words in plain(result.output)


def asked(*arguments, base=None, **own):
    return contest.read(base=base or {}, sets=None, flags={}, own=own, arguments=arguments)


def test_methods_of_a_comparison_keep_their_own_options():
    found = asked("--mu", "0.5", methods="fedavg, fedprox(mu=0.1), fedprox, FedNova")
    written = [str(spec) for spec in found.methods]
    assert written == ["fedavg", "fedprox(mu=0.1)", "fedprox(mu=0.5)", "fednova"]


def test_several_values_are_a_grid_without_repetitions():
    found = asked("--mu", "[1e-2, 1e-3, 0.01]", methods="fedavg,fedprox")
    assert found.grid == {"mu": [0.01, 0.001]}
    assert str(found.methods[1]) == "fedprox"


def test_a_comparison_is_written_in_a_file_too():
    table = {"methods": ["fedavg", "fedprox"], "trials": 2, "mu": [0.1, 1], "reference": False}
    found = asked(base={"rounds": 3, "compare": table}, trials="1")
    assert (found.trials, found.reference, found.config.rounds) == (1, False, 3)
    assert found.grid == {"mu": [0.1, 1]}


def test_a_preset_reaches_every_method_of_a_comparison():
    found = asked(base={"preset": "niid_published"}, methods="fedavg,fednova(normaliser='steps')")
    assert found.methods[1].options == {"normaliser": "steps", "weighting": "batches"}
    assert any("normaliser" in sentence for sentence in found.deviations)


def test_an_unknown_key_of_the_compare_table_is_refused():
    with pytest.raises(ConfigError, match="did you mean 'trials'"):
        asked(base={"compare": {"trails": 3}})


WORDS = st.text("abcxyz", min_size=1, max_size=5)


@patient
@given(st.dictionaries(WORDS, st.text("abc019.", min_size=1, max_size=5), max_size=4))
def test_flags_are_split_alike_with_blank_and_equals_sign(pairs):
    spaced = [word for key, value in pairs.items() for word in (f"--{key}", value)]
    joined = [f"--{key}={value}" for key, value in pairs.items()]
    assert extras.split(spaced) == extras.split(joined) == list(pairs.items())


@patient
@given(st.text(max_size=80))
def test_a_folder_name_never_leads_elsewhere(text):
    assert re.fullmatch(r"[a-z0-9-]+", slug(text))


def test_the_stored_configuration_is_the_one_in_force(cli, tmp_path):
    result = cli(
        *("run", "--method", "fednova", "--normalise-W=no", "--lr", "1e-3", "--rounds", "0"),
        *("--quiet", "--out", "here"),
    )
    assert result.exit_code == 0, result.output
    stored = json.loads((tmp_path / "here" / "config.json").read_text())
    assert stored["method"] == "fednova(normalise_W=False)"
    assert stored["lr"] == 0.001
