from __future__ import annotations

from skerry.kit.rate import RateLimit, RateLimits


def test_a_burst_passes_and_then_one_per_interval() -> None:
    limit = RateLimit(per_second=2, burst=3)
    assert [limit.allows(100) for _ in range(5)] == [True, True, True, False, False]
    assert not limit.allows(100.4)
    assert limit.allows(100.5)
    assert limit.taken() == 3
    assert limit.taken() == 0


def test_rest_refills_no_more_than_the_burst() -> None:
    limit = RateLimit(per_second=1, burst=2)
    limit.allows(0)
    assert [limit.allows(1e9) for _ in range(3)] == [True, True, False]


def test_each_name_has_a_limit_of_its_own_and_their_number_is_bounded() -> None:
    limits = RateLimits(per_second=1, burst=1)
    assert limits.of("a").allows(1)
    assert limits.of("b").allows(1)
    assert not limits.of("a").allows(1)
    for number in range(5000):
        limits.of(f"invented-{number}")
    assert len(limits._limits) <= 1024
