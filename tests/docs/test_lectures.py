"""Every worked example of the five lectures has its place on a page, and its number there is the right one.

Each row computes its numbers here, by hand or with another library, and finds them in the named section of the page:
in the text, or in an output that ``test_pages`` compares with what the code prints.
"""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.linear_model import Perceptron
from tests.docs.pages import DOCS

BAYES, CENSUS, COINS, PLANE, TACK = (
    "1-bayes-rule",
    "2-census-documents-genes",
    "3-bernoulli-to-iris",
    "4-linear-classifier",
    "5-thumbtack-digits-tennis",
)


def section(page: str, heading: str) -> str:
    """The text under a heading, up to the next one of its level."""
    text = re.sub(r"^#(?= y, x1)", "", (DOCS / "lectures" / f"{page}.md").read_text(), flags=re.MULTILINE)
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert heading in found, f"{page} has no section {heading!r}"
    return found[heading]


def short(x: float, digits: int = 4) -> str:
    """A number between 0 and 1 as the text writes it: .1786."""
    return f"{float(x):.{digits}f}".removeprefix("0")


def shapes():
    plus, minus = Fraction(3, 7) * Fraction(5, 7), Fraction(3, 5) * Fraction(3, 5)
    joint = plus * Fraction(7, 12), minus * Fraction(5, 12)
    yield from (short(joint[0]), short(joint[1], 2), short(joint[0] / sum(joint), 3), short(joint[1] / sum(joint), 3))
    yield from (short(plus, 3), short(minus, 2), "['-']", "['+']")


def drugs():
    rows = [("100", "fail"), ("101", "hit"), ("011", "fail"), ("010", "hit"), ("111", "hit")]
    score = {}
    for outcome in ("hit", "fail"):
        mine = [features for features, label in rows if label == outcome]
        score[outcome] = Fraction(len(mine), 5) * math.prod(
            Fraction(sum(x[j] == "1" for x in mine), len(mine)) for j in range(3)
        )
    yield from (f"= {float(score['hit'] / sum(score.values())):.2f}", "2/3", "1/2", "3/5", "slip")
    slip = Fraction(3, 5) * Fraction(2, 3) ** 3
    yield short(slip / (slip + Fraction(2, 5) * Fraction(1, 3) ** 3), 2)


def absent_word():
    sport, politics = ["football goal"] * 2 + ["football score"] * 2, ["vote", "goal law", "tax", "vote law"]
    words = sorted({word for text in sport + politics for word in text.split()})
    has = {name: [sum(w in t.split() for t in texts) for w in words] for name, texts in (("s", sport), ("p", politics))}
    total = {name: sum(counts) for name, counts in has.items()}
    goal = words.index("goal")
    counted = {name: Fraction(has[name][goal] + 1, total[name] + len(words)) for name in has}
    seen = {n: math.prod(Fraction(c + 1 if j == goal else 5 - c, 6) for j, c in enumerate(has[n])) for n in has}
    yield f"{float(counted['s'] / sum(counted.values())):.3f}, so sport"
    yield f"{float(seen['s'] / sum(seen.values())):.3f}, so politics"


def two_bells():
    rng = np.random.default_rng(10)
    adult = np.column_stack([rng.normal(170, 9, 200), rng.normal(72, 12, 200)])
    child = np.column_stack([rng.normal(125, 18, 150), rng.normal(27, 8, 150)])
    density = np.array([stats.norm.pdf([150, 45], group.mean(axis=0), group.std(axis=0)) for group in (adult, child)])
    joint = density.prod(axis=1) * [200 / 350, 150 / 350]
    yield from (str(density.round(5).tolist()), str((joint / joint.sum()).round(3)), "diagonal quadratic")
    yield "tied-diagonal linear"


def leaning():
    rng = np.random.default_rng(11)
    height = np.concatenate([rng.normal(170, 9, 200), rng.normal(125, 18, 150)])
    adult = np.arange(350) < 200
    people = np.column_stack([height, 0.55 * height - 25 + rng.normal(0, 5, 350) + np.where(adult, 3.0, -15.0)])
    groups = [people[adult], people[~adult]]
    pooled = sum(len(g) * np.cov(g.T, bias=True) for g in groups) / 350
    for name, of in {
        "full": lambda c: c,
        "tied": lambda c: pooled,
        "diagonal": lambda c: np.diag(np.diag(c)),
        "spherical": lambda c: np.eye(2) * np.trace(c) / 2,
    }.items():
        laws = [stats.multivariate_normal(g.mean(axis=0), of(np.cov(g.T, bias=True))) for g in groups]
        total = np.log(sum(len(g) / 350 * law.pdf(people) for g, law in zip(groups, laws, strict=True))).sum()
        yield f"{name:9} log-likelihood {total:8.1f}"


def census_table():
    yield from (
        "21 rows",
        f"{2**16 - 1} against 16 a class",
        "gaussian ('age', 'hours')",
        "adds nothing to either class",
    )
    text = section(CENSUS, "A census table")
    rows = [line.split(",") for line in re.findall(r"^\d+,.*$", text, re.MULTILINE)]
    assert len(rows) == 21
    assert sum(value == "" for row in rows for value in row) == 1
    sizes = [len({row[j] for row in rows} - {""}) for j in (1, 2, 3, 5)]
    yield f"this table: {4 * math.prod(sizes) - 1} against {2 + sum(sizes) - 4} a class"


def election():
    yes, no = 0.8 * 0.9 * 0.9 * 0.9, 0.1 * 0.05 * 0.05 * 0.3
    yield from (short(yes * 0.5), f"{no * 0.5:.7f}".removeprefix("0"), short(yes), f"{no:.6f}".removeprefix("0"))
    yield str([round(yes / 2, 7), round(no / 2, 7)])


def bag_of_words():
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import BernoulliNB, MultinomialNB

    election = ["obama and romney debate", "romney wins iowa", "obama wins the election, obama speaks"]
    sports = ["football: the bears win", "a football trade", "the bears trade, trade, trade"]
    words = CountVectorizer().fit(election + sports)
    for name, model in (("bernoulli", BernoulliNB()), ("multinomial", MultinomialNB())):
        model.fit(words.transform(election + sports), [0, 0, 0, 1, 1, 1])
        p = model.predict_proba(words.transform(["obama speaks on trade"]))[0].round(3)
        yield f"{name:11} {{'election': {p[0]}, 'sports': {p[1]}}}"


def never_seen():
    yield from (
        "mle   {1: 0.5, 2: 0.0,",
        f"2: {float(Fraction(1, 3) * Fraction(2, 3)):.4f}",
        short(Fraction(2, 9)),
        "2/9",
    )


def genes():
    yield from ("errors: 1 of 34", "rank in confidence: [1]", "-picture.svg")


def maximum_likelihood():
    y, first = [0, 1, 1, 0, 0, 1], [1, 0, 0, 0, 1, 1]
    theta = Fraction(sum(x for x, c in zip(first, y, strict=True) if c == 0), y.count(0))
    yield from (
        rf"\varphi = {sum(y)}/6",
        rf"\theta_{{0,1}} = {theta}",
        f"theta_0,1 = {float(theta):.3f}",
        f"phi = {sum(y) / 6}",
    )


def unicorn():
    text = section(COINS, "The unicorn")
    said = {name: re.search(rf"^{name} = (\[.*\])$", text, re.MULTILINE)[1] for name in ("real", "fake", "article")}
    real, fake, article = (re.findall(r"\w+", line) for line in said.values())
    words = {*real, *fake}
    assert math.prod(real.count(w) for w in article) == 0
    score = [math.prod(Fraction(c.count(w) + 1, len(c) + len(words)) for w in article) for c in (fake, real)]
    yield from ("mle {'fake': 1.0, 'real': 0.0}", f"'real': {float(score[1] / sum(score)):.4f}")


def beta_prior():
    yield from (str((10 - 1 + 2) / (10 - 1 + 10 - 1 + 3)), r"$\alpha - 1$ and $\beta - 1$")


def word_ids():
    spam = {"no": [0, 1, 1, 1, 2], "yes": [3, 2, 3, 3, 0, 3, 3]}
    for new in ([3, 3, 1], [1, 0]):
        score = [math.prod(Fraction(ids.count(i) + 1, len(ids) + 4) for i in new) for ids in spam.values()]
        yield f"{float(score[0] / sum(score)):.4f}"
    text = section(COINS, "Words as a list of numbers, or counted")
    first, second = re.findall(r"^\[\[.*\]\]$", text, re.MULTILINE)
    assert first == second


def own_event():
    code = re.search(
        r"class Geometric.*?log1p\(-p\)\n", section(COINS, "Your favourite distribution as the event model"), re.DOTALL
    )
    assert code
    assert len(code[0].splitlines()) <= 20
    yield from (f"{5 / 23:.3f}", f"{(1 + 4) / (2 + 5):.3f}")


def story():
    rng, heads = np.random.default_rng(301), np.array([[0.6, 0.1, 0.9, 0.5], [0.2, 0.7, 0.8, 0.5]])
    y = rng.choice(2, size=6, p=[0.5, 0.5])
    rows = (rng.random((6, 4)) < heads[y]).astype(int)
    yield from (str(np.column_stack([y, rows])), str(heads.tolist()))


def irises():
    from sklearn.datasets import load_iris
    from sklearn.naive_bayes import GaussianNB

    X, y = load_iris(return_X_y=True)
    wrong = (GaussianNB(var_smoothing=0).fit(X[:, :2], y).predict(X[:, :2]) != y).sum()
    yield from (
        f"a variance for each class: {wrong} of 150 wrong",
        "variance fixed at 1: 28 of 150",
        "p(y = 1 | x) \u2212 p(y = 0 | x)",
    )
    means = np.array([X[y == c, :2].mean(axis=0) for c in range(3)])
    nearest = ((X[:, None, :2] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest != y).sum() == 28
    yield from ("iris-two-picture", "iris-three-picture", "iris-surface-picture")


def pocket():
    rng = np.random.default_rng(17)
    inner, outer = rng.normal(0, 0.6, (150, 2)), rng.normal(0, 2.5, (150, 2))
    points = np.vstack([inner, outer])
    score = [stats.norm.logpdf(points, g.mean(axis=0), g.std(axis=0)).sum(axis=1) for g in (inner, outer)]
    yield from (f"learned: {((score[1] > score[0]) != np.repeat([0, 1], 150)).mean().round(3)}", "pocket-picture")


def ng_and_jordan():
    yield from ("solid for naive Bayes and dashed for the others", "generative-and-discriminative.md", "perceptron")
    page = (DOCS / "explanation" / "generative-and-discriminative.md").read_text()
    verdicts = re.findall(r"^\| ([\w ,-]+) \| (?:stays|ahead|behind|even)", page, re.MULTILINE)
    assert len(verdicts) >= 8


def regularisation():
    yield from (f"{11 / 12:.4f}", f"{2 * math.log(11):.2f}", f"{2 * math.log(19 / 9):.2f}")


def linear_form():
    yield from ("sign(w.x + b) is the prediction: True", "w =")
    text = section(PLANE, "Shared variances make a linear classifier")
    assert re.search(r"print\(disagreements\)\n```\n```\n0\n```", text)


def perceptron():
    errors = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        draws = []
        for n in (20, 2000):
            y = rng.integers(0, 2, n)
            draws.append((rng.normal(size=(n, 10)) + 0.5 * y[:, None], y))
        (X, y), (test, truth) = draws
        errors.append((Perceptron(random_state=seed).fit(X, y).predict(test) != truth).mean())
    yield from ("lean 0.0,   20 rows: naive Bayes", f"perceptron {np.mean(errors):.3f}")


def thumbtack():
    yield from ("3/5", "Beta(8, 7)", short(Fraction(7, 13)), short(Fraction(8, 15)), f"E[f] = {8 * 9 / (15 * 16):.4f}")
    yield f"f(MAP) = {(7 / 13) ** 2:.4f}"


def digits_and_averages():
    from sklearn.model_selection import cross_val_score
    from sklearn.naive_bayes import BernoulliNB

    found = load_digits()
    black = (found.data > 7).astype(float)
    error = 1 - cross_val_score(BernoulliNB(), black, found.target, cv=10).mean()
    yield from (
        f"error of ten folds: {error:.3f}",
        "the average of the fives: True",
        "MNIST test error: 0.157",
        "digits-picture",
    )


def tennis():
    play = math.log10(3 / 4 * 1 / 5 * 4 / 5 * 2 / 5)
    stay = math.log10(1 / 4 * 2 / 3 * 1 / 3 * 1 / 3)
    yield from (f"[{stay:.3f} {play:.3f}] ['yes']", f"\u2212{-play:.3f}", f"\u2212{-stay:.3f}")


def tables_of_the_graph():
    for name, play, stay in (
        ("sky = sunny", Fraction(4, 5), Fraction(1, 3)),
        ("humidity = high", Fraction(3, 5), Fraction(2, 3)),
    ):
        yield f"P({name} | play) = {float(play):.3f}   P({name} | not) = {float(stay):.3f}"
        yield from (str(play), str(stay))
    yield "network-picture"


def copies():
    for k in (1, 2, 3, 5, 10):
        not_play, play = Fraction(1, 4) * Fraction(2, 3) ** k, Fraction(3, 4) * Fraction(1, 5) ** k
        yield f"{k:2} copies: P(not | rainy) = {float(not_play / (not_play + play)):.4f} no"


def smoothing():
    for a in (1.0, 0.5):
        yield f"Dirichlet(alpha={a}) mean {[round((0 + a) / (3 + 2 * a), 4), round((3 + a) / (3 + 2 * a), 4)]}"
    yield "(count + a) / (n + |X| a)"


ROWS = {
    "shapes of two colours and forms: joint, posterior, uniform prior": (BAYES, "Twelve coloured shapes", shapes),
    "five compounds, three features": (BAYES, "Is the drug available to the body?", drugs),
    "a word that is not there speaks": (BAYES, "The absent word counts", absent_word),
    "adults and children by two bells": (BAYES, "Adult or child: a bell for each feature", two_bells),
    "covariances: full, tied, diagonal, spherical": (BAYES, "Contours that lean", leaning),
    "a mixed census with a gap; parameter counts": (CENSUS, "A census table", census_table),
    "election or sports from given parameters": (CENSUS, "Election or sports?", election),
    "documents as present/absent and as counts": (CENSUS, "A bag of words", bag_of_words),
    "a combination never seen": (CENSUS, "What was never seen: p(S = 1, N = 1 | E = 2)", never_seen),
    "two cancers by gene expression": (CENSUS, "Two cancers told apart by their genes", genes),
    "maximum likelihood on six rows": (COINS, "Maximum likelihood: count", maximum_likelihood),
    "the word never seen in one class": (COINS, "The unicorn", unicorn),
    "MAP under Beta(10, 10)": (COINS, "MAP with a Beta(10, 10) prior", beta_prior),
    "word ids and word counts": (COINS, "Words as a list of numbers, or counted", word_ids),
    "an own event model in 20 lines": (COINS, "Your favourite distribution as the event model", own_event),
    "the class coin, then the red or blue coins": (COINS, "The generative story", story),
    "iris by three ideas of the variance": (COINS, "Irises", irises),
    "one class inside another": (COINS, "One pocket", pocket),
    "naive Bayes and logistic regression as rows grow": (COINS, "Generative against discriminative", ng_and_jordan),
    "a Beta prior beside a Gaussian prior on weights": (COINS, "MAP as regularisation", regularisation),
    "a shared sigma is linear: w and b": (PLANE, "Shared variances make a linear classifier", linear_form),
    "the perceptron on the same data": (PLANE, "Perceptron against naive Bayes", perceptron),
    "the thumbtack by MLE, MAP, expectation": (TACK, "The thumbtack", thumbtack),
    "digits as averages of images": (TACK, "Digits: training is averaging", digits_and_averages),
    "tennis with Laplace": (TACK, "Shall we play tennis?", tennis),
    "conditional probability tables and their graph": (TACK, "The graphical model and its tables", tables_of_the_graph),
    "a feature more than once": (TACK, "Two copies of a feature", copies),
    "smoothing is a Dirichlet prior": (TACK, "Smoothing is a Dirichlet prior", smoothing),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_page_has_the_example_and_its_numbers(row):
    page, heading, numbers = ROWS[row]
    text = section(page, heading)
    for number in numbers():
        assert number in text, f"{page}, {heading!r}: {number} is not there"


def test_tilted_gaussians_are_those_of_both_lectures():
    assert "1-bayes-rule.md#contours-that-lean" in section(CENSUS, "Contours that lean")
