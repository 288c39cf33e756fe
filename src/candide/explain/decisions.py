"""Decisions: the class of a row, and the contributions of terms to its log-odds against the runner-up.

The contribution of a column is log p(value | class) minus the same for the runner-up: above zero it counts for the
predicted class. A missing value contributes 0, except that a discriminant reads it as the mean of its column. With the
class prior the contributions add up to the log-odds.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import compress
from typing import Any

from candide import formatting
from candide.data.labels import is_absent
from candide.data.table import Name
from candide.encoding.tokens import Tokens
from candide.explain.words import DocumentWord, HighlightedText, highlight_document

EXPLANATION_UNITS = ("term", "column")
_MAX_LINES, _MAX_WORDS, _MAX_ROWS = 20, 5, 10  # columns, words of a document, and rows, in print


@dataclass(frozen=True)
class Contribution:
    """The contribution of a column, or of columns modelled together: its value (None: missing), and log-odds."""

    column: Name | tuple[Name, ...]
    value: Any
    log_odds: float
    is_seen: bool = True  # False: a level that was not in the training data
    words: tuple[DocumentWord, ...] = ()  # the known words of a document, strongest first
    term: str = ""  # the title of a joint term, such as "age x job"
    cells: tuple[str | None, ...] = ()  # the bin or cell of each value, where it has one
    nearest_prototype: int | None = None  # its number, for a prototype term
    tokens: Tokens | None = None  # how a document was divided into words
    changes: tuple[float, ...] = ()  # of a joint term without cells: how much each column changes it

    @property
    def title(self) -> str:
        """The name of the term or column, for people."""
        return self.term or formatting.format_column(self.column)

    @property
    def columns(self) -> tuple[Name, ...]:
        """The columns, also where it is one."""
        return self.column if isinstance(self.column, tuple) else (self.column,)

    @property
    def remainder(self) -> float:
        """The contribution of a document's length, and of words that it does not have."""
        return self.log_odds - sum(word.log_odds for word in self.words)

    @property
    def highlights(self) -> tuple[HighlightedText, ...]:
        """The pieces of a document with their log-odds, which add up to those of its known words."""
        is_document = self.tokens and isinstance(self.value, str)
        return highlight_document(self.value, self.words, self.tokens) if is_document else ()  # type: ignore[arg-type]

    @property
    def display_value(self) -> str:
        """The value for people."""
        if any(self.cells):
            values = self.value if isinstance(self.column, tuple) else (self.value,)
            pairs = zip(map(formatting.format_value, values), self.cells, strict=True)
            text = ", ".join(f"{value} ({cell})" if cell else value for value, cell in pairs)
        elif self.nearest_prototype is not None:
            text = f"nearest prototype {self.nearest_prototype}"
        else:
            text = formatting.format_value(self.value)
        return text if self.is_seen else f"{text} (never seen)"

    def add(self, other: "Contribution") -> "Contribution":
        """Return the sum of two contributions of the same column."""
        document = self if self.words else other
        return replace(
            self,
            log_odds=self.log_odds + other.log_odds,
            is_seen=self.is_seen and other.is_seen,
            cells=self.cells or other.cells,
            words=document.words,
            tokens=document.tokens,
        )

    def word_rows(self, limit: int = _MAX_WORDS) -> Iterator[tuple[str, str, float]]:
        """Yield the strongest words of a document, how often each occurs, and its log-odds; then the rest."""
        for word in self.words[:limit]:
            yield f"  {word.word}", formatting.format_count(word.count, "time"), word.log_odds
        rest = self.log_odds - sum(word.log_odds for word in self.words[:limit])
        if self.words and abs(rest) > 5e-3:
            yield "  all else in it", "", rest

    def to_dict(self) -> dict[str, Any]:
        """Return the contribution as values for a program; without what it does not have."""
        shown = {name: getattr(self, name) for name in ("column", "value", "log_odds", "is_seen")}
        shown |= {name: v for name in ("term", "cells", "nearest_prototype") if (v := getattr(self, name))}
        return {**shown, "words": [asdict(word) for word in self.words]} if self.words else shown


@dataclass(frozen=True, repr=False)
class Decision:
    """The class predicted for a row, the runner-up, and the contributions to the log-odds, strongest first."""

    prediction: Any
    probability: float
    runner_up: Any
    runner_up_probability: float
    class_prior: float  # log-odds, with the intercept of a weighted model
    contributions: tuple[Contribution, ...]
    has_intercept: bool = False
    calibration: float = 0.0  # change of the log-odds by the calibrator
    decided_class: Any = None  # the class that the policy decides, where it is another; None if it abstains
    policy_reason: str = ""  # why; empty where the most probable class is decided

    @property
    def decision_note(self) -> str:
        """What the policy decides and why, where that is not the most probable class; otherwise empty."""
        if not self.policy_reason:
            return ""
        action = "abstains" if self.decided_class is None else f"decides {self.decided_class}"
        return f"{action}: {self.policy_reason}; most probable: {self.prediction}"

    @property
    def log_odds(self) -> float:
        """The log-odds of the class against the runner-up: the sum of the prior, contributions and calibration."""
        total = self.class_prior + sum(c.log_odds for c in self.contributions) + self.calibration
        return total if total == total else self.class_prior  # a row impossible under both is left with the prior

    @property
    def prior_title(self) -> str:
        """The title of the class prior."""
        return "class prior and intercept" if self.has_intercept else "class prior"

    @property
    def row_heading(self) -> str:
        """The heading of the contributions: "term" where there are joint terms, otherwise "column"."""
        return "term" if any(c.term for c in self.contributions) else "column"

    def by_column(self) -> "Decision":
        """Return the same decision with the contributions of joint terms divided among their columns.

        Of an interaction each column has an equal part: if one value is missing, the term is inactive. Of a
        discriminant or a prototype term a column has an equal part, plus how much more than the mean of its columns
        the contribution would change if its value were missing. A missing value has no part, unless all are missing.
        """
        parts: dict[Name, Contribution] = {}
        for joint in self.contributions:
            is_group, n = isinstance(joint.column, tuple), len(joint.columns)
            values = joint.value if is_group and joint.value is not None else (joint.value,) * n
            present = [not is_absent(value) for value in values]
            changes, equal = joint.changes or (0.0,) * n, joint.log_odds / (sum(present) or n)
            mean = sum(compress(changes, present)) / (sum(present) or 1)
            is_exact = bool(joint.changes) and abs(sum(changes) - joint.log_odds) <= 1e-9
            for name, value, is_present, change in zip(joint.columns, values, present, changes, strict=True):
                above = change - mean if is_present else 0.0
                log_odds = equal + above if is_present or not any(present) else 0.0
                log_odds = change if is_exact else log_odds
                cells = () if is_group else joint.cells
                part = replace(
                    joint, column=name, value=value, log_odds=log_odds, term="", cells=cells, nearest_prototype=None
                )
                parts[name] = parts[name].add(part) if name in parts else part
        return replace(self, contributions=tuple(sorted(parts.values(), key=lambda c: -abs(c.log_odds))))

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as values for a program."""
        names = ("prediction", "probability", "runner_up", "runner_up_probability", "log_odds", "class_prior")
        shown = {name: getattr(self, name) for name in (*names, *(("calibration",) if self.calibration else ()))}
        return {**shown, "contributions": [c.to_dict() for c in self.contributions]}

    def rows(self, limit: int) -> list[tuple[str, str, float]]:
        """Return title, value and log-odds of the strongest contributions, of the rest, the prior and calibration."""
        rest = self.contributions[limit:]
        return [
            *((c.title, c.display_value, c.log_odds) for c in self.contributions[:limit]),
            *([(f"and {len(rest):,} more", "", sum(c.log_odds for c in rest))] if rest else []),
            (self.prior_title, "", self.class_prior),
            *([("calibration", "", self.calibration)] if self.calibration else []),
        ]

    def _titles(self) -> tuple[str, str]:
        pairs = (self.prediction, self.probability), (self.runner_up, self.runner_up_probability)
        first, second = (f"{label}, p {formatting.format_probability(p, 3)}" for label, p in pairs)
        return first, f"against {second}"

    def __str__(self) -> str:
        words = {c.title: list(c.word_rows()) for c in self.contributions}
        cells = [row for first in self.rows(_MAX_LINES) for row in (first, *words.get(first[0], ()))]
        rows = [(title, value, formatting.format_log_odds(v, 2)) for title, value, v in cells]
        lines = formatting.align_columns([(self.row_heading, "value", "log-odds"), *rows])
        return "\n".join([*filter(None, [self.decision_note]), ", ".join(self._titles()), *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown, (title, note) = self.rows(_MAX_LINES), self._titles()
        rows = [[title, value, formatting.format_log_odds(v, 2)] for title, value, v in shown]
        bars = [v if v == v else 0.0 for *_, v in shown]
        title = "; ".join(filter(None, [self.decision_note, title]))
        return formatting.render_html_table(title, [[self.row_heading, "value", "log-odds"], *rows], 2, bars, note)


class Decisions(list[Decision]):
    """Decisions of rows, in order: a list that a notebook shows one below another, the first of many."""

    def _repr_html_(self) -> str:
        more = f"<p>and {len(self) - _MAX_ROWS:,} more rows</p>" if len(self) > _MAX_ROWS else ""
        return "<br>".join(decision._repr_html_() for decision in self[:_MAX_ROWS]) + more
