"""Servers that hear of each other what they have learned answer as one that has learned it all, each row once."""

import contextlib
import shutil
from dataclasses import replace

import pytest
from tests.serve.client import ask
from tests.serve.conftest import table
from tests.serve.live import listening
from tests.serve.test_learner import labelled, records, same_counts

import candide as cd
from candide.data.table import Table
from candide.errors import InputError
from candide.serve import app, peers


@pytest.fixture(scope="module")
def base():
    columns, y = table(300, seed=3)
    return replace(cd.BayesClassifier().fit(columns, y).fitted_, target="fate")


@pytest.fixture(autouse=True)
def asked_by_hand(monkeypatch):
    """Peers are asked when a test says so."""
    monkeypatch.setattr(peers.Peers, "start", lambda self, on_change: None)


def with_rows(base, columns):
    return cd.update_model(base, Table.from_data(columns)).fitted


def pull(served):
    answer = ask(served, "/pull", b"", media="")
    assert answer.status == 200
    return answer.json


def test_three_that_learn_and_one_that_does_not(base, tmp_path):
    new = labelled(60, seed=71)
    new["site"][3] = "met by the first alone"
    rows = records(new)
    with contextlib.ExitStack() as stack:
        three = [app(base, journal_path=tmp_path / f"{i}.db", allow_new_classes=True) for i in range(3)]
        where = [stack.enter_context(listening(one)) for one in three]
        for one in three:
            stack.callback(one.close)
        everyone = [peers.Peers(where, one._learner.fingerprint, None) for one in three]
        for one, others in zip(three, everyone, strict=True):
            others.own_journal_id, one._peers = one._learner.journal_id, others  # each is told of all, and so of itself
        reader = app(base, peers=[*where, where[0].replace("127.0.0.1", "localhost")])  # and of one by two names
        for i, one in enumerate(three):
            assert ask(one, f"/learn?key={i}", rows[20 * i : 20 * i + 20]).status == 200
        for one in (*three, reader):
            for _ in range(2):
                one._peers.pull()
                one._apply_peers()
                same_counts(one.scorer.fitted, with_rows(base, new))
        assert [told["rows"] for told in pull(reader)] == [20, 20, 20, 20]
        assert [told["self"] for told in everyone[1].status()] == [False, True, False]
        ask(three[0], "/learn?key=more", {**rows[0], "fate": "burn"})
        more = {name: [*column, column[0]] for name, column in new.items()}
        more["fate"][-1] = "burn"
        same_counts(three[0].scorer.fitted, with_rows(base, more))
        ask(three[0], "/forget?of=more", b"", media="")
        ask(three[1], "/forget?of=1", b"", media="")
        pull(reader)
        left = {name: column[:20] + column[40:] for name, column in new.items()}
        same_counts(reader.scorer.fitted, with_rows(base, left))
        answer, wanted = (ask(one, "/predict", rows[0]).json for one in (reader, app(with_rows(base, left))))
        assert answer["p_cut"] == pytest.approx(wanted["p_cut"], rel=1e-9)
        for i in (0, 2):
            ask(three[i], f"/forget?of={i}", b"", media="")
        pull(reader)
        same_counts(reader.scorer.fitted, base)


def test_what_a_peer_cannot_share(base, tmp_path, models):
    columns, y = table(300, seed=3)
    row = records(labelled(1, seed=72))[0]
    learns, strange = (
        app(base, journal_path=tmp_path / "a.db"),
        app(models["naive"], journal_path=tmp_path / "b.db", target="fate"),
    )
    with listening(learns) as here, listening(strange) as there:
        reader = app(base, peers=[here, there, "http://127.0.0.1:9"])
        ask(learns, "/learn?key=k", row)
        with pytest.warns(UserWarning, match="cannot get the rows of a peer") as warned:
            told = pull(reader)
        assert [one["rows"] for one in told] == [1, 0, 0]
        assert ["started with another model" in one.get("problem", "") for one in told] == [False, True, False]
        assert "does not answer" in told[2]["problem"]
        assert len([one for one in warned if "cannot get the rows" in str(one.message)]) == 2
        ask(learns, "/forget", {name: column[0] for name, column in {**columns, "fate": y}.items()})
        with pytest.warns(UserWarning, match="were forgotten"):
            assert pull(reader)[0]["rows"] == 1  # as it was heard last
        assert reader.scorer.fitted.n_rows == 301
    learns.close()
    strange.close()
    with pytest.raises(InputError, match="not an address"):
        app(base, journal_path=tmp_path / "c.db", peers=["somewhere"])


def test_peers_have_the_token(base, tmp_path):
    learns = app(base, journal_path=tmp_path / "a.db", token="secret")
    ask(learns, "/learn", records(labelled(1, seed=73))[0], authorization="Bearer secret")
    with listening(learns) as here:
        assert ask(learns, "/learned").status == 401
        assert ask(learns, "/learned", authorization="Bearer secret").status == 200
        reader = app(base, peers=[here], token="secret")
        assert ask(reader, "/pull", b"", media="").status == 401
        assert ask(reader, "/pull", b"", media="", authorization="Bearer secret").json[0]["rows"] == 1
        assert reader.scorer.fitted.n_rows == 301
    learns.close()


@contextlib.contextmanager
def peered(base, tmp_path, names, **how):
    """Servers that learn, each told of those before it."""
    with contextlib.ExitStack() as stack:
        made, where = [], []
        for name in names:
            made.append(app(base, journal_path=tmp_path / f"{name}.db", peers=[*where], **how.get(name, {})))
            stack.callback(made[-1].close)
            where.append(stack.enter_context(listening(made[-1])))
        yield made


def test_a_peer_that_is_gone_fades_with_the_rest(base, tmp_path):
    lives = {"half_life": 1000.0}
    with peered(base, tmp_path, "ab", a=lives, b=lives) as (a, b):
        ask(a, "/learn", records(labelled(20, seed=72)))
        b._peers.monotonic = lambda: 50.0
        pull(b)
        before = b._peers.add_to(b._fitted).counts.class_weight.sum() - b._fitted.counts.class_weight.sum()
        b._peers.monotonic = lambda: 2050.0
        after = b._peers.add_to(b._fitted).counts.class_weight.sum() - b._fitted.counts.class_weight.sum()
        assert after == pytest.approx(before / 4)
        assert before == pytest.approx(20, rel=0.1)


def test_peers_have_one_half_life(base, tmp_path):
    with peered(base, tmp_path, "abc", a={"half_life": 8.0}, b={"half_life": 9.0}) as (a, b, c):
        ask(a, "/learn", records(labelled(2, seed=72)))
        for one in (b, c):
            with pytest.warns(UserWarning, match="another half-life"):
                told = pull(one)
            assert told[0]["rows"] == 0
            assert "another half-life" in told[0]["problem"]


def test_a_copy_of_a_file_is_reported(base, tmp_path):
    rows = records(labelled(9, seed=73))
    first = app(base, journal_path=tmp_path / "a.db")
    ask(first, "/learn", rows[:5])
    first.close()
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    with contextlib.ExitStack() as stack:
        two = [app(base, journal_path=tmp_path / f"{name}.db") for name in "ab"]
        where = [stack.enter_context(listening(one)) for one in two]
        for one in two:
            stack.callback(one.close)
        ask(two[0], "/learn", rows[5:7])
        ask(two[1], "/learn", rows[7:])
        reader = app(base, peers=where)
        with pytest.warns(UserWarning, match="a copy of the file"):
            told = pull(reader)
        assert [one["rows"] for one in told] == [7, 0]
        assert "a copy of the file" in told[1]["problem"]
        assert reader.scorer.fitted.n_rows == base.n_rows + 7


def test_rows_of_the_model_itself_are_not_reported_as_new(base, tmp_path):
    """Once they are forgotten, what is new cannot be told apart, whatever was learned beside; nor after a restart."""
    columns, y = table(300, seed=3)
    served = app(base, journal_path=tmp_path / "a.db")
    ask(served, "/learn", records(labelled(30, seed=74)))
    assert ask(served, "/learned").status == 200
    assert ask(served, "/forget", {**records(columns)[0], "fate": y[0]}).status == 200
    assert ask(served, "/learned").status == 409
    served.close()
    served = app(base, journal_path=tmp_path / "a.db")
    assert ask(served, "/learned").status == 409
    served.close()


def test_a_server_with_a_half_life_that_has_learned_nothing(base, tmp_path):
    served = app(base, journal_path=tmp_path / "a.db", half_life=8.0)
    assert ask(served, "/learned").status == 200
    served.close()


@pytest.mark.parametrize("address", ["127.0.0.1:8000", "ftp://host", "http://", "http://hóst", "http://host:x"])
def test_an_invalid_address(address):
    with pytest.raises(InputError) as error:
        peers.PeerConnection(address, None)
    assert error.value.value == address


@pytest.mark.parametrize("address", ["http://ada:secret@host", "http://host?token=secret", "http://host#x"])
def test_an_address_with_a_password_or_a_query_is_not_repeated(address):
    with pytest.raises(InputError) as error:
        peers.PeerConnection(address, None)
    assert "secret" not in str(error.value)
