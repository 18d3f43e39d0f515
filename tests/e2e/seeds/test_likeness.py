"""What counts as the same output, and what does not."""

from __future__ import annotations

from tests.kit.seeds.likeness import document, missing, table

LINE = (
    'I0418 00:06:34.361128    6576 controller.go:299] "Created APIBinding" worker=1 '
    'mbwsCluster="1b0eso4ld8np1d3z" bindingName="bind-edge" resourceVersion="1303"'
)


def test_rows_are_the_same_in_any_order_at_any_age() -> None:
    assert table("A  AGE\nx  3m2s\ny  1h\n") == table("A     AGE\ny     4s\nx     5s\n")
    assert table("A  AGE\nx  3m2s\n") != table("A  AGE\nz  3m2s\n")
    assert table("A  AGE\nx  3m2s\n") != table("A  AGE\nx  3m2s\nx  3m2s\n")


def test_documents_are_the_same_in_any_order_with_any_made_up_names() -> None:
    one = "destinations:\n- {cluster: y2vvakjnwxns951p, name: a}\n- {cluster: x, name: b}\n"
    two = "destinations:\n- {cluster: x, name: b}\n- {cluster: 1em0rxri71aqmd41, name: a}\n"
    assert document(one) == document(two)
    assert document(one) != document(two.replace("name: a", "name: c"))


def test_a_line_is_said_if_message_and_values_are_whoever_says_it_and_when() -> None:
    again = LINE.replace("6576 controller.go:299", "1 telling.py:54").replace(
        "worker=1", "worker=7"
    )
    assert missing(LINE, [again + ' more="x"']) == []
    assert missing(f"...\n{LINE}\n^C\n", [again]) == []
    assert missing(LINE, [again.replace("bind-edge", "bind-other")]) == [LINE]
    assert missing(LINE, [again.replace("Created", "Deleted")]) == [LINE]
    assert missing(LINE, [again.replace(' bindingName="bind-edge"', "")]) == [LINE]
    assert missing("reconciling x", ["reconciling y"]) == ["reconciling x"]
