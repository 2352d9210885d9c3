"""Policies: how many partitions the next batches should have."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from spark_ckpt.elasticity.fixed_cost import FixedCost
from spark_ckpt.elasticity.observation import Observation
from spark_ckpt.errors import SettingError

_RECOVERY = 0.9
"""Ratio of the last of the agreeing batches to the first one below which a query recovers by itself."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A wish for another number of partitions.

    Args:
        partitions: the number.
        reason: why, in one sentence.
    """

    partitions: int
    reason: str


class Policy(Protocol):
    """Decides after each batch. One thread calls it; it may keep what it has seen."""

    def decide(self, observation: Observation) -> Decision | None:
        """The wanted number of partitions; None to stay."""


@dataclass(frozen=True, slots=True)
class _Counted:
    """What a batch that counts says.

    Args:
        share: share of its interval, beyond the fixed cost on both sides, that the batch took.
        backlog: what waits in its sources, in rows or bytes.
    """

    share: float
    backlog: float | None


class BusyPolicy:
    """Doubles the partitions of a busy query, and halves those of an idle one.

    A batch has an interval: that of the trigger. Without one, it is the time from its trigger to the next. The cost of
    a batch without rows is subtracted from both, because other numbers of partitions do not save it. The rest of the
    batch, as a share of the rest of the interval, is how busy the query is.

    - **Doubles** if each of `agree` batches is busier than `high` and there is a trigger interval, or if the backlog
      grows with each of them and the query is busier than `low`. Below that, the source's own limit holds rows back.
    - **Halves** if each of `agree` batches is less busy than `low` and the backlog does not grow.
    - **Waits** after a start, a change and a decision: the first `cooldown_batches` do not count. They load state, warm
      up executors, and work off what has piled up.

    Batches without rows say only what they cost. An instance serves one query.

    Args:
        min_partitions: least number.
        max_partitions: largest number.
        trigger_ms: interval of the trigger in milliseconds, or the longest batch that is welcome; None for a query
            without one, which then grows by its backlog only.
        high: share of the interval above which the query needs more, at most 1.
        low: share below which it has too many, less than half of `high`, because half the partitions are up to twice
            as busy.
        agree: batches in a row that must agree.
        cooldown_batches: batches that do not count, 1 or more.
        partitions_per_core: most partitions for each core when it doubles.
        fixed_ms: milliseconds of a batch without rows; by default an estimate from the batches.

    Raises:
        SettingError: an argument is out of range, or contradicts another one.
    """

    def __init__(
        self,
        min_partitions: int,
        max_partitions: int,
        trigger_ms: float | None = None,
        *,
        high: float = 0.8,
        low: float = 0.3,
        agree: int = 3,
        cooldown_batches: int = 3,
        partitions_per_core: float = 4.0,
        fixed_ms: float | None = None,
    ) -> None:
        for name, count in (
            ("min_partitions", min_partitions),
            ("max_partitions", max_partitions),
            ("agree", agree),
            ("cooldown_batches", cooldown_batches),
        ):
            _check(name, type(count) is int and count >= 1, f"{count!r} is not a number of 1 or more")
        _check("max_partitions", max_partitions >= min_partitions, f"it is below min_partitions, {min_partitions}")
        for name, number in (("trigger_ms", trigger_ms), ("partitions_per_core", partitions_per_core)):
            _check(name, number is None or number > 0, f"{number!r} is not above 0")
        _check("fixed_ms", fixed_ms is None or fixed_ms >= 0, f"{fixed_ms!r} is below 0")
        _check("high", 0 < high <= 1, f"{high!r} is not above 0 and at most 1")
        _check("low", 0 < low < high / 2, f"{low!r} is not above 0 and below half of high, {high / 2:g}")
        self._min, self._max = min_partitions, max_partitions
        self._trigger_ms, self._fixed_ms = trigger_ms, fixed_ms
        self._high, self._low, self._agree = high, low, agree
        self._cooldown, self._per_core = cooldown_batches, partitions_per_core
        self._run_id: str | None = None
        self._partitions = 0
        self._to_skip = cooldown_batches
        self._cost = FixedCost()
        self._counted: deque[_Counted] = deque(maxlen=agree + 1)  # growth of a backlog needs the batch before

    def decide(self, observation: Observation) -> Decision | None:
        """The wanted number of partitions; None to stay."""
        seen = observation
        if seen.partitions is None or seen.partitions < 1 or seen.rows is None or not seen.batch_ms:
            return None
        self._notice_change(seen.run_id, seen.partitions)
        if self._to_skip:
            self._to_skip -= 1
            return None
        self._cost.add(seen.rows, seen.batch_ms, seen.overhead_ms)
        share = self._share(seen)
        if not seen.rows or share is None:
            return None
        backlog = seen.backlog_bytes if seen.backlog_rows is None else seen.backlog_rows
        self._counted.append(_Counted(share, backlog))
        decision = self._into_bounds(seen.partitions) or self._grow(seen) or self._shrink(seen.partitions)
        if decision is not None:
            self._rest()
        return decision

    def _notice_change(self, run_id: str | None, partitions: int) -> None:
        if run_id != self._run_id:
            self._cost = FixedCost()
        elif partitions != self._partitions:
            self._cost.rescale(self._partitions, partitions)
        else:
            return
        self._run_id, self._partitions = run_id, partitions
        self._rest()

    def _rest(self) -> None:
        self._to_skip = self._cooldown
        self._counted.clear()

    def _share(self, seen: Observation) -> float | None:
        """Busy share of the interval beyond the fixed cost; None if the interval is unknown."""
        batch_ms, interval = seen.batch_ms or 0.0, self._trigger_ms
        if interval is None:
            if not seen.rows_per_s or not seen.processed_per_s:
                return None
            interval = max(batch_ms, batch_ms * seen.processed_per_s / seen.rows_per_s)
        fixed = self._cost.ms if self._fixed_ms is None else min(self._fixed_ms, batch_ms)
        # An interval that the fixed cost fills has no room that more partitions could use.
        return (batch_ms - fixed) / max(interval - fixed, interval / 10)

    # ---- decisions ---------------------------------------------------------------------------------------------------

    def _into_bounds(self, partitions: int) -> Decision | None:
        if partitions < self._min:
            return Decision(self._min, f"{partitions} partitions are fewer than the {self._min} of min_partitions")
        if partitions > self._max:
            return Decision(self._max, f"{partitions} partitions are more than the {self._max} of max_partitions")
        return None

    def _grow(self, seen: Observation) -> Decision | None:
        partitions = seen.partitions or 0
        most = self._max if seen.cores is None else min(self._max, int(self._per_core * seen.cores))
        if (target := min(2 * partitions, most)) <= partitions:
            return None
        shares = self._agreeing()
        if shares and shares[-1] < _RECOVERY * shares[0]:
            return None  # batches get shorter, because they work off what piled up before
        if self._trigger_ms is not None and min(shares, default=0.0) > self._high:
            took = f"{self._batches} took {_percent(min(shares))} or more of their interval of {self._trigger_ms:g} ms"
            return Decision(target, f"{took} beyond their fixed cost, above the limit of {_percent(self._high)}")
        if self._backlog_growths() == self._agree and min(shares, default=0.0) > self._low:
            first, last = self._counted[0].backlog, self._counted[-1].backlog
            return Decision(target, f"the backlog grew with {self._batches}, from {first:,.0f} to {last:,.0f}")
        return None

    def _shrink(self, partitions: int) -> Decision | None:
        target = max(self._min, (partitions + 1) // 2)
        shares = self._agreeing()
        if target >= partitions or not shares or max(shares) >= self._low or self._backlog_growths():
            return None
        took = f"{self._batches} took {_percent(max(shares))} or less of their interval beyond their fixed cost"
        return Decision(target, f"{took}, below the limit of {_percent(self._low)}")

    @property
    def _batches(self) -> str:
        return "1 batch" if self._agree == 1 else f"{self._agree} batches in a row"

    def _agreeing(self) -> list[float]:
        """Shares of the last `agree` batches; empty if fewer count."""
        shares = [each.share for each in self._counted][-self._agree :]
        return shares if len(shares) == self._agree else []

    def _backlog_growths(self) -> int:
        """Batches of the last `agree` after which more waited than after the one before."""
        known = [each.backlog for each in self._counted]
        return sum(a is not None and b is not None and b > a for a, b in pairwise(known))


def _check(name: str, is_valid: bool, reason: str) -> None:
    if not is_valid:
        raise SettingError(name, reason)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
