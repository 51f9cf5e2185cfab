"""Tables: what counts, what is kept apart, who is compared with whom."""

import pandas as pd
import pytest
from tests.statistics.rows import rows

from tiercel.statistics.tables import agreement, comparisons, outliers, summary_table


def test_one_row_for_a_configuration_and_operation():
    table = summary_table(rows([10, 20, 30]) + rows([5, 6, 7], processes_per_node=2))
    assert table["median"].tolist() == [20.0, 6.0]
    assert table["n"].tolist() == [3, 3]
    assert table["metric"].tolist() == ["bandwidth", "bandwidth"]
    assert len(table["runs"][0]) == 3


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


def test_stack_against_stack_with_the_floor_of_both():
    frame = (
        rows([100, 101, 102, 103, 104], storage="fast")
        + rows([100, 101, 102, 103, 104], storage="fast", twin="b")
        + rows([10, 11, 12, 13, 14], storage="slow")
        + rows([10, 11, 12, 13, 14], storage="slow", twin="b")
    )
    (row,) = comparisons(frame).to_dict("records")
    assert (row["storage_a"], row["storage_b"], row["verdict"]) == ("fast", "slow", "higher")
    assert row["ratio"] == pytest.approx(102 / 12)
    assert (row["median_a"], row["median_b"]) == (102.0, 12.0)
    # The halves of both pairs are alike: two placements differ by no more than their repetitions do.
    assert row["floor_high"] == 1.0 and row["floor_source"] == "own"
    assert len(row["runs"]) == 10


def test_scales_are_compared_apart_and_together():
    frame = _two_scales()
    table = comparisons(frame)
    assert table["scope"].tolist() == ["scale", "scale", "all"]
    by_scope = table.set_index("scope")
    assert (by_scope.loc["scale", "verdict"] == "undecided").all()  # 3 against 3
    assert by_scope.loc["all", "verdict"] == "higher"
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


def test_engine_agreement():
    frame = (
        rows([100, 101, 102])
        + rows([100, 101, 105], twin="b")
        + rows([98, 100, 101], engine="ior")
        + rows([98, 100, 101], engine="ior", twin="b")
    )
    (row,) = agreement(frame).to_dict("records")
    assert (row["engine_a"], row["engine_b"]) == ("iokernel", "ior")
    assert row["ratio"] == pytest.approx(1.01)
    assert row["within_floor"]


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
