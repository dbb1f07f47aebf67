"""A student of noisy votes on some public pictures, and of many that nobody was asked about.

The votes are regressed on public features and spread over the graph of neighbours; a network learns
the labels from moved pictures. What it has learnt makes better features and a better graph, on
which the same votes say more, and a network learns again from what both say. All of it is
post-processing of answers that came through the gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from stillroom.models.checkpoints import Checkpoint
from stillroom.models.pictures import AsPictures
from stillroom.models.training import NetworkTraining, softened
from stillroom.public.neighbour_graph import neighbour_graph, spread
from stillroom.public.vote_regression import NoisyShares, regressed

Rows = npt.NDArray[np.float32]
Reals = npt.NDArray[np.float64]
Progress = Callable[[int, int], None]

TOGETHER = 1000
ROUNDS = 40
"""How far a label goes on the graph."""
LEAST_SHARE = 1e-6
"""What one opinion rules out, another may still say."""


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
        feature_rounds: how often features are averaged over the graph before the regression.
        signal: variance of a weight of the regression.
        alpha: how much a picture's regressed shares listen to its neighbours.
        own_alpha: the same for the network's own shares, over the graph it helped to make.
        learnt: directions of the network's features that the graph sees.
        given_share: length of the given features beside the learnt ones.
        start_seed: of weights, order and views.

    Raises:
        BadInput: there is no round or no epoch.
    """

    model: str = "wavelet-70k"
    views: Views = field(default_factory=lambda: Views(turn=10, shift=0.07, scale=0.1))
    rounds: int = 2
    epochs: int = 5
    batch: int = 128
    learning_rate: float = 3e-3
    neighbours: int = 10
    feature_rounds: int = 12
    signal: float = 0.3
    alpha: float = 0.95
    own_alpha: float = 0.8
    learnt: int = 64
    given_share: float = 0.7
    start_seed: int = 0

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.epochs < 1:
            raise BadInput(
                f"a student of {self.rounds} rounds of {self.epochs} epochs learns nothing",
                where="student",
                why="its votes would be paid for and not used",
                remedy="plan at least one round of one epoch",
            )


def train_on_shares(
    x: npt.NDArray[Any],
    shares: npt.NDArray[Any],
    plan: FewLabels,
    *,
    full_scale: float,
    round: int = 0,
    on_step: Progress = lambda done, total: None,
    state: Mapping[str, Any] | None = None,
    on_state: Callable[[NetworkTraining], None] = lambda training: None,
) -> nn.Module:
    """A network that learns soft labels from moved pictures; in eval mode.

    Args:
        x: pictures as stored.
        shares: one row per picture, of positive numbers that sum up to 1.
        plan: the numbers.
        full_scale: the largest value of a pixel.
        round: another round starts from other weights.
        on_step: told how many epochs are done.
        state: of such a training that was cut off, which goes on from there.
        on_state: given the training after each epoch, to keep its state.

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
    if state is not None:
        training.restore(state)
    for epoch in range(training.done, plan.epochs):
        seen = torch.from_numpy(plan.views.view(x, seed, epoch + 1))
        training.distil(seen, scores, plan.batch, softened(1.0))
        on_state(training)
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


def voted(
    graph: csr_matrix,
    features: npt.NDArray[Any],
    votes: NoisyShares,
    plan: FewLabels,
    prior: npt.NDArray[Any] | None = None,
) -> Reals:
    """What the votes say of all pictures: regressed on the features, times the same spread.

    Args:
        graph: of all pictures.
        features: one row per picture.
        votes: what was paid for.
        plan: how far features are averaged and labels spread.
        prior: the share of each class; equal shares when left out.

    Raises:
        BadInput: sizes do not fit.
    """
    found = regressed(
        graph, features, votes, rounds=plan.feature_rounds, signal=plan.signal, prior=prior
    )
    if plan.alpha == 0:
        return found
    return agreed(found, spread_shares(graph, found, plan.alpha, prior))


def spread_shares(
    graph: csr_matrix,
    shares: npt.NDArray[Any],
    alpha: float,
    prior: npt.NDArray[Any] | None = None,
) -> Reals:
    """Shares of all pictures, each nearer to those of its neighbours; unchanged for alpha 0."""
    if alpha == 0:
        return np.asarray(shares, dtype=np.float64)
    return spread(graph, shares - 1 / shares.shape[1], alpha=alpha, rounds=ROUNDS, prior=prior)


def agreed(*opinions: npt.NDArray[Any]) -> Reals:
    """The product of several opinions on the same pictures, as shares.

    >>> agreed(np.array([[0.5, 0.5]]), np.array([[0.9, 0.1]])).round(2).tolist()
    [[0.9, 0.1]]
    """
    both = np.prod([np.maximum(opinion, LEAST_SHARE) for opinion in opinions], axis=0)
    shares: Reals = both / both.sum(axis=1, keepdims=True)
    return shares


def learn(
    x: npt.NDArray[Any],
    features: npt.NDArray[Any],
    votes: NoisyShares,
    plan: FewLabels,
    *,
    full_scale: float,
    graph: csr_matrix | None = None,
    prior: npt.NDArray[Any] | None = None,
    on_step: Progress = lambda done, total: None,
    kept: Checkpoint | None = None,
) -> nn.Module:
    """The student: label by the votes, train, and as often as planned label and train again.

    Each round regresses the same votes again, on features that the last network has learnt.

    Guarantee: sees public pictures and sanitised votes only, so it costs nothing.

    Args:
        x: all public pictures, as stored.
        features: public features of them, one row each, of norm 1 or so.
        votes: what was paid for.
        plan: the numbers.
        full_scale: the largest value of a pixel.
        graph: of neighbours by these features; found when left out.
        prior: the share of each class; equal shares when left out.
        on_step: told how many epochs of all rounds are done.
        kept: keeps the state now and then; what it has is not done again.

    Raises:
        BadInput: sizes do not fit, or the loss is not a number.
    """
    if not len(x) == len(features) == len(votes.asked):
        raise BadInput(
            f"{len(x)} pictures, {len(features)} rows of features, votes on {len(votes.asked)}",
            where="student",
            why="each picture has its own row and vote",
            remedy="give one row of each per picture, in the same order",
        )
    total = plan.rounds * plan.epochs
    state = None if kept is None else kept.load()
    if state is None:
        first = 0
        graph = neighbour_graph(features, plan.neighbours) if graph is None else graph
        shares = voted(graph, features, votes, plan, prior)
    else:
        first, shares = state["round"], state["shares"].numpy()
    for round in range(first, plan.rounds):
        told = _later(on_step, round * plan.epochs, total)
        network = train_on_shares(
            x,
            shares,
            plan,
            full_scale=full_scale,
            round=round,
            on_step=told,
            state=state["training"] if state is not None and round == first else None,
            on_state=_keeping(kept, round, shares),
        )
        if round + 1 < plan.rounds:
            own, learnt = network_says(network, x, full_scale=full_scale)
            joined = joined_features(features, learnt, plan)
            graph = neighbour_graph(joined, plan.neighbours)
            says = spread_shares(graph, own, plan.own_alpha, prior)
            shares = agreed(says, voted(graph, joined, votes, plan, prior))
    return network


def _keeping(
    kept: Checkpoint | None, round: int, shares: Reals
) -> Callable[[NetworkTraining], None]:
    labels = torch.from_numpy(shares)

    def keep(training: NetworkTraining) -> None:
        if kept is not None:
            kept.keep(lambda: {"round": round, "shares": labels, "training": training.state()})

    return keep


def _later(on_step: Progress, before: int, total: int) -> Progress:
    return lambda done, _: on_step(before + done, total)
