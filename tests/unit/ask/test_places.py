"""What a command, a domain file or a line of JSON has in the place of Python."""

import re

import pytest

from onlineic.ask.places import DOMAIN, JSON, OPTIONS, SQL, without_python

TOLD = [
    ("write span(0, inf)", 'write {"from": 0}'),
    ("write span(0.5, 20)", 'write {"from": 0.5, "below": 20}'),
    ("write between('2024-01', '2024-03')", 'write ["2024-01", "2024-03"]'),
    ("write at_least(3)", 'write {"at_least": 3}'),
    ("for a range write span(..) or between(..)", "for a range write [low, high]"),
    ("for a range write between(..), for several labels one_of(...)",
     'for a range write [low, high], for several labels {"one_of": [..]}'),
    ("write at_least or below", 'write {"from": ..} or {"below": ..}'),
    ("by a condition such as below(..)", 'by a condition such as {"below": ..}'),
    ("write between or span", 'write [..] or {"from": .., "below": ..}'),
    ("between must have numbers", "a range must have numbers"),
    ("to be asked for None", "to be asked for null"),
    ("must be a label, None, between(..)", "must be a label, null, [low, high]"),
    ("for missing values None", "for missing values null"),
    ("did you mean True?", "did you mean true?"),
    ("marginal must name one; write marginal('age', 'sex')",
     'a cross table must name one; write {"marginal": [attributes]}'),
    ("build the domain with pay in=range(..) or binned(..)",
     'let the domain file have {"range": [..]} or {"edges": [..]} for pay in'),
    ("declare it optional(..) when the domain is built", 'declare it "missing": true in the domain file'),
    ("optional(..., missing=['?', 'it\\'s'])", '"missing": ["?", "it\'s"]'),
    ("optional(kind, others='missing')", '"others": "missing"'),
    ("declare it optional(...)", 'declare it "missing": true'),
    ("give it in synonyms={...}, declare other=True", 'give it in "synonyms": {..}, declare "other": true'),
    ("categorical(..., synonyms={'f': 'F', 'é': True})", '"synonyms": {"f": "F", "é": true}'),
    ("categorical(..., synonyms={'f': )", "categorical(..., synonyms={'f': )"),
    ("list the others, or categorical(..., other=True)", 'list the others, or "other": true'),
    ("binned([...]) takes numbers, or binned(..)", '{"edges": [..]} takes numbers, or {"edges": [..]}'),
    ("binned([0, 20])", '{"edges": [0, 20]}'),
    ("integers(17, 90)", '{"range": [17, 90]}'),
    ("number(low, high)", '{"edges": [low, .., high], "ends": true, "clip": true}'),
    ("dates(.., by='month')", '{"dates": [..], "by": "month"}'),
    ("unless zone= is declared; write zone='Europe/Paris'",
     'unless "zone" is declared; write "zone": "Europe/Paris"'),
    ("formats=['%d.%m.%Y']", '"formats": ["%d.%m.%Y"]'),
    ("Domain.of(age=range(17, 91))", '{"age": {"range": [17, 90]}}'),
    ("write case(..)", 'write {"case": [{"when": {..}, "then": ..}]}'),
    ("write case({'young': where(age=below(30))}, 'others')", 'write {"case": [{"when": {..}, "then": ..}]}'),
    ("write cut('age', [18])", 'write {"cut": .., "at": [..]}'),
    ("write date_trunc('day', 'month')", 'write {"date_trunc": "month", "of": "day"}'),
    ("ask session.share(..)", "ask it as a line of its own"),
    ("write ['sex', 'age'], and name groupings by called('..').",
     'write [\'sex\', \'age\'], and give groupings a "name".'),
    ("declare it dates(first, last)", 'declare it {"dates": [first, last]}'),
    ("COUNT it by group, or use session.median.", "COUNT it by group."),
    ("write :name and pass params={'name': ...}", "write the value in its place"),
    ("ask a condition alone by session.answer(text)", "ask a condition alone"),
    ("ask it by session.sql(text)", "ask it as a line of its own"),
    ("mean(age, where(gap='b')) must be over", "the mean of age must be over"),
    ("sum(age) must be over", "the sum of age must be over"),
    ("write missing=['NA', '?']", "write --missing NA --missing '?'"),
    ('with neighbours="add-remove"', "with --neighbours add-remove"),
    ("name its encoding=, or convert it", "name its --encoding, or convert it"),
    ("write delimiter=';' or '\\t'", "write --delimiter ';' or '\\t'"),
    ("decimal=',' if", "--decimal , if"),
    ("name its delimiter=';'", "name its --delimiter ';'"),
    ("count must be None with unit", "--count must be left out with --person"),
    ("or lower max_queries or hard_answers", "or lower --max-queries or --hard-answers"),
    ("lower it; in a Budget, allow_large_epsilon=True lifts the upper limit", "lower it"),
    ("a larger budget, or exhausted='untested'", "a larger budget"),
    ("unit must name a column", "--person must name a column"),
    ("got epsilon=0.05; load the table with unit=Unit(person=None, units=16), or raise epsilon.",
     "got epsilon=0.05; raise epsilon."),
    ("loaded with Unit(person=..)", "loaded with --person COLUMN"),
    ("go on with OnlineIC.resume(FILE, data)", "go on by the same command with its ledger"),
    ("open it with OnlineIC(data, budget, ledger=.., table=..)",
     "begin it by onlineic ask or serve with --epsilon and --table"),
    ("load the table over that domain, which is onlineic.ledger.read(FILE).domain()",
     "give the domain file of that domain"),
    ("open it by ic.TableBudget", "give it to onlineic serve --total"),
    ("and 10 more; curator_report(values=None) shows all", "and 10 more"),
    ("PrivateData.check(table, domain).curator_report() shows values", "--show-data-errors shows values"),
    ("must be installed for from_frame", "must be installed for Parquet files"),
    ("one without records by add('2024-02', None)",
     "one without records by onlineic periods add FILE '2024-02'"),
    ("closed by close(label)", "closed by onlineic periods close"),
    ("go into the next month: add(.., late=True)", "go into the next month: onlineic periods add .. --late"),
    ("load over loading('a', 'b'), with late=True for rows", "add it with --late for rows"),
    ("attach('2024', data), or open Periods(.., load=function of a label)",
     "say by --data NAME{}.csv where it is"),
    ("write Persons(periods=3) or Persons(within=3)", "write --most-periods 3 or --within 3"),
    ("say Periods(.., persons=Persons(periods=3))", "say --most-periods 3"),
    ("write levels=('month',)", "write --levels month"),
]  # fmt: skip


@pytest.mark.parametrize(("python", "told"), TOLD)
def test_a_remedy_is_told_without_python(python, told):
    assert told == without_python(python)


def test_every_rule_is_used():
    rules = [pattern for pattern, _ in (*JSON, *DOMAIN, *SQL, *OPTIONS)]

    assert [] == [rule for rule in rules if not any(re.search(rule, python) for python, _ in TOLD)]


def test_what_is_no_python_is_left_alone():
    for message in ("age must be one of its 2 values ('F', 'M'), got 'number (1)'; did you mean 'F'?", ""):
        assert message == without_python(message)
