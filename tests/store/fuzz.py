"""Damaged and malicious model files: each must be refused, quickly, in little memory, and never otherwise.

    python tests/store/fuzz.py [CASES] [SEED]

Two sorts. Damaged files are bytes changed anywhere: all must be refused. Forged files have one value changed by someone
who then set the checksums right: they are refused, or they are a model that answers, or says what it cannot do.
"""

import json
import random
import resource
import sys
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

from candide import store
from candide.errors import CandideError, ModelFileError

SECONDS, BYTES = 0.2, 200 << 20


def damaged(rng: random.Random, file: bytes) -> bytes:
    """A file with some bytes changed, lost or added."""
    out = bytearray(file)
    how = rng.randrange(9)
    at = rng.randrange(len(out))
    if how == 0:
        out[at] ^= 1 << rng.randrange(8)
    elif how == 1:
        for _ in range(rng.randrange(1, 30)):
            out[rng.randrange(len(out))] = rng.randrange(256)
    elif how == 2:
        del out[at:]
    elif how == 3:
        out[at:at] = rng.randbytes(rng.randrange(1, 200))
    elif how == 4:
        del out[at : at + rng.randrange(1, 200)]
    elif how == 5:
        size = rng.randrange(1, 200)
        out[at : at + size] = out[: len(out[at : at + size])][::-1] + b"\x01" * (at == 0)
    elif how == 6:
        out[:8] = rng.choice([0, 1, len(out), len(out) - 8, 1 << 20, 1 << 31, 1 << 62, (1 << 64) - 1]).to_bytes(
            8, "little"
        )
    elif how == 7:
        end = 8 + int.from_bytes(out[:8], "little")
        out[rng.randrange(8, end)] = rng.choice(b'0123456789[]{},:"\\-eE. null')
    else:
        out += rng.randbytes(rng.randrange(1, 1000))
    return bytes(out)


JUNK = [None, True, False, 0, 1, -1, 3, 1 << 31, 1 << 63, 1 << 70, 10**400, -(10**30), 0.5, -1e308, 1e-320, "", "x",
        "int", "gaussian", "os.system", "🙂", "9" * 5000, [], {}, [[]], [1], [0, 0], [None] * 100, {"a": 1},
        {"event": "gaussian"}, {"prior": "beta", "settings": {}}, {"pairs": [[1, 2]]}, {"pairs": [[[], 2]]},
        {"sequence": [1, [2]]},
        {"array": "text"}, {"sequence": [0.5] * 31}, {"event": "poisson", "settings": {"prior": None}},
        {"prior": "gamma", "settings": {"shape": -1, "rate": None}}]  # fmt: skip


def forged(rng: random.Random, file: bytes) -> bytes:
    """A file with one value changed in its header or its arrays, and checksums that are right."""
    size = int.from_bytes(file[:8], "little")
    told, data = json.loads(file[8 : 8 + size]), bytearray(file[8 + size :])
    header = json.loads(told["__metadata__"]["candide"])
    how = rng.randrange(5)
    if how < 2:
        _change(rng, header)
    elif how == 2:
        _change(rng, {name: entry for name, entry in told.items() if name != "__metadata__"})
    elif how == 3:
        _forge_numbers(rng, told, data)
    else:
        _deep(rng, header)
    told["__metadata__"]["candide"] = json.dumps(header) if how != 4 or rng.random() < 0.5 else _raw(rng, header)
    text = json.dumps(told).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    crc = zlib.crc32(head).to_bytes(4, "little") + zlib.crc32(bytes(data[:-8])).to_bytes(4, "little")
    return head + bytes(data[:-8]) + crc


def _change(rng: random.Random, tree: object) -> None:
    """Replace, remove, add or exchange one value somewhere in a tree."""
    places = [(box, key) for box in _boxes(tree) for key in (box if isinstance(box, dict) else range(len(box)))]
    box, key = rng.choice(places)
    how = rng.randrange(6)
    if how == 0:
        del box[key]
    elif how == 1 and isinstance(box, dict):
        box[rng.choice(["x", "event", "settings", "__metadata__", ""])] = rng.choice(JUNK)
    elif how == 2:
        other_box, other_key = rng.choice(places)
        box[key] = json.loads(json.dumps(other_box[other_key]))
    elif how == 3 and type(box[key]) is int:
        box[key] += rng.choice([-8, -1, 1, 8, 1 << 40])
    else:
        box[key] = rng.choice(JUNK)


def _boxes(tree: object) -> list:
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    mine = [tree] if isinstance(tree, dict | list) and tree else []
    return mine + [box for value in inner for box in _boxes(value)]


def _forge_numbers(rng: random.Random, told: dict, data: bytearray) -> None:
    name = rng.choice([n for n, e in told.items() if n not in ("__metadata__", "checksum") and e["data_offsets"][1]])
    entry = told[name]
    start, stop = entry["data_offsets"]
    if stop == start:
        return
    kind = {"F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "u1"}[entry["dtype"]]
    values = np.frombuffer(bytes(data[start:stop]), kind).copy()
    junk = (
        [np.nan, np.inf, -np.inf, -1.0, 1e308, -0.0, 0.0, 1e-320]
        if kind == "<f8"
        else [-1, 0, 1, 255, 10, 1 << 31, 1 << 62]
    )
    at = rng.choice([slice(None), slice(rng.randrange(len(values)), None), rng.randrange(len(values))])
    with np.errstate(all="ignore"):
        values[at] = np.array(rng.choice(junk)).astype(kind)
    data[start:stop] = values.tobytes()


def _deep(rng: random.Random, header: dict) -> None:
    value: object = rng.choice(JUNK)
    for _ in range(rng.choice([5, 50, 250])):
        value = rng.choice([[value], {"sequence": [value]}, {"pairs": [[1, value]]}])
    header[rng.choice(list(header))] = value


def _raw(rng: random.Random, header: dict) -> str:
    text = json.dumps(header)
    return rng.choice([
        text.replace(":", ": NaN,", 1), text.replace("{", '{"format": 1, ', 1), "[" * 100_000, "[" * 5000 + "]" * 5000,
        text + " " * 100, text[:-1], "", "null", "1" * 100_000, '{"a":' * 20_000, "[" + "{}," * 200_000 + "{}]",
        text.replace('"rows":', '"rows": 1e400, "x":'), "\ud800",
    ])  # fmt: skip


def attempt(path: Path, rows: dict) -> str:
    """What became of loading a file, and of asking what was loaded."""
    from candide.data.table import Table

    try:
        model = store.load(path)
    except ModelFileError:
        return "refused"
    try:
        with np.errstate(all="ignore"):
            model.posterior(Table.from_data({name: rows.get(name, rows["age"]) for name in model.plan.columns}))
    except CandideError:
        return "loaded, and says what it cannot do"
    return "loaded"


def run(cases: int, seed: int, folder: Path, originals: dict[str, bytes], rows: dict) -> Counter:
    """Try so many files; an AssertionError at the first that is not handled as it should."""
    rng, found, path = random.Random(seed), Counter(), folder / "case.candide"
    for original in originals.values():  # what is imported on first use is not the doing of a forged file
        path.write_bytes(original)
        attempt(path, rows)
    for case in range(cases):
        name, original = rng.choice(sorted(originals.items()))
        sort = rng.choice([damaged, damaged, forged])
        file = sort(rng, original)
        if file == original:
            continue
        path.write_bytes(file)
        start = time.process_time()
        try:
            outcome = attempt(path, rows)
        except Exception as error:
            (folder / "failed.candide").write_bytes(file)
            raise AssertionError(f"case {case} of seed {seed}, {sort.__name__} {name}: {error!r}") from error
        taken = time.process_time() - start
        assert sort is forged or outcome == "refused", f"case {case} of seed {seed}: {name} was {outcome}"
        assert taken < SECONDS, f"case {case} of seed {seed}, {sort.__name__} {name}: {taken:.2f} s"
        found[sort.__name__, outcome] += 1
        found["slowest, ms"] = max(found["slowest, ms"], round(taken * 1000))
    return found


def originals() -> tuple[dict[str, bytes], dict]:
    """Files of every sort, small, and rows to ask their models about."""
    from tests.model_cases import MODELS, mixed

    out = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.candide"
        for name in ("text-open", "text-hashed", "text-polya", "text-complement", "text-bernoulli"):
            for detail in ("tally", "score"):
                MODELS[name][0].save(path, detail=detail)
                out[f"{name} {detail}"] = path.read_bytes()
        for name in ("mixed-str", "mixed-odd", "by-name", "class-shares", "long-prior", "multinomial-mean", "voices"):
            for detail in store.DETAILS:
                MODELS[name][0].save(path, detail=detail, provenance={"source": "tests"})
                out[f"{name} {detail}"] = path.read_bytes()
    return out, {**mixed(), "text": ["free prize, call é", None, "five five words"] * 20}


def room(extra: int) -> None:
    """Let the process grow by so many bytes and no more: what needs more is a MemoryError, which fails."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + extra, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    n, first = (int(text) for text in [*sys.argv[1:], *["20000", "0"][len(sys.argv) - 1 :]])
    files, asked = originals()
    with tempfile.TemporaryDirectory() as place:
        run(50, 99, Path(place), files, asked)
        room(BYTES)
        for what, count in sorted(run(n, first, Path(place), files, asked).items(), key=str):
            print(what, count)
