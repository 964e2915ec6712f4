"""The report's remedies: a text is offered as a synonym only where it certainly means its label."""

import pytest

import onlineic as ic


def offered(labels, values):
    domain = ic.Domain.of(a=labels)
    return ic.PrivateData.check({"a": [labels[0], *values]}, domain).curator_report()


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        (["F32", "I10", "J45"], ["C32", "E10"]),  # other diagnoses, one letter apart
        (["F32.1", "I10.0"], ["F32.2", "F32"]),
        (["EDDF", "EDDM", "LSZH"], ["EDDK"]),  # airports: labels are as near to each other
        (["AT", "DE", "CH"], ["BE", "CZ"]),
        (["a1", "b1"], ["c1"]),
    ],
)
def test_another_code_is_no_synonym_of_one(labels, values):
    report = offered(labels, values)

    assert "synonyms={'" not in report
    assert "other=True" in report


@pytest.mark.parametrize(
    ("labels", "value", "label"),
    [
        (["F32", "I10"], "f32", "F32"),
        (["F32", "I10"], " I 10", "I10"),
        (["München", "Bern"], "Munchen", "München"),
        (["F", "M"], "female", "F"),
        (["North", "South", "East", "West"], "Wset", "West"),
        (["married", "single"], "maried", "married"),
    ],
)
def test_case_blanks_accents_and_misspelt_words_are_offered(labels, value, label):
    assert f"synonyms={{{value!r}: {label!r}}}" in offered(labels, [value])
