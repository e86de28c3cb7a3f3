"""torch.distributions: the same numbers from the same seed, with and without checks of arguments."""
from __future__ import annotations

import pytest

import tenon

torch = pytest.importorskip("torch")
D = torch.distributions

X = torch.linspace(-1, 1.5, 12).reshape(3, 4)
SIZES = (X, torch.linspace(-1, 1.5, 20).reshape(5, 4), torch.linspace(-2, 1, 8).reshape(2, 4))


@pytest.fixture(autouse=True)
def checked_arguments(monkeypatch):
    """torch's own compiler turns the checks off for the process."""
    monkeypatch.setattr(D.Distribution, "_validate_args", True)


def normal(x):
    d = D.Normal(x, x.exp())
    return d.log_prob(x * 2), d.entropy(), d.sample((3,)), d.rsample(), d.cdf(x), d.icdf(torch.full_like(x, 0.3))


def normal_of_scalars(x):
    d = D.Normal(x.mean(), x.std())
    return d.log_prob(x), d.entropy(), d.sample((3,)), d.rsample()


def unchecked(x):
    d = D.Normal(x, x.exp(), validate_args=False)
    return d.log_prob(x * 2), d.rsample()


def categorical(x):
    d = D.Categorical(logits=x)
    s = d.sample()
    return s, d.log_prob(s), d.entropy(), d.probs


def categorical_of_probabilities(x):
    d = D.Categorical(x.softmax(-1))
    s = d.sample((2,))
    return s, d.log_prob(s)


def bernoulli(x):
    d = D.Bernoulli(logits=x)
    s = d.sample()
    return s, d.log_prob(s), d.entropy()


def divergence(x):
    return D.kl_divergence(D.Normal(x, x.exp()), D.Normal(torch.zeros_like(x), torch.ones_like(x))).sum(-1)


def independent(x):
    d = D.Independent(D.Normal(x, x.exp()), 1)
    return d.log_prob(x * 2), d.rsample()


def squashed(x):
    d = D.TransformedDistribution(D.Normal(x, x.exp()), [D.transforms.TanhTransform()])
    s = d.rsample()
    return s, d.log_prob(s * 0.5)


def others(x):
    rate = x.exp()
    return D.Uniform(0.0, 1.0).sample(x.shape) + x, D.Beta(rate, rate).mean, D.Gamma(rate, rate).log_prob(rate), D.Exponential(rate).sample(), D.Laplace(x, rate).rsample()


def multivariate(x):
    d = D.MultivariateNormal(x, torch.eye(4))
    return d.log_prob(x + 1), d.rsample()


@pytest.mark.parametrize(
    "fn", [normal, normal_of_scalars, unchecked, categorical, categorical_of_probabilities, bernoulli, divergence, independent, squashed, others, multivariate]
)
def test_numbers_of_the_same_seed(check, fn):
    compiled = tenon.compile(fn)
    for x in (*SIZES, *SIZES):
        torch.manual_seed(3)
        want = fn(x), torch.rand(2)
        torch.manual_seed(3)
        check.same((compiled(x), torch.rand(2)), want)
    assert (tenon.stats()["graph_breaks"], tenon.stats()["eager_fallbacks"]) == (0, 0)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: D.Normal(x, x).log_prob(x),
        lambda x: D.Normal(x, x.exp()).log_prob(x.sqrt()),
        lambda x: D.Categorical(x).entropy(),
        lambda x: D.Bernoulli(x.exp()).entropy(),
    ],
    ids=["scale", "value", "simplex", "probability"],
)
def test_arguments_that_are_refused(fn):
    compiled = tenon.compile(fn)
    for x in (X, X[:2], X):
        with pytest.raises(ValueError, match="Expected") as want:
            fn(x)
        with pytest.raises(ValueError, match="Expected") as got:
            compiled(x)
        assert str(got.value) == str(want.value)
