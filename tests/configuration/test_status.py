"""Where rounds stand: the truth counts only where it is said of the very units that are tested."""

from policyspace.study import Schedule, Status


def test_a_truth_about_features_says_nothing_of_single_weights_or_groups():
    def kept(units, truth, **settings):
        return Status(Schedule(units, True), settings=settings, truth=truth).truth

    assert kept(("row_0[up]", "row_0[down]"), ["row_0"]) is None
    assert kept(("mine", "row_3"), ["row_0", "row_3"]) is None
    assert kept(("row_0", "row_3"), ["row_3"]) == ["row_3"]
    assert kept(("row_3",), ["row_0", "row_3"], assume=["row_0"]) == ["row_0", "row_3"]
    assert kept(("row_0[up]",), []) == [] and kept(("row_0",), None) is None
