"""Thresholds that are chosen, costs in files, decisions on the command line."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

import candide as cd
from candide.cli import cli
from candide.data.labels import Labels
from candide.decisions.thresholds import read_costs, select_threshold
from candide.errors import InputError
from candide.metrics.scores import Scores

LABELS = Labels(("no", "yes"))


def rows(n, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    columns = {"x": rng.normal(np.where(y, 1.5, 0.0), 1.0), "z": rng.normal(np.where(y, 0.5, 0.0), 1.0)}
    return {**columns, "y": np.where(y, "yes", "no")}


def write(path, table):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(table)
        out.writerows(zip(*table.values(), strict=True))
    return str(path)


def run(*typed):
    found = CliRunner().invoke(cli, [str(word) for word in typed])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.output


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write(tmp_path_factory.mktemp("decide") / "rows.csv", rows(1500))


def folds_of(n=2000, seed=0, k=5):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    odds = rng.normal(2.0 * y - 1.0, 1.0).round(2)  # some are tied
    log_p = np.stack([-np.logaddexp(0, odds), -np.logaddexp(0, -odds)], axis=1)
    return [Scores.from_log_posterior(log_p[i::k], y[i::k]) for i in range(k)], log_p, y


@pytest.mark.parametrize("aim", [{"precision": 0.8}, {"recall": 0.9}, {"recall": 1.0}, {"precision": 0.35}])
def test_the_threshold_is_the_one_of_brute_force(aim):
    folds, log_p, y = folds_of()
    found = select_threshold(folds, LABELS, **aim)
    odds = log_p[:, 1] - log_p[:, 0]

    def reached(at):
        taken = odds >= at
        return y[taken].mean() if "precision" in aim else y[taken].sum() / y.sum()

    good = [at for at in np.unique(odds) if reached(at) >= next(iter(aim.values()))]
    wanted = min(good) if "precision" in aim else max(good)
    below = odds[odds < wanted].max(initial=-np.inf)
    assert below < found.policy.log_odds <= wanted
    given = found.policy.make_rule(LABELS)(log_p)
    assert (given == (odds >= wanted)).all()


def test_what_is_expected_comes_from_folds_that_have_not_chosen():
    folds, *_ = folds_of(300, seed=1)
    found = select_threshold(folds, LABELS, recall=0.9).expected_metrics
    taken, of_class = 0.0, 0.0
    for i, fold in enumerate(folds):
        rest = select_threshold([one for j, one in enumerate(folds) if j != i], LABELS, recall=0.9)
        chunk = fold.ranks.chunks[0]
        taken += ((chunk.log_odds[:, 0] >= rest.policy.log_odds) & (chunk.y == 1)).sum()
        of_class += (chunk.y == 1).sum()
    assert found.recall == pytest.approx(taken / of_class)


def test_a_very_sure_model_has_thresholds_too():
    y = np.arange(100) % 2
    odds = 60.0 + np.arange(100) * 0.5  # probabilities that are 1 to the last digit
    log_p = np.stack([-np.logaddexp(0, odds), -np.logaddexp(0, -odds)], axis=1)
    found = select_threshold([Scores.from_log_posterior(log_p, y)], LABELS, recall=0.5)
    assert (found.policy.make_rule(LABELS)(log_p) == 1).sum() in (49, 50)


@pytest.mark.parametrize(
    ("aim", "value"),
    [({"precision": 1.5}, 1.5), ({"recall": 0.0}, 0.0), ({}, None), ({"recall": 0.5, "precision": 0.5}, None)],
)
def test_what_cannot_be_aimed_at(aim, value):
    folds, *_ = folds_of()
    with pytest.raises(InputError) as error:
        select_threshold(folds, LABELS, **aim)
    assert error.value.value == value
    assert error.value.remedy


def test_a_precision_that_is_never_reached():
    y = np.arange(40) % 2
    scores = Scores.from_log_posterior(np.log(np.full((40, 2), 0.5)), y)
    with pytest.raises(InputError, match="no threshold") as error:
        select_threshold([scores], LABELS, precision=0.9)
    assert error.value.value == 0.9
    with pytest.raises(InputError, match="one class"):
        select_threshold(
            [Scores.from_log_posterior(np.log(np.full((4, 3), 1 / 3)), y[:4])], Labels(("a", "b", "c")), recall=0.5
        )


def test_costs_in_a_file(tmp_path):
    matrix, pairs = tmp_path / "matrix.csv", tmp_path / "pairs.csv"
    matrix.write_text("true,no,yes\nno,0,1\nyes,5,0\n")
    pairs.write_text("True,Predicted,Cost\nyes,no,5\n")
    assert read_costs(matrix)[("yes", "no")] == 5
    assert read_costs(pairs) == {("yes", "no"): 5}
    for text in ("", "true,no,yes\n", "true,no,yes\nno,0\n", "true,predicted,cost\nyes,no,much\n"):
        matrix.write_text(text)
        with pytest.raises(InputError) as error:
            read_costs(matrix)
        assert error.value.remedy
    for text in (
        "true,predicted,cost\nyes,no,5\nyes,no,0\n",
        "true,no,yes\nyes,5,0\nyes,0,5\n",
        "true,no,no\nyes,5,0\n",
    ):
        matrix.write_text(text)
        with pytest.raises(InputError, match="predicting 'no' for 'yes' is given twice"):
            read_costs(matrix)


def test_commands_decide_by_costs(file, tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text("true,predicted,cost\nyes,no,5\n")
    model, out = tmp_path / "m.candide", tmp_path / "out.jsonl"
    told = " ".join(
        run("fit", file, "-t", "y", "--model", "naive", "--costs", costs, "-o", model).replace("\\", "").split()
    )
    assert f"--costs {costs}" in told
    assert f"candide report {model}" in told
    run("predict", model, file, "-o", out)
    given = [json.loads(line)["prediction"] for line in out.read_text().splitlines()]
    plain = cd.fit(file, "y", model="naive")
    assert given == plain.with_policy(costs={("yes", "no"): 5}).predict({k: rows(1500)[k] for k in "xz"}).tolist()
    facts = json.loads(run("evaluate", model, file, "--json"))
    truth = rows(1500)["y"]
    cost = sum(5 if b == "yes" else 1 for a, b in zip(given, truth, strict=True) if a != b)
    assert facts["policy_result"]["total_cost"] == pytest.approx(cost)
    assert facts["policy_result"]["mean_cost"] < facts["policy_result"]["baseline_cost"]
    assert "costs" in run("evaluate", model, file)
    other = json.loads(run("evaluate", model, file, "--json", "--threshold", "0.5"))
    assert other["policy_result"]["total_cost"] == pytest.approx(1500 * (1 - other["metrics"]["accuracy"]["value"]))


def test_a_threshold_is_chosen_and_kept(file, tmp_path):
    model = tmp_path / "m.candide"
    facts = json.loads(run("evaluate", file, "-t", "y", "--model", "naive", "--at-recall", "0.9", "--json"))
    assert facts["chosen_threshold"]["recall"] == pytest.approx(0.9, abs=0.03)
    text = run("fit", file, "-t", "y", "--model", "naive", "--at-recall", "0.9", "-o", model)
    at, flat = facts["chosen_threshold"], " ".join(text.split())
    assert f"when its probability is at least {at['threshold']:.4g}. With thresholds chosen on the other folds" in flat
    assert "Confusion matrix, threshold of yes chosen on the other folds" in text
    own = sum(facts["confusion"][1])
    assert text.split("Confusion matrix, threshold")[1].splitlines()[3].split()[-1] == f"{at['recall'] * own:.0f}"
    assert "Confusion matrix, most probable class" in text
    assert cd.load(model).fitted_.policy.threshold == pytest.approx(facts["chosen_threshold"]["threshold"])
    assert cd.evaluate(model, file).class_scores(["no", "yes"])[1].recall == pytest.approx(0.9, abs=0.02)


def test_a_threshold_near_1_is_not_printed_as_1():
    from candide.metrics.curves import make_threshold
    from candide.report.summary.scores import describe_chosen_threshold

    for threshold, said in ((1 - 1e-7, "least 0.9999999."), (1.0, "nearly 1."), (0.25, "0.25.")):
        assert said in describe_chosen_threshold(make_threshold("yes", threshold, 1, 1, 2, 2))
    sure = cd.Policy(threshold=1.0, positive="yes", log_odds=50.0)
    assert sure.describe(LABELS) == "'yes' if its probability is at least nearly 1"


@pytest.mark.parametrize("k", [0, -1, 1.5, "2"])
def test_no_number_of_classes(k):
    scores = Scores.from_log_posterior(np.log([[0.5, 0.5]]), np.array([1]))
    with pytest.raises(InputError) as error:
        scores.top_k_accuracy(k)
    assert error.value.value == k


def test_scores_of_no_probability():
    with pytest.raises(InputError) as error:
        Scores.from_log_posterior(np.array([[-1.0, -1.0], [np.nan, -1.0]]), np.array([1, 0]))
    assert error.value.row == 1


def test_rows_that_have_weights_are_reported_by_their_weight(tmp_path):
    table = {**rows(300), "w": np.round(np.random.default_rng(0).random(300), 6)}
    told = run("evaluate", write(tmp_path / "rows.csv", table), "-t", "y", "--model", "naive", "--weight", "w")
    assert f"rows of weight {table['w'].sum():,.1f}" in told


def test_a_setting_that_is_named_twice(file):
    with pytest.raises(InputError, match="naive is named twice"):
        run("compare", file, "-t", "y", "--model", "naive", "--model", "naive")


def test_doubt_leaves_rows_open(file, tmp_path):
    model, out = tmp_path / "m.candide", tmp_path / "out.csv"
    run("fit", file, "-t", "y", "--model", "naive", "-o", model)
    run("predict", model, file, "-o", out, "--abstain-below", "0.9")
    given = [row["prediction"] for row in csv.DictReader(out.open())]
    facts = json.loads(run("evaluate", model, file, "--abstain-below", "0.9", "--json"))
    assert facts["policy_result"]["coverage"] == pytest.approx(sum(map(bool, given)) / 1500)
    plain = json.loads(run("evaluate", model, file, "--json"))
    [line] = [one for one in plain["curves"] if one["name"] == "coverage"]
    at = np.interp(facts["policy_result"]["coverage"], line["x"], line["y"])
    assert facts["metrics"]["accuracy"]["value"] == pytest.approx(at, abs=0.01)
    assert line["y"][-1] == pytest.approx(plain["metrics"]["accuracy"]["value"])


def test_other_shares_on_the_command_line(file, tmp_path):
    model, out = tmp_path / "m.candide", tmp_path / "out.jsonl"
    run("fit", file, "-t", "y", "--model", "bayes", "--quick", "-o", model)
    run("predict", model, file, "-o", out, "--class-prior", "yes=.02,no=.98")
    p = np.array([json.loads(line)["p_yes"] for line in out.read_text().splitlines()])
    plain = cd.load(model)
    wanted = plain.with_policy(class_prior={"yes": 0.02, "no": 0.98}).predict_proba({k: rows(1500)[k] for k in "xz"})
    assert p == pytest.approx(wanted[:, 1], abs=1e-9)
    rare = json.loads(run("evaluate", model, file, "--json", "--class-prior", "yes=.02,no=.98"))
    assert (
        rare["metrics"]["log_loss"]["value"]
        > json.loads(run("evaluate", model, file, "--json"))["metrics"]["log_loss"]["value"]
    )
    fitted = tmp_path / "f.candide"
    run("fit", file, "-t", "y", "--model", "naive", "--class-prior", "yes=.02,no=.98", "-o", fitted)
    assert cd.load(fitted).fitted_.settings.class_prior == {"yes": 0.02, "no": 0.98}


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        (["--threshold", "1.2"], "1.2"),
        (["--abstain-below", "-1"], "-1"),
        (["--class-prior", "yes=.5,no=.6"], "1.1"),
        (["--class-prior", "yes=.5,maybe=.5"], "maybe"),
        (["--class-prior", "half"], "half"),
        (["--class-prior", "yes=.5,yes=.5,no=.5"], "'yes' is given twice"),
        (["--positive", "yes"], "--threshold"),
        (["--threshold", ".5", "--positive", "si"], "si"),
    ],
)
def test_wrong_options_are_named(file, tmp_path, typed, word):
    model = tmp_path / "m.candide"
    run("fit", file, "-t", "y", "--model", "naive", "-o", model)
    with pytest.raises(InputError, match=word):
        run("predict", model, file, *typed)


def test_a_threshold_is_not_chosen_on_the_rows_it_is_evaluated_on(file, tmp_path):
    model = tmp_path / "m.candide"
    run("fit", file, "-t", "y", "--model", "naive", "-o", model)
    with pytest.raises(InputError, match="is optimistic"):
        run("evaluate", model, file, "--at-recall", ".9")
    with pytest.raises(InputError, match="two"):
        run("evaluate", file, "-t", "y", "--at-recall", ".9", "--threshold", ".5")
    with pytest.raises(InputError, match="its own rows"):
        cd.cross_validate(rows(100), "y", policy={"class_prior": "uniform"})
