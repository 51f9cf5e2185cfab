"""Tables: what counts, what is kept apart, who is compared with whom."""

import math

import pandas as pd
import pytest
from tests.statistics.rows import rows

from tiercel.statistics.ranking import reverse, same
from tiercel.statistics.tables import agreement, comparisons, outliers, summary_table


def test_one_row_for_a_configuration_and_operation():
    table = summary_table(rows([10, 20, 30]) + rows([5, 6, 7], processes_per_node=2))
    assert table["median"].tolist() == [20.0, 6.0]
    assert table["n"].tolist() == [3, 3]
    assert table["metric"].tolist() == ["bandwidth", "bandwidth"]
    assert len(table["runs"][0]) == 3


def test_a_row_has_all_that_describes_its_sample():
    frame = rows([30, 10, 20, math.nan], run=None)
    frame["run"] = ["r0", "r1", "r2", "r3"]
    frame["operation_rate"] = [3.0, 1.0, 2.0, 2.0]
    frame["latency_p50"] = [0.1, 0.3, 0.2, 0.2]
    frame["latency_p99"] = [1.0, 3.0, 2.0, 2.0]
    frame["behind_share"] = [0.5, math.nan, 0.7, 0.9]
    (row,) = summary_table(frame).to_dict("records")
    # Three values have no 95 % interval: their range, which holds the median in 1 - 2 / 2^3 of the cases.
    assert (row["n"], row["low"], row["high"], row["coverage"]) == (3, 10.0, 30.0, 0.75)
    assert (row["mean"], row["sd"], row["cv"], row["minimum"], row["maximum"]) == (
        20.0,
        10.0,
        0.5,
        10.0,
        30.0,
    )
    assert (row["operation_rate"], row["latency_p50"], row["latency_p99"]) == (2.0, 0.2, 2.0)
    assert row["behind_share"] == 0.7
    assert row["values"] == [30.0, 10.0, 20.0] and row["runs"] == ["r0", "r1", "r2", "r3"]


def test_rows_are_in_the_order_of_the_report_and_numbered_anew():
    frame = rows([])
    for workload, processes, storage in (("b", 1, "x"), ("a", 2, "x"), ("a", 1, "y"), ("a", 1, "x")):
        frame += rows([1.0], workload=workload, processes_per_node=processes, storage=storage)
    table = summary_table(frame)
    found = list(zip(table["workload"], table["processes_per_node"], table["storage"], strict=True))
    assert found == [("a", 1, "x"), ("a", 1, "y"), ("a", 2, "x"), ("b", 1, "x")]
    assert list(table.index) == [0, 1, 2, 3]


def test_setup_traced_and_twin_rows_do_not_count():
    table = summary_table(
        rows([10])
        + rows([99], role="setup", operation="read")
        + rows([99], traced=True)
        + rows([99], twin="b")
    )
    assert table["median"].tolist() == [10.0]


def test_origins_are_never_mixed():
    table = summary_table(rows([10, 10]) + rows([90, 90], origin="simulated") + rows([50], origin="imported"))
    assert dict(zip(table["origin"], table["median"], strict=True)) == {
        "measured": 10.0,
        "simulated": 90.0,
        "imported": 50.0,
    }


def test_metadata_is_counted_in_operations():
    frame = rows([1.0, 1.0], operation="file-create")
    frame["bandwidth"] = None
    frame["operation_rate"] = [1000.0, 3000.0]
    table = summary_table(frame)
    assert (table["metric"][0], table["median"][0]) == ("operation_rate", 2000.0)


def test_flags_are_shares_and_outliers_are_listed_not_dropped():
    frame = rows([10, 11, 10, 11, 50])
    frame["flags"] = [["not-cold"], [], ["not-cold", "loaded"], [], []]
    table = summary_table(frame)
    assert table["flags"][0] == {"loaded": 0.2, "not-cold": 0.4}
    assert table["outliers"][0] == [50.0]
    assert (table["n"][0], table["maximum"][0]) == (5, 50.0)


def test_quartiles_of_three_values_make_no_outlier():
    assert outliers([1, 2, 1000]) == []


def test_fences_stand_at_one_and_a_half_quartile_ranges():
    # Quartiles 2 and 4: fences at 2 - 3 and 4 + 3. What stands on a fence is none.
    assert outliers([2, 2, 4, 4, -1, 7]) == []
    assert outliers([2, 2, 2, 4, 4, 4, 3, -1.1, 7.1]) == [-1.1, 7.1]
    assert outliers([1, 1, 1, 9]) == [9.0]


def looked(first, later, storage, twin="a"):
    """Return five rounds of the study, and five of a further look."""
    study = rows(first, storage=storage, twin=twin, look=0)
    more = rows([*first, *later], storage=storage, twin=twin, look=1)
    return study + more.iloc[len(first) :].reset_index(drop=True)


def test_what_an_earlier_look_claimed_stays_claimed_with_its_p():
    slow = [50.0, 51.0, 52.0, 53.0, 54.0]
    frame = rows([])
    for twin in "ab":
        frame += looked([v * 2 for v in slow], [v * 1.6 for v in slow], "fast", twin)
        frame += looked(slow, slow, "slow", twin)
    (before,) = comparisons(frame[frame["look"] == 0]).to_dict("records")
    (after,) = comparisons(frame).to_dict("records")
    assert (before["storage_a"], before["verdict"], after["verdict"]) == ("fast", "higher", "higher")
    assert after["p_corrected"] == before["p_corrected"] and after["reason"] == ""
    assert after["n_a"] == 10 and 1 < after["low"] < after["ratio"] < before["ratio"]


@pytest.mark.parametrize("later", [1 / 4, 1.02])
def test_what_a_later_look_does_not_confirm_is_undecided_and_says_so(later):
    """The opposite, or none: an interval that holds 1 is no claim, whatever an earlier round showed."""
    slow = [50.0, 51.0, 52.0, 53.0, 54.0]
    frame = rows([])
    for twin in "ab":
        frame += looked([v * 2 for v in slow], [v * later for v in slow], "fast", twin)
        frame += looked(slow, slow, "slow", twin)
    (after,) = comparisons(frame).to_dict("records")
    assert (after["verdict"], after["storage_a"], after["n_a"]) == ("undecided", "fast", 10)
    assert after["rule"] == "contradicted"
    assert math.isnan(after["needed"])


def test_stack_against_stack_with_the_floor_of_both():
    frame = (
        rows([100, 101, 102, 103, 104], storage="fast")
        + rows([100, 101, 102, 103, 104], storage="fast", twin="b")
        + rows([10, 11, 12, 13, 14], storage="slow")
        + rows([10, 11, 12, 13, 14], storage="slow", twin="b")
    )
    (row,) = comparisons(frame).to_dict("records")
    assert (row["storage_a"], row["storage_b"], row["verdict"]) == ("fast", "slow", "higher")
    # Of geometric means.
    products = 100 * 101 * 102 * 103 * 104, 10 * 11 * 12 * 13 * 14
    assert row["ratio"] == pytest.approx((products[0] / products[1]) ** (1 / 5))
    assert (row["median_a"], row["median_b"]) == (102.0, 12.0)
    # The halves of both pairs are alike: two placements differ by no more than their repetitions do.
    assert row["floor_high"] == 1.0 and row["floor_source"] == "own"
    assert len(row["runs"]) == 10


def test_the_margin_says_what_is_the_same():
    near = [100.0, 101.0, 102.0, 103.0, 104.0]
    frame = rows([])
    for twin in "ab":
        frame += rows(near, storage="fast", twin=twin) + rows(
            [v / 1.15 for v in near], storage="slow", twin=twin
        )
    for margin, alike in ((1.1, False), (1.3, True)):
        (row,) = comparisons(frame, margin=margin).to_dict("records")
        assert (row["margin"], same(row), same(reverse(row))) == (margin, alike, alike)


def test_scales_are_compared_apart_and_together():
    frame = _two_scales()
    table = comparisons(frame)
    assert table["scope"].tolist() == ["scale", "scale", "all"]
    by_scope = table.set_index("scope")
    assert (table["rule"] == "few repetitions").all() and (table["needed"] == 1).all()  # 3 against 3
    assert by_scope.loc["all", "ratio"] > 2
    assert pd.isna(by_scope.loc["all", "nodes"])


def test_excluded_flags_do_not_enter_comparisons():
    frame = _two_scales()
    frame["flags"] = [["broken"] if p == 2 else [] for p in frame["processes_per_node"]]
    assert comparisons(frame, excluded={"broken"})["scope"].tolist() == ["scale"]
    assert len(summary_table(frame)) == 4


def test_different_workload_features_are_not_compared():
    frame = rows([10, 11], storage="fast", transfer_size=4096) + rows(
        [10, 11], storage="slow", transfer_size=1048576
    )
    assert comparisons(frame).empty


def test_layers_are_compared_on_their_storage_only():
    frame = rows([10, 11]) + rows([20, 21], layer="cachevol") + rows([5, 6], storage="slow")
    pairs = comparisons(frame)[["storage_a", "layer_a", "storage_b", "layer_b"]].to_numpy().tolist()
    # cachevol on fast against none on slow would differ in both.
    assert pairs == [["fast", "cachevol", "fast", "none"], ["fast", "none", "slow", "none"]]


@pytest.mark.parametrize(
    ("factor", "spread", "repetitions", "outcome"),
    [
        (1.0, 0.01, 5, "same"),
        (2.0, 0.01, 5, "better"),
        (2.0, 0.01, 1, "no power"),  # one value on a side shows nothing
        (1.0, 1.0, 5, "no power"),  # floors of 0.02 to 50
    ],
)
def test_engines_agree_only_by_an_equivalence_test(factor, spread, repetitions, outcome):
    steps = [math.exp(spread * step) for step in (0, 1, -1, 0.5, -0.5)][:repetitions]
    frame = rows([])
    for twin in "ab":
        frame += rows([100 * factor * step for step in steps], twin=twin)
        frame += rows([100 * step for step in steps[::-1]], engine="ior", twin=twin)
    (row,) = agreement(frame).to_dict("records")
    assert (row["engine_a"], row["engine_b"], row["outcome"]) == ("iokernel", "ior", outcome)
    assert row["ratio"] == pytest.approx(factor) and row["within_floor"] == (outcome == "same")


def test_engines_without_a_replicate_have_no_power_to_agree():
    frame = rows([100, 101, 102, 103, 104]) + rows([100, 101, 102, 103, 104], engine="ior")
    (row,) = agreement(frame).to_dict("records")
    assert (row["outcome"], row["rule"]) == ("no power", "no replicate")


def test_numbers_that_do_not_count_take_no_part_in_agreement():
    frame = rows([100, 100, 100, 100]) + rows([100, 100, 400, 400], engine="ior")
    frame = frame + rows([100, 100, 100, 900], twin="b")
    frame["flags"] = [[]] * 6 + [["bad"]] * 2 + [[]] * 3 + [["bad"]]
    (row,) = agreement(frame, ["bad"]).to_dict("records")
    assert (row["ratio"], row["n_a"], row["n_b"]) == (1.0, 4, 2)
    # Nor in the noise that it is held against: without the last of the pair there is none.
    assert (row["floor_low"], row["floor_high"]) == (1.0, 1.0)


def test_one_engine_alone_agrees_with_none():
    for engine in ("iokernel", "ior"):
        table = agreement(rows([1, 2, 3], engine=engine))
        assert table.empty and {"engine_a", "engine_b", "ratio", "within_floor"} <= set(table.columns)


def test_no_rows_give_empty_tables():
    frame = rows([])
    assert summary_table(frame).empty
    assert comparisons(frame).empty
    assert agreement(frame).empty


def test_an_edited_study_compares_its_newest_configuration():
    frame = rows([10, 11], storage="fast", configuration="old", began=1.0)
    frame += rows([20, 21], storage="fast", configuration="new", began=2.0)
    frame += rows([5, 6], storage="slow", began=2.0)
    (row,) = comparisons(frame).to_dict("records")
    assert row["median_a"] == 20.5


def test_rows_without_words_are_kept_as_unknown():
    frame = rows([10, 11], origin="imported", layer=None, launcher=None, nodes=None)
    table = summary_table(frame)
    assert (table["layer"][0], table["nodes"][0], table["median"][0]) == ("none", 0, 10.5)


def _two_scales():
    frame = rows([])
    for storage, base in (("fast", 100), ("slow", 10)):
        for processes in (1, 2):
            values = [base, base * 1.01, base * 1.02]
            frame += rows(values, storage=storage, processes_per_node=processes)
        frame += rows(values, storage=storage, processes_per_node=2, twin="b")
    return frame
