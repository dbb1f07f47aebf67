"""A student of few noisy labels and many public pictures without any.

Labels spread over the graph of neighbours; a network learns them from moved pictures; what the
network has learnt makes a better graph, and a network learns again from what both say. All of it
is post-processing of answers that came through the gate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from torch import nn

from stillroom.errors import BadInput
from stillroom.models.augmentation import Views
from stillroom.models.build import build
from stillroom.models.pictures import AsPictures
from stillroom.models.training import NetworkTraining, softened
from stillroom.public.neighbour_graph import neighbour_graph, spread
from stillroom.vocabulary import Integers

Rows = npt.NDArray[np.float32]
Reals = npt.NDArray[np.float64]
Progress = Callable[[int, int], None]

TOGETHER = 1000
LEAST_SHARE = 1e-3
"""What the graph rules out, the network may still say."""


@dataclass(frozen=True)
class FewLabels:
    """The numbers of such a student.

    Args:
        model: its name in the zoo, or package.module:callable; its last block is the classes'.
        views: how pictures are moved; each epoch sees a new view of each.
        rounds: networks trained, one after the other; the last one is the student.
        epochs: passes over the pictures in each round.
        batch: pictures per step.
        learning_rate: the highest.
        neighbours: how many each picture looks for.
        alpha: how far paid labels spread.
        own_alpha: how far the network's own labels spread, over the graph it helped to make.
        learnt: directions of the network's features that the graph sees.
        given_share: length of the given features beside the learnt ones.
        trust: power of the paid labels beside the network's own.
        start_seed: of weights, order and views.
    """

    model: str = "wavelet-70k"
    views: Views = field(default_factory=lambda: Views(turn=10, shift=0.07, scale=0.1))
    rounds: int = 2
    epochs: int = 5
    batch: int = 128
    learning_rate: float = 3e-3
    neighbours: int = 10
    alpha: float = 0.98
    own_alpha: float = 0.8
    learnt: int = 64
    given_share: float = 0.7
    trust: float = 0.5
    start_seed: int = 0


def label_rows(likely: npt.NDArray[Any], asked: Integers) -> Rows:
    """For each picture, how much more likely each class is than by chance; zeros if not asked.

    Args:
        likely: one row per query, of probabilities such as `noisy_votes.posterior` gives.
        asked: for each picture the query that speaks for it, such as its group; -1 for none.

    Raises:
        BadInput: a picture names a query that there is not.

    >>> label_rows(np.array([[1.0, 0.0]]), np.array([0, -1])).tolist()
    [[0.5, -0.5], [0.0, 0.0]]
    """
    if len(asked) and not -1 <= int(asked.min()) <= int(asked.max()) < len(likely):
        raise BadInput(
            f"pictures name queries that are not among the {len(likely)} answered",
            where="label rows",
            why="a label would be taken from another picture",
            remedy="number queries from 0, and write -1 where there is none",
        )
    rows = np.zeros((len(asked), likely.shape[1]), dtype=np.float32)
    spoken = asked >= 0
    rows[spoken] = likely[asked[spoken]] - 1 / likely.shape[1]
    return rows


def single_queries(places: Integers, size: int) -> Integers:
    """Which query speaks for each picture, where each query is one picture.

    >>> single_queries(np.array([3, 1]), 5).tolist()
    [-1, 1, -1, 0, -1]
    """
    asked = np.full(size, -1, dtype=np.int64)
    asked[places] = np.arange(len(places))
    return asked


def train_on_shares(
    x: npt.NDArray[Any],
    shares: npt.NDArray[Any],
    plan: FewLabels,
    *,
    full_scale: float,
    round: int = 0,
    on_step: Progress = lambda done, total: None,
) -> nn.Module:
    """A network that learns soft labels from moved pictures; in eval mode.

    Args:
        x: pictures as stored.
        shares: one row per picture, of positive numbers that sum up to 1.
        plan: the numbers.
        full_scale: the largest value of a pixel.
        round: another round starts from other weights.
        on_step: told how many epochs are done.

    Raises:
        BadInput: the loss is not a number; it says at which epoch and step.
    """
    scale = AsPictures(x.shape[1:], full_scale)
    seed = plan.start_seed + round
    network = build(plan.model, scale.given, shares.shape[1], seed=seed)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    scores = torch.from_numpy(np.log(np.maximum(shares, 1e-12)).astype(np.float32))
    training = NetworkTraining(
        network, scale, epochs=plan.epochs, learning_rate=plan.learning_rate, seed=seed
    )
    for epoch in range(plan.epochs):
        seen = torch.from_numpy(plan.views.view(x, seed, epoch + 1))
        training.distil(seen, scores, plan.batch, softened(1.0))
        on_step(epoch + 1, plan.epochs)
    return network.eval()


def network_says(
    network: nn.Module, x: npt.NDArray[Any], *, full_scale: float
) -> tuple[Reals, Rows]:
    """The network's probabilities of pictures, and what its last block is given.

    Args:
        network: a sequence of blocks, in eval mode.
        x: pictures as stored.
        full_scale: the largest value of a pixel.

    Raises:
        BadInput: the network is no sequence of two blocks or more.
    """
    if not isinstance(network, nn.Sequential) or len(network) < 2:
        raise BadInput(
            f"a {type(network).__name__} has no block before the last",
            where="student",
            why="what a network has learnt is read where its last block begins",
            remedy="give a torch.nn.Sequential whose last block gives the classes",
        )
    scale, before, last = AsPictures(x.shape[1:], full_scale), network[:-1], network[-1]
    shares, learnt = [], []
    with torch.no_grad():
        for start in range(0, len(x), TOGETHER):
            features = before(scale(torch.from_numpy(np.array(x[start : start + TOGETHER]))))
            shares.append(torch.softmax(last(features).double(), 1).numpy())
            learnt.append(features.flatten(1).numpy())
    return np.concatenate(shares), np.concatenate(learnt)


def joined_features(given: npt.NDArray[Any], learnt: npt.NDArray[Any], plan: FewLabels) -> Rows:
    """The longest directions of what a network has learnt, and the given features beside them.

    Args:
        given: public features, one row per picture, of norm 1 or so.
        learnt: what the network has made of the same pictures.
        plan: how many directions, and how long the given features are.
    """
    centred = (learnt - learnt.mean(axis=0, dtype=np.float64)).astype(np.float64)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    kept = centred @ vectors[:, -plan.learnt :]
    kept /= np.maximum(np.linalg.norm(kept, axis=1, keepdims=True), 1e-9)
    return np.hstack([kept, plan.given_share * given]).astype(np.float32)


def relabelled(
    graph: csr_matrix,
    own: npt.NDArray[Any],
    labels: npt.NDArray[Any],
    plan: FewLabels,
    prior: npt.NDArray[Any] | None = None,
) -> Reals:
    """What the network and the paid labels say together, both spread over one graph.

    Args:
        graph: of all pictures.
        own: the network's probabilities.
        labels: of `label_rows`.
        plan: how far both spread, and the power of the latter.
        prior: the share of each class; equal shares when left out.
    """
    paid = spread(graph, labels, alpha=plan.alpha, prior=prior)
    said = spread(graph, own - 1 / own.shape[1], alpha=plan.own_alpha, prior=prior)
    both = said * np.maximum(paid, LEAST_SHARE) ** plan.trust
    shares: Reals = both / both.sum(axis=1, keepdims=True)
    return shares


def learn(
    x: npt.NDArray[Any],
    features: npt.NDArray[Any],
    labels: npt.NDArray[Any],
    plan: FewLabels,
    *,
    full_scale: float,
    prior: npt.NDArray[Any] | None = None,
    on_step: Progress = lambda done, total: None,
) -> nn.Module:
    """The student: spread, train, and as often as planned relabel and train again.

    Guarantee: sees public pictures and sanitised labels only, so it costs nothing.

    Args:
        x: all public pictures, as stored.
        features: public features of them, one row each.
        labels: of `label_rows`.
        plan: the numbers.
        full_scale: the largest value of a pixel.
        prior: the share of each class; equal shares when left out.
        on_step: told how many epochs of all rounds are done.

    Raises:
        BadInput: sizes do not fit, or the loss is not a number.
    """
    if not len(x) == len(features) == len(labels):
        raise BadInput(
            f"{len(x)} pictures, {len(features)} rows of features and {len(labels)} of labels",
            where="student",
            remedy="give one row of each per picture, in the same order",
        )
    total = plan.rounds * plan.epochs
    graph = neighbour_graph(features, plan.neighbours)
    shares = spread(graph, labels, alpha=plan.alpha, prior=prior)
    for round in range(plan.rounds):
        done = round * plan.epochs
        network = train_on_shares(
            x,
            shares,
            plan,
            full_scale=full_scale,
            round=round,
            on_step=lambda epoch, _, done=done: on_step(done + epoch, total),  # type: ignore[misc]
        )
        if round + 1 < plan.rounds:
            own, learnt = network_says(network, x, full_scale=full_scale)
            graph = neighbour_graph(joined_features(features, learnt, plan), plan.neighbours)
            shares = relabelled(graph, own, labels, plan, prior)
    return network
