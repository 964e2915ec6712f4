"""What does not fit is found at once, and told to the curator alone."""

import copy
import csv
import datetime
import io
import pickle
import re

import numpy as np
import pytest

import onlineic as ic
from onlineic.data import PrivateData
from onlineic.domain import Domain
from onlineic.errors import InvalidDataError, InvalidParameterError, TooLargeError
from support import ugly

DOMAIN = Domain.of(age=range(17, 91), sex=["F", "M"])
SECRET = "Zanzibar"


def check(tmp_path, text, domain=DOMAIN, **options):
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return PrivateData.check(path, domain, **options)


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    return ugly.write(tmp_path_factory.mktemp("ugly"))


def misfitting(table, domain, path):
    """Return the lines of every attribute that no kind takes, by brute force."""
    texts, found = ugly.columns(), {}
    lines = list(csv_lines(path))
    for name, kind in domain:
        values = {text: np.array([csv_value(kind, text), None], object) for text in set(texts[name])}
        wrong = {text for text, value in values.items() if kind.read(value)[0] < 0}
        for row, text in enumerate(texts[name]):
            if text in wrong:
                found.setdefault(name, set()).add(lines[row])
    return found


def csv_value(kind, text):
    from onlineic.data.table_file import CsvFormat, parsed

    return parsed(kind, text.lstrip(" "), CsvFormat())


def csv_lines(path):
    """Return the line where each record begins, by splitting the text at quotes."""
    inside, line, fresh, seen = False, 1, True, -1
    for letter in path.read_text(encoding="utf-8"):
        if fresh and letter != "\n":
            seen += 1
            if seen:
                yield line
        fresh = False
        inside ^= letter == '"'
        if letter == "\n":
            line += 1
            fresh = not inside


def test_the_ugly_table_is_reported_with_every_column_value_and_line(survey):
    domain = ugly.first_domain()
    report = PrivateData.check(survey, domain)
    expected = misfitting(ugly.columns(), domain, survey)
    told = report.curator_report(values=None, lines=None)

    assert 20_000 == report.n
    assert not report.fits
    assert set(expected) == {misfit.column for misfit in report.misfits}
    seen = {}
    for misfit, block in zip(report.misfits, told.split("\n\n")[1:], strict=True):
        for line in block.splitlines()[1:]:
            if " line: " in line or " lines: " in line:
                numbers = line.rsplit(": ", 1)[1].split(", ")
                seen.setdefault(misfit.column, set()).update(int(n.replace(",", "")) for n in numbers)
    assert expected == seen


def test_the_ugly_table_fits_when_the_remedies_are_followed(survey):
    domain = ugly.domain()
    data = PrivateData.from_csv(survey, domain)
    texts = ugly.columns()

    assert PrivateData.check(survey, domain).fits
    assert 20_000 == data.n

    def count(**given):
        return data.exact_counts(ic.where(**given).bind(domain))

    assert sum(text in ("M", "male") for text in texts["sex"]) == count(sex="M")
    assert sum(text in ("?", "") for text in texts["sex"]) == count(sex=None)
    assert sum(text == "Overseas" for text in texts["region"]) == count(region="other")
    assert sum(text in ("17", "18") for text in texts["age"]) == count(age=18)
    june = sum(text[:7] in ("2023-05", "2023-06") for text in texts["joined"])
    assert june == count(joined=ic.between("2023-05", "2023-06"))
    assert sum(text in ("NA", "") for text in texts["income"]) == count(income=None)
    poor = sum(text not in ("NA", "", "inf") and float(text) < 10_000 for text in texts["income"])
    assert poor == count(income=ic.below(10_000))


def test_the_error_at_loading_names_every_column_and_rule_and_no_value(survey):
    with pytest.raises(InvalidDataError) as caught:
        PrivateData.from_csv(survey, ugly.first_domain())
    report = PrivateData.check(survey, ugly.first_domain())
    message = str(caught.value)

    assert [f"  {misfit}." for misfit in report.misfits] == message.splitlines()[1:-1]
    assert "curator_report() shows values and lines" in message
    for secret in ("Overseas", "104", "divorced", "Wset", "2020-12-31", "male"):
        assert secret not in message
        assert secret not in repr(report) + str(report) + repr(report.misfits) + repr(
            vars(type(report)).keys()
        )
        assert secret in report.curator_report()


def test_lines_are_those_of_the_file(tmp_path):
    text = 'age,sex,note\n30,F,"a\nb"\n\n\r\n99,M,x\n31,X,"""\n\n"\n32,M\n'
    report = check(tmp_path, text)

    assert 4 == report.n
    assert "'99' in 1 line: 6" in report.curator_report()
    assert "'X' in 1 line: 7" in report.curator_report()
    assert "2 fields in 1 line: 10" in report.curator_report()


def test_neighbouring_tables_have_the_same_public_report(tmp_path):
    """How many values are wrong, and which, is the curator's alone."""
    one, other = (check(tmp_path, f"age,sex\n30,F\n{rows}") for rows in ("99,F\n40,F\n", "16,F\n150,F\n"))

    assert repr(one) == repr(other)
    assert one._repr_html_() == other._repr_html_()
    assert one.curator_report() != other.curator_report()


def test_columns_are_checked_as_files_are(survey):
    names = ["sex", "region", "status"]
    texts = {name: [text.lstrip() or None for text in ugly.columns()[name]] for name in names}
    domain = ugly.first_domain().project(*names)
    by_columns, by_file = PrivateData.check(texts, domain), PrivateData.check(survey, domain)

    assert by_columns.misfits == by_file.misfits
    assert "'Overseas' in 10 rows" in by_columns.curator_report()


def test_everything_wrong_with_columns_is_found():
    domain = Domain.of(
        a=2, b=["x"], c=2, d=2, e=ic.optional(ic.dates("2024", "2025", "year")), f=ic.binned([0, 1])
    )
    table = {
        "a": [0, 5, None],
        "b ": ["x"],
        "c": 7,
        "d": [0, 1],
        "e": [2024, datetime.date(2024, 1, 1), None],
        "f": [[0], "x", 0.5],
    }
    report = PrivateData.check(table, domain, count="n")

    assert ["b", "c", "n", "", "a", "a", "e", "f"] == [misfit.column for misfit in report.misfits]
    assert "did you mean 'b '" in repr(report)
    assert "5 in 1 row: 1" in report.curator_report()
    assert "2024 in 1 row: 0" in report.curator_report()
    assert "[0] in 1 row: 0" in report.curator_report()


def test_counts_are_checked(tmp_path):
    report = check(tmp_path, "age,sex,n\n30,F,x\n31,F,-1\n32,M,2\n", count="n")
    columns = PrivateData.check({"age": [30, 31], "sex": ["F", "M"], "n": [1.5, 2]}, DOMAIN, count="n")

    assert ["n must hold whole numbers >= 0, got other values; correct the column"] == list(
        map(str, report.misfits)
    )
    assert "'x' in 1 line: 2" in report.curator_report()
    assert "'-1' in 1 line: 3" in report.curator_report()
    assert "1.5 in 1 row: 0" in columns.curator_report()
    assert PrivateData.check({"age": [30], "sex": ["F"], "n": np.array([3])}, DOMAIN, count="n").fits


def test_bytes_of_another_encoding_are_found_by_line(tmp_path):
    text = "age,sex\n30,F\n31,Ä\n".encode("latin-1")
    report = check(tmp_path, text, DOMAIN)

    assert "UTF-8, got other bytes; name its encoding=" in repr(report)
    assert "bytes of another encoding' in 1 line: 3" in report.curator_report()
    assert "'Ä' in 1 line: 3" in check(tmp_path, text, DOMAIN, encoding="latin-1").curator_report()


def test_a_field_beyond_the_limit_is_found(tmp_path):
    report = check(tmp_path, "age,sex\n30," + "F" * 200_000 + "\n")

    assert "field larger than field limit" in report.curator_report()
    assert not report.fits


def test_headers_are_checked_and_the_nearest_name_is_named(tmp_path):
    report = check(tmp_path, "Age,sex,sex\n30,F,F\n")

    assert "one column for age, got 0; did you mean 'Age'" in repr(report)
    assert "one column for sex, got 2; rename one" in repr(report)
    assert "give it a header line" in repr(check(tmp_path, ""))
    assert not check(tmp_path, "age,sex\n").fits


def test_remedies_in_the_report_work_when_followed(tmp_path):
    text = 'a,b,c,d\n"1,5",north,2023-12-31,yes\n?,Sout,2025,true\n"0,5",West,2024-02,false\n'
    rough = Domain.of(
        a=ic.binned([0, 2]), b=["North", "South"], c=ic.dates("2024-01", "2024-12", "month"), d=[True, False]
    )
    told = check(tmp_path, text, rough).curator_report()
    mended = Domain.of(
        a=ic.optional(ic.binned([0, 2]), missing=["?"]),
        b=ic.categorical(["North", "South"], synonyms={"north": "North", "Sout": "South"}, other=True),
        c=ic.dates("2023-12", "2024-12", "month"),
        d=ic.categorical([True, False], synonyms={"yes": True}),
    )

    for remedy in (
        "missing=['?']", "decimal=','", "synonyms={'north': 'North', 'Sout': 'South'}", "other=True",
        "between 2023-12-31 and 2023-12-31", "synonyms={'yes': True}", "write dates as 2024-03-05",
    ):  # fmt: skip
        assert remedy in told
    assert check(tmp_path, text.replace("2025", "2024-01-07"), mended, decimal=",").fits


def test_in_a_notebook_no_text_of_the_table_or_the_domain_is_markup():
    report = PrivateData.check({"<i>": ["<b>", "x"]}, Domain.of({"<i>": ["<u>", "x"]}))

    assert "&lt;i&gt; must be one of" in report._repr_html_()
    assert "b>" not in report._repr_html_()
    assert "&lt;b&gt;&#x27; in 1 row: 0" in report.curator_report()._repr_html_()
    assert "all fit" in PrivateData.check({"a": ["x"]}, Domain.of(a=["x"]))._repr_html_()
    for told in (report._repr_html_(), report.curator_report()._repr_html_()):
        assert not {"<i>", "<b>", "<u>"} & set(re.findall("<[ibu]>", told))


def test_long_lists_are_cut_unless_all_are_wanted(tmp_path):
    text = "age,sex\n" + "".join(f"30,X{i % 30}\n" for i in range(900))
    report = check(tmp_path, text)

    assert "and 10 more values; curator_report(values=None)" in report.curator_report()
    assert "'X0' in 30 lines: 2, 32, 62, and 27 more" in report.curator_report(lines=3)
    assert "more" not in report.curator_report(values=None, lines=None)
    for wrong in ({"values": 0}, {"lines": 1.5}, {"values": True}):
        with pytest.raises(InvalidParameterError, match="must"):
            report.curator_report(**wrong)


@pytest.mark.parametrize("use", [pickle.dumps, copy.copy, copy.deepcopy])
def test_reports_are_not_copied(tmp_path, use):
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        use(check(tmp_path, "age,sex\n30,X\n"))


def test_a_list_of_records_is_a_table():
    good = [{"age": 30, "sex": "F"}, {"age": 31, "sex": "M"}]
    report = PrivateData.check([*good, {"age": 30}], DOMAIN)

    assert PrivateData.check(good, DOMAIN).fits
    assert "every record must have a value for sex, got some without; write None" in str(report.misfits[0])
    assert "missing in 1 row: 2" in report.curator_report()
    assert ["sex"] == [each.column for each in PrivateData.check([{"age": 30}], DOMAIN).misfits]


@pytest.mark.parametrize("table", [[], {"age": [], "sex": []}])
def test_a_table_without_rows_does_not_fit(table):
    report = PrivateData.check(table, DOMAIN)

    assert not report.fits
    assert "0 rows, one or more must be there" in repr(report)


def test_what_is_no_table_is_refused(tmp_path):
    for table in (5, None, [1], np.zeros(3), [{"a": 1}, 2]):
        with pytest.raises(InvalidParameterError, match="table must be a mapping"):
            PrivateData.check(table, DOMAIN)
    for options in ({"sep": ";"}, {"delimiter": ";;"}):
        with pytest.raises(InvalidParameterError, match="must"):
            check(tmp_path, "age,sex\n", **options)
    with pytest.raises(InvalidParameterError, match="options must be given with the path"):
        PrivateData.check({"age": [1], "sex": ["F"]}, DOMAIN, delimiter=";")
    with pytest.raises(InvalidParameterError, match="domain must be a Domain"):
        PrivateData.check({}, {})
    with pytest.raises(TooLargeError):
        PrivateData.check({}, Domain.of(a=2**41))
    with pytest.raises(InvalidParameterError, match=r"nowhere\.csv': No such file"):
        PrivateData.check(tmp_path / "nowhere.csv", DOMAIN)


def test_structured_arrays_are_tables():
    table = np.array([(30, "F"), (5, "X")], dtype=[("age", "i2"), ("sex", "U1")])

    assert 2 == len(PrivateData.check(table, DOMAIN).misfits)


# ---------------------------------------------------------------- formats


def test_files_in_other_formats_are_read(tmp_path):
    domain = Domain.of(w=ic.optional(ic.binned([0, 1, 2])), place=["Köln", "Ulm"], k=ic.optional(range(5)))
    text = "w;place;k\n0,5;Köln;1\nk.A.; Ulm;2,0\n1,5;Ulm;-\n"
    path = tmp_path / "t.csv"
    form = {"delimiter": ";", "decimal": ",", "missing": ["k.A.", "-"]}
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "utf-16", "cp1252"):
        path.write_text(text, encoding=encoding)
        data = PrivateData.from_csv(path, domain, encoding=encoding, **form)

        assert 3 == data.n
        for given in (
            {"w": "[0, 1)", "place": "Köln", "k": 1},
            {"w": None, "k": 2},
            {"place": "Ulm", "k": None},
        ):
            assert 1 == data.exact_counts(ic.where(**given).bind(domain))
    with pytest.raises(InvalidDataError, match="place must be one of"):
        PrivateData.from_csv(path, domain, encoding="cp1252", skipinitialspace=False, **form)


def test_points_are_no_commas_where_commas_stand_before_the_fraction(tmp_path):
    (tmp_path / "t.csv").write_text("w\n1.000\n")
    with pytest.raises(InvalidDataError, match="w must hold numbers"):
        PrivateData.from_csv(tmp_path / "t.csv", Domain.of(w=ic.binned([0, 2])), decimal=",")


def test_a_label_is_never_missing(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\nNA,NA\n")
    domain = Domain.of(a=["NA", "DE"], b=ic.optional(["DE"]))
    data = PrivateData.from_csv(tmp_path / "t.csv", domain, missing=["NA"])

    assert 1 == data.exact_counts(ic.where(a="NA", b=None).bind(domain))


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": ""}, {"delimiter": ",,"}, {"delimiter": "\n"}, {"delimiter": '"'}, {"delimiter": None},
        {"decimal": ";"}, {"decimal": None}, {"encoding": "nonsense"}, {"encoding": None},
        {"encoding": "base64"},
        {"skipinitialspace": 1}, {"missing": 5}, {"missing": [None]},
    ],
    ids=repr,
)  # fmt: skip
def test_formats_that_cannot_be_are_refused(tmp_path, options):
    (tmp_path / "t.csv").write_text("age,sex\n30,F\n")
    with pytest.raises(InvalidParameterError, match="must"):
        PrivateData.from_csv(tmp_path / "t.csv", DOMAIN, **options)


def test_records_written_by_the_csv_module_come_back(tmp_path):
    labels = ["a,b", 'c"d', "e\nf", " g", "", "ü"]
    out = io.StringIO()
    csv.writer(out).writerows([["x"], *([label] for label in labels)])
    (tmp_path / "t.csv").write_text(out.getvalue(), encoding="utf-8", newline="")
    domain = Domain.of(x=labels)
    data = PrivateData.from_csv(tmp_path / "t.csv", domain, skipinitialspace=False)

    assert [1] * len(labels) == [data.exact_counts(ic.where(x=label).bind(domain)) for label in labels]


@pytest.mark.parametrize(("ages", "said"), [([17, 200], "1 misfit;"), ([17, "x", 200], "2 misfits;")])
def test_one_misfit_is_told_as_one(ages, said):
    report = PrivateData.check({"age": ages}, ic.Domain.of(age=range(17, 91)))

    assert f"TableReport({len(ages)} rows, {said} " in repr(report)
    assert f"{len(ages)} rows, {said[:-1]}.\n" in report.curator_report()


def test_one_more_value_is_told_as_one():
    report = PrivateData.check({"sex": ["a", "a", "b"]}, ic.Domain.of(sex=["F", "M"]))

    assert "and 1 more value; curator_report" in report.curator_report(values=1)
