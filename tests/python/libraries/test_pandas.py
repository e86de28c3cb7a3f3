"""pandas as it is: sixty operations under tenon.compile give what plain execution gives, in values, dtypes, indexes and errors."""
import datetime

import numpy as np
import pytest

import tenon

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore")


def frame():
    n = 24
    rng = np.random.default_rng(7)
    return pd.DataFrame({
        "key": list("abcd") * (n // 4), "kind": ["x", "y"] * (n // 2), "value": rng.normal(size=n), "count": rng.integers(0, 9, n),
        "flag": rng.random(n) > 0.5, "when": pd.date_range("2024-01-01", periods=n, freq="D"), "gap": np.where(rng.random(n) > 0.7, np.nan, rng.random(n))})


def other():
    return pd.DataFrame({"key": ["a", "b", "e"], "weight": [1.5, 2.5, 3.5]})


def series():
    return frame().set_index("when")["value"]


def bad_merge(f, o):
    return f.merge(o, on="nowhere")


OPERATIONS = {
    "merge": lambda f, o: f.merge(o, on="key"),
    "merge left": lambda f, o: f.merge(o, on="key", how="left", indicator=True),
    "merge outer": lambda f, o: pd.merge(f, o, how="outer", left_on="key", right_on="key", suffixes=("_l", "_r")),
    "join": lambda f, o: f.join(o.set_index("key"), on="key"),
    "concat rows": lambda f, o: pd.concat([f, f], ignore_index=True),
    "concat columns": lambda f, o: pd.concat([f["value"], o["weight"]], axis=1, keys=["v", "w"]),
    "append by loc": lambda f, o: o.copy().pipe(lambda c: (c.__setitem__("twice", c["weight"] * 2), c)[1]),
    "rolling mean": lambda f, o: f["value"].rolling(3).mean(),
    "rolling window of days": lambda f, o: f.set_index("when")["value"].rolling("3D").sum(),
    "expanding": lambda f, o: f["value"].expanding(2).max(),
    "ewm": lambda f, o: f["value"].ewm(span=4).mean(),
    "groupby sum": lambda f, o: f.groupby("key")["value"].sum(),
    "groupby agg": lambda f, o: f.groupby("key").agg({"value": "mean", "count": ["min", "max"]}),
    "groupby named agg": lambda f, o: f.groupby("key").agg(total=("value", "sum"), most=("count", "max")),
    "groupby agg function": lambda f, o: f.groupby("key")["value"].agg(lambda s: s.max() - s.min()),
    "groupby transform": lambda f, o: f.groupby("key")["value"].transform("mean"),
    "groupby two keys": lambda f, o: f.groupby(["key", "kind"])["count"].sum().unstack(),
    "groupby apply": lambda f, o: f.groupby("key")[["value", "count"]].apply(lambda g: g["value"].iloc[0] + g["count"].sum()),
    "groupby size": lambda f, o: f.groupby("kind").size(),
    "groupby cumsum": lambda f, o: f.groupby("kind")["value"].cumsum(),
    "groupby filter": lambda f, o: f.groupby("key").filter(lambda g: g["value"].sum() > 0),
    "groupby iterate": lambda f, o: [(k, len(g)) for k, g in f.groupby("key")],
    "cut": lambda f, o: pd.cut(f["value"], 4),
    "cut labels": lambda f, o: pd.cut(f["count"], [-1, 3, 6, 9], labels=["low", "mid", "high"]),
    "qcut": lambda f, o: pd.qcut(f["value"], 3, labels=False),
    "map dict": lambda f, o: f["key"].map({"a": 1, "b": 2}),
    "map function": lambda f, o: f["count"].map(lambda v: v * v),
    "apply rows": lambda f, o: f[["value", "count"]].apply(lambda r: r["value"] + r["count"], axis=1),
    "apply columns": lambda f, o: f[["value", "count"]].apply(np.sum),
    "pivot table": lambda f, o: f.pivot_table(index="key", columns="kind", values="value", aggfunc="mean"),
    "pivot": lambda f, o: o.pivot(columns="key", values="weight"),
    "melt": lambda f, o: o.melt(id_vars="key"),
    "stack": lambda f, o: f[["value", "count"]].head(4).stack(),
    "crosstab": lambda f, o: pd.crosstab(f["key"], f["kind"]),
    "resample": lambda f, o: f.set_index("when")["value"].resample("W").mean(),
    "resample ohlc": lambda f, o: f.set_index("when")["value"].resample("5D").ohlc(),
    "sort values": lambda f, o: f.sort_values(["kind", "value"], ascending=[True, False]),
    "sort index": lambda f, o: f.set_index("value").sort_index(),
    "drop duplicates": lambda f, o: f.drop_duplicates("key"),
    "fillna": lambda f, o: f["gap"].fillna(0.0),
    "ffill": lambda f, o: f["gap"].ffill(),
    "interpolate": lambda f, o: f["gap"].interpolate(),
    "dropna": lambda f, o: f.dropna(),
    "isin": lambda f, o: f[f["key"].isin(["a", "c"])],
    "query": lambda f, o: f.query("count > 3 and key == 'a'", engine="python"),
    "eval": lambda f, o: f.eval("value * count", engine="python"),
    "where": lambda f, o: f["value"].where(f["flag"], -1.0),
    "loc": lambda f, o: f.loc[f["count"] > 4, ["key", "value"]],
    "iloc": lambda f, o: f.iloc[2:9:2, [0, 2]],
    "assign": lambda f, o: f.assign(double=f["value"] * 2, total=lambda d: d["double"] + d["count"]),
    "set cells": lambda f, o: (lambda c: (c.loc.__setitem__((c["flag"], "value"), 0.0), c)[1])(f.copy()),
    "value counts": lambda f, o: f["key"].value_counts(),
    "describe": lambda f, o: f[["value", "count"]].describe(),
    "quantile": lambda f, o: f["value"].quantile([0.1, 0.5, 0.9]),
    "corr": lambda f, o: f[["value", "count"]].corr(),
    "rank": lambda f, o: f["count"].rank(method="dense"),
    "shift and diff": lambda f, o: f["value"].shift(1) - f["value"].diff(),
    "clip and round": lambda f, o: f["value"].clip(-1, 1).round(2),
    "astype": lambda f, o: f["count"].astype("float32") + f["flag"].astype("int8"),
    "category": lambda f, o: f["key"].astype("category").cat.codes,
    "string methods": lambda f, o: f["key"].str.upper() + f["kind"].str.cat(sep="").count("x").__str__(),
    "dates": lambda f, o: f["when"].dt.dayofweek + (f["when"] - datetime.datetime(2024, 1, 1)).dt.days,
    "get dummies": lambda f, o: pd.get_dummies(f["key"]),
    "to numpy": lambda f, o: np.maximum(f[["value", "count"]].to_numpy(), 0.5) @ np.ones(2),
    "arithmetic": lambda f, o: np.sqrt(abs(f["value"])) + f["count"] / 2,
    "explode": lambda f, o: pd.DataFrame({"a": [[1, 2], [3]]}).explode("a"),
    "multi index": lambda f, o: f.set_index(["key", "kind"])["value"].groupby(level=0).mean().xs("a"),
    "idxmax": lambda f, o: f["value"].idxmax(),
    "reindex": lambda f, o: series().reindex(pd.date_range("2024-01-03", periods=4, freq="2D")),
    "to dict": lambda f, o: o.to_dict("records"),
    "itertuples": lambda f, o: [row.key for row in o.itertuples()],
    "a missing column": bad_merge,
    "a wrong dtype": lambda f, o: f["key"].astype(int),
    "a key that is missing": lambda f, o: f.loc[99],
}


def outcome(fn, *args):
    try:
        return fn(*args)
    except Exception as error:  # noqa: BLE001  compared with the other one
        return error


def same(got, want):
    if isinstance(want, pd.DataFrame):
        pd.testing.assert_frame_equal(got, want)
    elif isinstance(want, pd.Series):
        pd.testing.assert_series_equal(got, want)
    elif isinstance(want, BaseException):
        assert (type(got), str(got)) == (type(want), str(want))
    else:
        assert type(got) is type(want)
        np.testing.assert_equal(got, want)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_as_in_plain_execution(name):
    operation = OPERATIONS[name]
    compiled = tenon.compile(operation)
    for _ in range(2):
        same(outcome(compiled, frame(), other()), outcome(operation, frame(), other()))


def test_the_frame_that_is_changed_is_the_callers():
    def fn(f):
        f["double"] = f["value"] * 2
        f.drop(columns="gap", inplace=True)
        return len(f.columns)

    compiled, left, right = tenon.compile(fn), frame(), frame()
    assert compiled(left) == fn(right)
    pd.testing.assert_frame_equal(left, right)


def test_tensors_beside_frames():
    torch = pytest.importorskip("torch")

    def fn(f, x):
        means = f.groupby("key")["value"].mean()
        return x * torch.tensor(means.to_numpy()) + len(means)

    x = torch.arange(4.0, dtype=torch.float64)
    compiled = tenon.compile(fn)
    for _ in range(2):
        torch.testing.assert_close(compiled(frame(), x), fn(frame(), x))
