"""The catalogue of bad input: what people write first, what they are told, and what works instead.

Each row is a kind of bad input that somebody met who used the package in earnest: what was written, the
class of the refusal (or the exit status), words of its message, and the same with the remedy followed, which
must work. Every refusal is tried in two worlds, of neighbouring tables and of other dirt. It must be the same
in both, say no private value, change nothing, and spend nothing.
"""

import contextlib
import importlib
import importlib.util
import io
import itertools
import re
import shutil
import warnings
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest

import onlineic as ic
from onlineic import where
from onlineic.cli import main
from onlineic.errors import InfeasibleAccuracyError, SessionExhaustedError
from onlineic.ledger import SqliteLedger
from onlineic.noise import SimulatedNoise
from tests.support import databases
from tests.support.sessions import Still

pytest.importorskip("narwhals", reason="needs the extra frames")
pytest.importorskip("sqlglot", reason="needs the extra sql")

BUDGET = ic.Budget(1.0, 1e-9)
ASKING = ("where", "between", "span", "at_least", "below", "one_of", "weights", "marginal")
MODULES = {
    "copy": "copy", "json": "json", "math": "math", "np": "numpy", "pickle": "pickle", "ic": "onlineic",
    "pd": "pandas", "pl": "polars", "pa": "pyarrow", "duckdb": "duckdb",
}  # fmt: skip
LIBRARIES = {
    **{
        short: importlib.import_module(name)
        for short, name in MODULES.items()
        if importlib.util.find_spec(name)
    },
    "SimulatedNoise": SimulatedNoise,
}
CATALOGUE = {  # section: {what refuses it: (kind, what was written, words of the message, what works)}
    'the first slips of a newcomer': {
        'InvalidCallError': [
            ('the US spelling of a loader',
             "ic.PrivateData.from_records(people, who, neighbors='add-remove')",
             "PrivateData.from_records must get arguments that it has, got 'neighbors'; did you mean "
             "'neighbours'?", "ic.PrivateData.from_records(people, who, neighbours='add-remove')"),
            ('a separator, as pandas has it',
             "ic.PrivateData.from_csv(csv('age;sex\\n30;F\\n'), who, sep=';')",
             "got 'sep'; write delimiter=';'.",
             "ic.PrivateData.from_csv(csv('age;sex\\n30;F\\n'), who, delimiter=';')"),
            ('words for gaps, as pandas has them',
             "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who, na_values=['NA'])",
             "got 'na_values'; write missing=['NA'].",
             "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who, missing=['NA'])"),
            ('a loader without its domain', 'ic.PrivateData.from_records(people)',
             'PrivateData.from_records must get domain, got none; write PrivateData.from_records(columns, '
             'domain).', 'ic.PrivateData.from_records(people, who)'),
            ('a budget by its numbers', 'ic.OnlineIC(load(), epsilon=1.0)',
             "got 'epsilon'; write budget=Budget(epsilon=1.0, delta=1e-9).",
             'ic.OnlineIC(load(), budget=ic.Budget(epsilon=1.0, delta=1e-9))'),
            ('the alpha of the textbook', 'opened(alpha=0.1)',
             "got 'alpha'; an accuracy to certify is certify=0.05.", 'opened(certify=0.1)'),
            ('the T of the textbook', 'opened(T=10)',
             "got 'T'; the number of updates to plan for is hard_answers=20.", 'opened(hard_answers=10)'),
            ('the eta of the textbook', 'ic.MultiplicativeWeights(eta=0.1)', "got 'eta'; write rate=0.1.",
             'ic.MultiplicativeWeights(rate=0.1)'),
            ('a seed', 'opened(seed=1)', 'noise that can be repeated protects nobody; to simulate write',
             'opened(noise=SimulatedNoise(1))'),
            ('the singular for the plural', 'opened(question=20)',
             "got 'question'; did you mean 'questions'?", 'opened(questions=20)'),
            ('no budget', 'ic.OnlineIC(small_table())',
             'OnlineIC must get budget, got none; write OnlineIC(data, Budget(', 'opened()'),
            ('a condition as arguments', "session.answer(sex='F')",
             "got 'sex'; it has query, within; a condition on attributes is where(sex=..).",
             "session.answer(where(sex='F'))"),
            ('a condition of a mean as arguments', "session.mean('age', sex='F')",
             "a condition on attributes is where={'sex': ..}.", "session.mean('age', where={'sex': 'F'})"),
            ('a mean of nothing', 'session.mean()',
             'OnlineIC.mean must get attribute, got none; write session.mean("age",', "session.mean('age')"),
            ('a mean by group', "session.mean('age', by='sex')",
             "by group write group_by('sex', aggregate='mean', of='age').",
             "session.group_by('sex', aggregate='mean', of='age')"),
            ('an attribute for a domain', 'ic.Domain(age=range(17, 91))',
             'write Domain.of(age=range(17, 91)).', 'ic.Domain.of(age=range(17, 91))'),
            ('labels one by one', "ic.categorical('F', 'M')",
             'categorical must get at most 1 without a name (labels), got 2 values; write ',
             "ic.categorical(['F', 'M'])"),
        ],
        'AttributeError': [
            ('a loader of pandas', 'ic.PrivateData.from_pandas(people, who)',
             "PrivateData has no attribute 'from_pandas'; write from_frame(table, domain).",
             'ic.PrivateData.from_frame(pd.DataFrame(people), who)'),
            ('the largest value', "session.max('age')",
             "the largest value is one person's, and never released; write quantile('age', 0.99).",
             "session.quantile('age', 0.99)"),
            ('a standard deviation', "session.std('age')", "write variance('age').value ** 0.5.",
             "session.variance('age').value ** 0.5"),
            ('a domain read from the table', 'ic.Domain.infer(people)',
             'a domain is public, never read from the table: write Domain.of(age=range(17, 91)).',
             'ic.Domain.of(age=range(17, 91))'),
        ],
        'InvalidParameterError': [
            ('a quoted file with semicolons',
             'ic.PrivateData.from_csv(csv(\'"age";"sex"\\n"30";"F"\\n\'), who)',
             "where its header has another; write delimiter=';'.",
             'ic.PrivateData.from_csv(csv(\'"age";"sex"\\n"30";"F"\\n\'), who, delimiter=\';\')'),
            ('an unknown option of a check', "ic.PrivateData.check(csv('age,sex\\n30,F\\n'), who, sep=',')",
             "options must be those of from_csv, got 'sep'; write delimiter=';'.",
             "ic.PrivateData.check(csv('age,sex\\n30,F\\n'), who, delimiter=',')"),
            ('an answer in %d', "'%d' % answer",
             'an Answer is a fraction, and must keep digits after the point', "'%d' % round(answer.count)"),
            ('an answer without digits', "f'{answer:,.0f}'",
             "got ',.0f'; write f'{answer:.3f}' for the fraction, or f'{answer.count:.0f}' for records.",
             "f'{answer.count:,.0f}'"),
            ('a quantile of labels in a format', "f'{first_seen:.1f}'",
             "a quantile must be of numbers to be read as one, got '2024-Q", 'first_seen.value'),
        ],
        'InvalidDataError': [
            ('a time in UTC', "visits('2024-03-05T06:00:42Z')",
             "declare dates(.., zone='Europe/Paris') for times with an offset such as Z",
             "visits('2024-03-05T06:00:42Z', zone='Europe/Paris')"),
            ('a column of lists',
             "ic.PrivateData.from_frame(pl.LazyFrame({'age': [30], 'sex': [['F']]}), who)",
             'sex must hold one value a record, got a column of lists or structures',
             "ic.PrivateData.from_frame(pl.LazyFrame({'age': [30], 'sex': ['F']}), who)"),
        ],
        'InfeasibleAccuracyError': [
            ('a budget that parts of a number divide', 'ic.OnlineIC(paid(), ic.Budget(0.01, 1e-9))',
             'budget must be larger for 64 equal parts of each record, got epsilon=0.01, delta=1e-09; load '
             'the table with unit=Unit(person=None, units=16), or raise epsilon.',
             'ic.OnlineIC(paid(unit=ic.Unit(person=None, units=16)), ic.Budget(0.01, 1e-9))'),
            ('a budget below any plan', 'ic.OnlineIC(small_table(), ic.Budget(1e-4, 1e-9))',
             'budget must be larger for any plan of a session, got epsilon=0.0001, delta=1e-09; raise '
             'epsilon.', 'ic.OnlineIC(small_table(), ic.Budget(0.1, 1e-9))'),
        ],
        'InvalidQueryError': [
            ('a comparison as a label', "session.answer(where(age='>30'))",
             "a comparison is asked as a text: session.answer('age > 30').", "session.answer('age > 30')"),
            ('a range as a text', "session.answer(where(age='30-50'))",
             "got age='30-50'; write between(30, 50).", 'session.answer(where(age=between(30, 50)))'),
            ('a range as a tuple', 'session.answer(where(age=(30, 50)))',
             'got a tuple; for a range write between(..), for several labels one_of(...)',
             'session.answer(where(age=between(30, 50)))'),
            ('a text without quotes in SQL', "session.answer('sex = F')",
             "got 'F'; a value takes single quotes: 'F'.", 'session.answer("sex = \'F\'")'),
            ('a second key in the place of a condition', "session.group_by('sex', 'race')",
             "where must be a condition, got 'race'; write group_by([.., 'race']).",
             "session.group_by(['sex', 'race'])"),
            ('an aggregate in the place of a condition', "session.group_by('sex', 'mean')",
             "where must be a condition, got 'mean'; write aggregate='mean'.",
             "session.group_by('sex', aggregate='mean', of='age')"),
            ('a share as an average of a CASE without ELSE',
             'session.sql("SELECT AVG(CASE WHEN sex = \'F\' THEN 1 END) FROM t")',
             'write AVG(CASE WHEN cond THEN 1 ELSE 0 END).',
             'session.sql("SELECT AVG(CASE WHEN sex = \'F\' THEN 1 ELSE 0 END) FROM t")'),
            ('a share as an average of a condition on a label that is none',
             'session.sql("SELECT AVG(sex = \'G\') FROM t")',
             "sex must be one of its 2 values ('F', 'M'), got sex='G'; see the domain.",
             'session.sql("SELECT AVG(sex = \'F\') FROM t")'),
        ],
    },
    'loading': {
        'InvalidDataError': [
            ('no columns', 'ic.PrivateData.from_records({}, who)', "give it one, {'age': [...]}",
             'ic.PrivateData.from_records({"age": [30], "sex": ["F"]}, who)'),
            ('no counts', "ic.PrivateData.from_counts({'age': [], 'sex': []}, [], who)",
             'records must be one or more, got none', 'ic.PrivateData.from_counts(people, [1, 2, 1], who)'),
            ('a frame as of polars, handed to from_records',
             'ic.PrivateData.from_records(pl.DataFrame(people), who)',
             'other tables are loaded by PrivateData.from_frame(table, domain).',
             'ic.PrivateData.from_frame(pl.DataFrame(people), who)'),
            ('an Arrow table, handed to from_records', 'ic.PrivateData.from_records(pa.table(people), who)',
             'other tables are loaded by PrivateData.from_frame(table, domain).',
             'ic.PrivateData.from_frame(pa.table(people), who)'),
            ('a lazy frame, handed to from_records', 'ic.PrivateData.from_records(pl.LazyFrame(people), who)',
             'other tables are loaded by PrivateData.from_frame(table, domain).',
             'ic.PrivateData.from_frame(pl.LazyFrame(people), who)'),
            ('a DuckDB relation, handed to from_records',
             "ic.PrivateData.from_records(duckdb.sql('SELECT 30 AS age, $$F$$ AS sex'), who)",
             'other tables are loaded by PrivateData.from_frame(table, domain).',
             "ic.PrivateData.from_frame(duckdb.sql('SELECT 30 AS age, $$F$$ AS sex'), who)"),
            ('a plain array', 'ic.PrivateData.from_records(np.array([[30, 1]]), who)',
             'records must be a mapping of columns or a structured array, got a plain array; write {name: '
             'column}.', 'load()'),
            ('a number for a table', 'ic.PrivateData.from_records(3, who)',
             'other tables are loaded by PrivateData.from_frame(table, domain).', 'load()'),
            ('a text for a table', "ic.PrivateData.from_records('people.csv', who)",
             'a CSV file is loaded by PrivateData.from_csv(path, domain), a Parquet file by from_frame.',
             "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who)"),
            ('a list of tuples', "ic.PrivateData.from_records([(30, 'F')], who)",
             'records must be a mapping of columns or a list of mappings, got a list with a tuple; write '
             '{name:', "ic.PrivateData.from_records([{'age': 30, 'sex': 'F'}], who)"),
            ('a record without a value',
             "ic.PrivateData.from_records([{'age': 30, 'sex': 'F'}, {'age': 31}], who)",
             'write None where it is missing.',
             "ic.PrivateData.from_records([{'age': 30, 'sex': 'F'}, {'age': 31, 'sex': None}], "
             "ic.Domain.of(age=range(17, 91), sex=ic.optional(['F', 'M'])))"),
            ('a column that is missing', "ic.PrivateData.from_records({'age': [30]}, who)",
             "records must have a column for every attribute, got none for sex; it has ['age'].",
             "ic.PrivateData.from_records({'age': [30], 'sex': ['F']}, who)"),
            ('a column of nearly that name', "ic.PrivateData.from_records({'Age': [30], 'sex': ['F']}, who)",
             "records must have a column for every attribute, got none for age; did you mean 'Age'.",
             "ic.PrivateData.from_records({'age': [30], 'sex': ['F']}, who)"),
            ('the same in a frame',
             "ic.PrivateData.from_frame(pl.DataFrame({'age': [30], 'gender_sex': ['F']}), who)",
             "it has ['age', 'gender_sex'].",
             "ic.PrivateData.from_frame(pl.DataFrame({'age': [30], 'gender_sex': "
             "['F']}).rename({'gender_sex': 'sex'}), who)"),
            ('two columns of one name',
             "ic.PrivateData.from_frame(pd.DataFrame([[30, 31, 'F']], columns=['age', 'age', 'sex']), who)",
             'table must have columns of distinct names, got some twice; rename them.',
             "ic.PrivateData.from_frame(pd.DataFrame([[30, 31, 'F']], columns=['age', 'was', 'sex']), who)"),
            ('an index that is no column',
             "ic.PrivateData.from_frame(pd.DataFrame(people).set_index('sex'), who)",
             'it is the index, make it a column by table.reset_index().',
             "ic.PrivateData.from_frame(pd.DataFrame(people).set_index('sex').reset_index(), who)"),
            ('columns of unequal length', 'load(age=[30])', 'give every column one value a record.',
             'load(age=[30, 31, 32])'),
            ('no records', 'load(age=[], sex=[])', 'records must be one or more, got none; load some.',
             'load()'),
            ('an empty frame', 'ic.PrivateData.from_frame(pl.DataFrame(people).head(0), who)',
             'records must be one or more, got none; load some.',
             'ic.PrivateData.from_frame(pl.DataFrame(people), who)'),
            ('a column that is one number', 'load(age=3)', 'give a list with one value a record.',
             "load(age=[3, 4, 5], domain=ic.Domain.of(age=range(0, 91), sex=['F', 'M']))"),
            ('a column of two dimensions', 'load(age=np.ones((3, 2), int))',
             'age must be a column of one dimension, got 2; give one value a record.',
             'load(age=np.full(3, 30))'),
            ('a text for a column', "load(sex='FMF')", 'give a list with one value a record.',
             "load(sex=list('FMF'))"),
            ('a label that is not listed', "load(sex=['F', odd, 'M'])",
             'list it, give it in synonyms={...}, declare other=True, or clean the table.',
             "load(sex=['F', odd, 'M'], domain=ic.Domain.of(age=range(17, 91), sex=ic.categorical(['F', "
             "'M'], other=True)))"),
            ('a label in another case', "load(sex=['F', 'm', 'M'])",
             'list it, give it in synonyms={...}, declare other=True, or clean the table.',
             "load(sex=['F', 'm', 'M'], domain=ic.Domain.of(age=range(17, 91), sex=ic.categorical(['F', "
             "'M'], synonyms={'m': 'M'})))"),
            ('a label with a blank', "load(sex=['F', 'M ', 'M'])",
             'list it, give it in synonyms={...}, declare other=True, or clean the table.',
             "load(sex=['F', 'M ', 'M'], domain=ic.Domain.of(age=range(17, 91), sex=ic.categorical(['F', "
             "'M'], synonyms={'M ': 'M'})))"),
            ('a gap', "load(sex=['F', None, 'M'])", 'declare it optional(...).',
             "load(sex=['F', None, 'M'], domain=ic.Domain.of(age=range(17, 91), sex=ic.optional(['F', "
             "'M'])))"),
            ('NaN in a column of whole numbers', 'load(age=[30.0, math.nan, 31.0])',
             'declare it optional(...).',
             'load(age=[30.0, math.nan, 31.0], domain=ic.Domain.of(age=ic.optional(range(17, 91)), '
             "sex=['F', 'M']))"),
            ('pandas.NA',
             "ic.PrivateData.from_frame(pd.DataFrame({'age': pd.array([30, None], dtype='Int64'), 'sex': "
             "['F', 'M']}), who)", 'declare it optional(...).',
             "ic.PrivateData.from_frame(pd.DataFrame({'age': pd.array([30, None], dtype='Int64'), 'sex': "
             "['F', 'M']}), ic.Domain.of(age=ic.optional(range(17, 91)), sex=['F', 'M']))"),
            ('a whole number out of range', 'load(age=[30, odd_number, 31])',
             'widen the range, declare clip=True, or clean the table.',
             'load(age=[30, odd_number, 31], domain=ic.Domain.of(age=ic.integers(17, 90, clip=True), '
             "sex=['F', 'M']))"),
            ('a fraction among whole numbers', 'load(age=[30.5, 31.0, 32.0])',
             "optional(.., missing=['NA']) for gaps.", 'load(age=np.floor([30.5, 31.0, 32.0]))'),
            ('whole numbers as texts', "load(age=['30', '31', '32'])",
             "optional(.., missing=['NA']) for gaps.", "load(age=list(map(int, ['30', '31', '32'])))"),
            ('booleans for whole numbers', 'load(age=[True, False, True])',
             "optional(.., missing=['NA']) for gaps.",
             "load(age=[1, 0, 1], domain=ic.Domain.of(age=range(0, 91), sex=['F', 'M']))"),
            ('numbers for texts', 'load(sex=[0, 1, 0])',
             "convert the column, or name its words for gaps: optional(.., missing=['NA']).",
             "load(sex=[0, 1, 0], domain=ic.Domain.of(age=range(17, 91), sex=ic.categorical(['F', 'M'], "
             "synonyms={0: 'F', 1: 'M'})))"),
            ('texts for booleans',
             "ic.PrivateData.from_records({'ok': ['yes', 'no']}, ic.Domain.of(ok=[True, False]))",
             "convert the column, or name its words for gaps: optional(.., missing=['NA']).",
             "ic.PrivateData.from_records({'ok': ['yes', 'no']}, ic.Domain.of(ok=ic.categorical([True, "
             "False], synonyms={'yes': True, 'no': False})))"),
            ('a number beyond the bins',
             "ic.PrivateData.from_records({'pay': [10.0, odd_number]}, ic.Domain.of(pay=ic.binned([0, 20, "
             '100])))', 'add edges (inf may end them), declare clip=True, or clean the table.',
             "ic.PrivateData.from_records({'pay': [10.0, odd_number]}, ic.Domain.of(pay=ic.binned([0, 20, "
             '100], clip=True)))'),
            ('the last edge itself',
             "ic.PrivateData.from_records({'pay': [10.0, 100.0]}, ic.Domain.of(pay=ic.binned([0, 20, 100])))",
             'add edges (inf may end them), declare clip=True, or clean the table.',
             "ic.PrivateData.from_records({'pay': [10.0, 100.0]}, ic.Domain.of(pay=ic.binned([0, 20, "
             'math.inf])))'),
            ('infinity among numbers',
             "ic.PrivateData.from_records({'pay': [10.0, math.inf]}, ic.Domain.of(pay=ic.binned([0, 20, "
             '100])))', 'add edges (inf may end them), declare clip=True, or clean the table.',
             "ic.PrivateData.from_records({'pay': [10.0, math.inf]}, ic.Domain.of(pay=ic.binned([0, 20, "
             '100], clip=True)))'),
            ('texts for numbers',
             "ic.PrivateData.from_records({'pay': ['a', 'b']}, ic.Domain.of(pay=ic.binned([0, 20, 100])))",
             "optional(.., missing=['NA']) for gaps.",
             "ic.PrivateData.from_records({'pay': [1, 2]}, ic.Domain.of(pay=ic.binned([0, 20, 100])))"),
            ('a fraction where bins are of whole numbers',
             "ic.PrivateData.from_records({'pay': [1.5, 2.0]}, ic.Domain.of(pay=ic.binned([0, 20, 100], "
             'integer=True)))', "optional(.., missing=['NA']) for gaps.",
             "ic.PrivateData.from_records({'pay': [1.5, 2.0]}, ic.Domain.of(pay=ic.binned([0, 20, 100])))"),
            ('complex numbers',
             "ic.PrivateData.from_records({'pay': [1j, 2j]}, ic.Domain.of(pay=ic.binned([0, 20, 100])))",
             "optional(.., missing=['NA']) for gaps.",
             "ic.PrivateData.from_records({'pay': np.abs([1j, 2j])}, ic.Domain.of(pay=ic.binned([0, 20, "
             '100])))'),
            ('a date outside', "visits('2023-12-31')",
             'widen the dates, declare clip=True, or clean the table.', "visits('2023-12-31', clip=True)"),
            ('a date in another form', "visits('05.03.2024')",
             "optional(.., missing=['NA']) for gaps, or convert the column.", "visits('2024-03-05')"),
            ('a date that is none', "visits('2024-02-30')",
             "optional(.., missing=['NA']) for gaps, or convert the column.", "visits('2024-02-29')"),
            ('a month where days are counted', "visits('2024-03', by='day')",
             "optional(.., missing=['NA']) for gaps, or convert the column.",
             "visits('2024-03', by='month')"),
            ('a gap among dates', 'visits(None)', 'declare it optional(...).',
             "ic.PrivateData.from_records({'seen': [None]}, "
             "ic.Domain.of(seen=ic.optional(ic.dates('2024-01', '2024-12', by='month'))))"),
            ('a time with an offset', "visits('2024-03-05T10:00+02:00')",
             "declare dates(.., zone='Europe/Paris') for times with an offset such as Z, dates(..,",
             "visits('2024-03-05T10:00+02:00', zone='Europe/Paris')"),
            ('numbers for dates', 'visits(20240305)',
             "optional(.., missing=['NA']) for gaps, or convert the column.",
             "visits('20240305'[:4] + '-03-05')"),
            ('many columns at once', "load(age=[30, odd_number, 31], sex=['F', None, 'M'])",
             'widen the range, declare clip=True, or clean the table.',
             "load(age=[30, odd_number, 31], sex=['F', None, 'M'], domain=ic.Domain.of(age=ic.integers(17, "
             "90, clip=True), sex=ic.optional(['F', 'M'])))"),
            ('counts that are too few', 'ic.PrivateData(np.ones(3, int), who)',
             'order the cells as the domain does.', 'ic.PrivateData(np.ones(who.size, int), who)'),
            ('counts that are fractions', 'ic.PrivateData(np.full(who.size, 1.5), who)',
             'counts must be integers, got dtype float64; round them first.',
             'ic.PrivateData(np.rint(np.full(who.size, 1.5)).astype(int), who)'),
            ('a negative count', 'ic.PrivateData(-np.ones(who.size, int), who)',
             'counts must be >= 0, got a negative count; correct it.',
             'ic.PrivateData(np.ones(who.size, int), who)'),
            ('counts that are all 0', 'ic.PrivateData(np.zeros(who.size, int), who)',
             'records must be one or more, got none; load some.',
             'ic.PrivateData(np.ones(who.size, int), who)'),
            ('counts above 2^53', 'ic.PrivateData(np.full(who.size, 2**52), who)',
             'counts must sum to at most 2^53, got more; count coarser records.',
             'ic.PrivateData(np.full(who.size, 2**40), who)'),
            ('cells and counts of unequal length', 'ic.PrivateData.from_counts(people, [1, 2], who)',
             'give every row its count.', 'ic.PrivateData.from_counts(people, [1, 2, 3], who)'),
            ('a negative count of a cell', 'ic.PrivateData.from_counts(people, [1, 2, -3], who)',
             'counts must be >= 0, got a negative count; correct it.',
             'ic.PrivateData.from_counts(people, [1, 2, 3], who)'),
            ('text for counts', "ic.PrivateData.from_counts(people, ['1', '2', '3'], who)",
             'counts must be integers, got dtype <U1; round them first.',
             'ic.PrivateData.from_counts(people, [1, 2, 3], who)'),
        ],
        'InvalidParameterError': [
            ('columns, handed to from_frame', 'ic.PrivateData.from_frame(people, who)',
             'columns and lists of records go to from_records, a database connection to from_dbapi.',
             'ic.PrivateData.from_records(people, who)'),
            ('a list of records, handed to from_frame',
             "ic.PrivateData.from_frame([{'age': 30, 'sex': 'F'}], who)",
             'columns and lists of records go to from_records, a database connection to from_dbapi.',
             "ic.PrivateData.from_records([{'age': 30, 'sex': 'F'}], who)"),
            ('a connection, handed to from_frame', 'ic.PrivateData.from_frame(database, who)',
             'columns and lists of records go to from_records, a database connection to from_dbapi.',
             "ic.PrivateData.from_dbapi(database, 'people', who)"),
            ('a CSV file, handed to from_frame', "ic.PrivateData.from_frame(csv('age,sex\\n30,F\\n'), who)",
             'a CSV file goes to from_csv.', "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who)"),
            ('a file that is not there, handed to from_frame',
             "ic.PrivateData.from_frame(folder / 'none.parquet', who)",
             'No such file or directory; correct it, or let this user read it.',
             'ic.PrivateData.from_frame(parquet, who)'),
            ('no domain', "ic.PrivateData.from_records(people, {'age': range(17, 91)})",
             'domain must be a Domain, got a dict; write Domain.of(...).',
             "ic.PrivateData.from_records(people, ic.Domain.of({'age': range(17, 91)}))"),
        ],
        'TooLargeError': [
            ('a domain that is too large for counts',
             'ic.PrivateData(np.ones(3, int), ic.Domain.of(a=10**5, b=10**5))',
             'load records with from_records, from_counts or from_csv, or project it to fewer attributes.',
             "ic.PrivateData.from_records({'a': [1], 'b': [2]}, ic.Domain.of(a=10**5, b=10**5))"),
            ('an attribute with too many cells',
             "ic.PrivateData.from_records({'a': [1]}, ic.Domain.of(a=10**13))",
             'a must have at most 1,099,511,627,776 cells, got 10,000,000,000,000; bin it.',
             "ic.PrivateData.from_records({'a': [1]}, ic.Domain.of(a=ic.binned([0, 10**3, 10**6, 10**9], "
             'integer=True)))'),
        ],
    },
    'CSV files': {
        'InvalidDataError': [
            ('a header without a column', "ic.PrivateData.from_csv(csv('Age,sex\\n30,F\\n'), who)",
             "the file must have one column for age, got 0; did you mean 'Age'.",
             "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who)"),
            ('a header that names a column twice',
             "ic.PrivateData.from_csv(csv('age,age,sex\\n30,31,F\\n'), who)",
             'the file must have one column for age, got 2; rename one of them.',
             "ic.PrivateData.from_csv(csv('age,was,sex\\n30,31,F\\n'), who)"),
            ('an empty file', "ic.PrivateData.from_csv(csv(''), who)",
             'the file must have one column for age, got 0; give it a header line.',
             "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who)"),
            ('a header alone', "ic.PrivateData.from_csv(csv('age,sex\\n'), who)",
             'records must be one or more, got none; load some.',
             "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who)"),
            ('a line with too few fields', "ic.PrivateData.from_csv(csv('age,sex\\n30\\n'), who)",
             'quote what holds a delimiter.', "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who)"),
            ('a line with too many fields', "ic.PrivateData.from_csv(csv(f'age,sex\\n30,F,{odd}\\n'), who)",
             'quote what holds a delimiter.',
             "ic.PrivateData.from_csv(csv(f'age,sex,note\\n30,F,{odd}\\n'), who)"),
            ('a field that is empty', "ic.PrivateData.from_csv(csv('age,sex\\n,F\\n'), who)",
             'declare it optional(...).',
             "ic.PrivateData.from_csv(csv('age,sex\\n,F\\n'), ic.Domain.of(age=ic.optional(range(17, 91)), "
             "sex=['F', 'M']))"),
            ('a word for missing values', "ic.PrivateData.from_csv(csv('age,sex\\nNA,F\\n'), who)",
             "optional(.., missing=['NA']) for gaps.",
             "ic.PrivateData.from_csv(csv('age,sex\\nNA,F\\n'), ic.Domain.of(age=ic.optional(range(17, "
             "91), missing=['NA']), sex=['F', 'M']))"),
            ('a label that is not listed', "ic.PrivateData.from_csv(csv(f'age,sex\\n30,{odd}\\n'), who)",
             'list it, give it in synonyms={...}, declare other=True, or clean the table.',
             "ic.PrivateData.from_csv(csv(f'age,sex\\n30,{odd}\\n'), ic.Domain.of(age=range(17, 91), "
             "sex=ic.categorical(['F', 'M'], other=True)))"),
            ('a blank behind the delimiter',
             "ic.PrivateData.from_csv(csv('age,sex\\n30, F\\n'), who, skipinitialspace=False)",
             'list it, give it in synonyms={...}, declare other=True, or clean the table.',
             "ic.PrivateData.from_csv(csv('age,sex\\n30, F\\n'), who, skipinitialspace=True)"),
            ('decimal commas',
             'ic.PrivateData.from_csv(csv(\'pay\\n"9,5"\\n\'), ic.Domain.of(pay=ic.binned([0, 20])))',
             "optional(.., missing=['NA']) for gaps.",
             'ic.PrivateData.from_csv(csv(\'pay\\n"9,5"\\n\'), ic.Domain.of(pay=ic.binned([0, 20])), '
             "decimal=',')"),
            ('a number with separators',
             'ic.PrivateData.from_csv(csv(\'pay\\n"1,000"\\n\'), ic.Domain.of(pay=ic.binned([0, 2000])))',
             "optional(.., missing=['NA']) for gaps.",
             "ic.PrivateData.from_csv(csv('pay\\n1000\\n'), ic.Domain.of(pay=ic.binned([0, 2000])))"),
            ('bytes of another encoding',
             "ic.PrivateData.from_csv(csv('town\\nK\\xf6ln\\n', 'latin-1'), ic.Domain.of(town=['K\\xf6ln']))",
             'name its encoding=, or convert it.',
             "ic.PrivateData.from_csv(csv('town\\nK\\xf6ln\\n', 'latin-1'), "
             "ic.Domain.of(town=['K\\xf6ln']), encoding='latin-1')"),
            ('a column of counts that is not there',
             "ic.PrivateData.from_csv(csv('age,sex,n\\n30,F,2\\n'), who, count='m')",
             "it has ['age', 'sex', 'n'].",
             "ic.PrivateData.from_csv(csv('age,sex,n\\n30,F,2\\n'), who, count='n')"),
            ('a count that is none',
             "ic.PrivateData.from_csv(csv(f'age,sex,n\\n30,F,{odd}\\n'), who, count='n')",
             'n must hold whole numbers >= 0, got other values; correct the column.',
             "ic.PrivateData.from_csv(csv('age,sex,n\\n30,F,2\\n'), who, count='n')"),
        ],
        'InvalidParameterError': [
            ('another delimiter', "ic.PrivateData.from_csv(csv('age;sex\\n30;F\\n'), who)",
             "got ',', where its header has another; write delimiter=';'.",
             "ic.PrivateData.from_csv(csv('age;sex\\n30;F\\n'), who, delimiter=';')"),
            ('another delimiter between quotes',
             'ic.PrivateData.from_csv(csv(\'"age";"sex"\\n30;"F"\\n\'), who)',
             "got ',', where its header has another; write delimiter=';'.",
             'ic.PrivateData.from_csv(csv(\'"age";"sex"\\n30;"F"\\n\'), who, delimiter=\';\')'),
            ('a report under another delimiter', "ic.PrivateData.check(csv('age;sex\\n30;F\\n'), who)",
             "got ',', where its header has another; write delimiter=';'.",
             "ic.PrivateData.from_csv(csv('age;sex\\n30;F\\n'), who, delimiter=';')"),
            ('a delimiter of two characters',
             "ic.PrivateData.from_csv(csv('age;sex\\n30;F\\n'), who, delimiter=';;')",
             "write delimiter=';' or '\\t'.",
             "ic.PrivateData.from_csv(csv('age;sex\\n30;F\\n'), who, delimiter=';')"),
            ('an encoding that is none',
             "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who, encoding='utf-99')",
             "write 'utf-8' or 'latin-1'.",
             "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who, encoding='utf-8')"),
            ('a decimal point of another kind',
             "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who, decimal=';')",
             "decimal must be '.' or ',', got ';'; choose one.",
             "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who, decimal='.')"),
            ('a number among the words for missing values',
             "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who, missing=[99])",
             "write missing=['NA', '?'].",
             "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who, missing=['NA', '?'])"),
            ('a file that is not there', "ic.PrivateData.from_csv(folder / 'nobody.csv', who)",
             'No such file or directory; correct it, or let this user read it.',
             "ic.PrivateData.from_csv(csv('age,sex\\n30,F\\n'), who)"),
        ],
    },
    'databases': {
        'InvalidParameterError': [
            ('an engine for a connection', "ic.PrivateData.from_dbapi('sqlite://', 'people', who)",
             "SQLAlchemy's engine has one: engine.raw_connection().",
             "ic.PrivateData.from_dbapi(database, 'people', who)"),
            ('a statement for a table', "ic.PrivateData.from_dbapi(database, 'SELECT * FROM people', who)",
             'for a condition or a join make a view.',
             "database.execute('CREATE VIEW IF NOT EXISTS adults AS SELECT * FROM people'); "
             "ic.PrivateData.from_dbapi(database, 'adults', who)"),
            ('a quote that is none', "ic.PrivateData.from_dbapi(database, 'people', who, quote='!')",
             "quote must be '\"', '`' or '[', got quote='!'.",
             "ic.PrivateData.from_dbapi(database, 'people', who, quote='\"')"),
        ],
        'InvalidDataError': [
            ('a table that is not there', "ic.PrivateData.from_dbapi(database, 'peeple', who)",
             'see table and quote, and roll back', "ic.PrivateData.from_dbapi(database, 'people', who)"),
            ('a column that is not there',
             "ic.PrivateData.from_dbapi(database, 'people', ic.Domain.of(agee=range(17, 91)))",
             "table must have one column for every attribute, got 0 for agee; did you mean 'age'.",
             "ic.PrivateData.from_dbapi(database, 'people', ic.Domain.of(age=range(17, 91)))"),
            ('a value outside',
             "ic.PrivateData.from_dbapi(database, 'people', ic.Domain.of(age=range(40, 91)))",
             'widen the range, declare clip=True, or clean the table.',
             "ic.PrivateData.from_dbapi(database, 'people', ic.Domain.of(age=ic.integers(40, 90, "
             'clip=True)))'),
        ],
    },
    'checking a table': {
        'InvalidParameterError': [
            ('a plain text array', 'ic.PrivateData.check(np.array(["F"]), who)', 'a list of records',
             'ic.PrivateData.check([{"age": 30, "sex": "F"}], who)'),
            ('a number for a table', 'ic.PrivateData.check(3, who)',
             'table must be a mapping of columns, a list of records, a data frame, a structured array or',
             'ic.PrivateData.check(people, who)'),
            ('no domain', 'ic.PrivateData.check(people, None)',
             'domain must be a Domain, got a NoneType; write Domain.of(...).',
             'ic.PrivateData.check(people, who)'),
            ('a number of lines below 0', 'ic.PrivateData.check(people, who).curator_report(lines=-1)',
             'lines must be an integer >= 1, got lines=-1; None shows all.',
             'ic.PrivateData.check(people, who).curator_report(lines=None)'),
        ],
        'TypeError': [
            ('a report in a pickle', 'pickle.dumps(ic.PrivateData.check(people, who))',
             'TableReport cannot be copied or pickled: a copy would hold private values; keep repr(report).',
             'ic.PrivateData.check(people, who).curator_report()'),
        ],
    },
    'domains': {
        'InvalidDomainError': [
            ('two ends for a range', 'ic.Domain.of(age=(17, 90))',
             'write range(17, 91) for all integers between, or [17, 90] for two labels.',
             'ic.Domain.of(age=range(17, 91))'),
            ('the same in a file', 'ic.Domain.from_json(\'{"age": [17, 90]}\')',
             'write {"range": [17, 90]} or {"labels": [17, 90]}.',
             'ic.Domain.from_json(\'{"age": {"range": [17, 90]}}\')'),
            ('a range with steps', 'ic.Domain.of(age=range(0, 90, 10))',
             'age must be a range of step 1, got range(0, 90, 10); list the labels instead.',
             'ic.Domain.of(age=list(range(0, 90, 10)))'),
            ('an empty range', 'ic.Domain.of(age=range(90, 17))',
             'range must hold at least one integer, got range(90, 17); raise its end.',
             'ic.Domain.of(age=range(17, 91))'),
            ('a size of 0', 'ic.Domain.of(age=0)', 'age must have a size >= 1, got 0; give it a value.',
             'ic.Domain.of(age=1)'),
            ('a set of labels', "ic.Domain.of(sex={'F', 'M'})",
             "write a list such as ['F', 'M'], in an order of its own, or range(17, 91).",
             "ic.Domain.of(sex=['F', 'M'])"),
            ('a text for labels', "ic.Domain.of(sex='FM')",
             "write a list such as ['F', 'M'], in an order of its own, or range(17, 91).",
             "ic.Domain.of(sex=['F', 'M'])"),
            ('no labels', 'ic.Domain.of(sex=[])', 'list what the column may hold.',
             "ic.Domain.of(sex=['F'])"),
            ('labels of two types', "ic.Domain.of(sex=['F', 1])", 'convert them to one type.',
             "ic.Domain.of(sex=['F', '1'])"),
            ('labels that are fractions', 'ic.Domain.of(pay=[0.5, 1.0])', 'write binned([..]) for numbers.',
             'ic.Domain.of(pay=ic.binned([0.5, 1.0, 1.5]))'),
            ('None among labels', "ic.Domain.of(sex=['F', None])",
             'leave None out, and declare optional([..]).', "ic.Domain.of(sex=ic.optional(['F']))"),
            ('a label twice', "ic.Domain.of(sex=['F', 'F'])",
             "labels must be distinct, got 'F' twice; remove one.", "ic.Domain.of(sex=['F', 'M'])"),
            ('a fraction for a size', 'ic.Domain.of(age=2.5)',
             "write a list such as ['F', 'M'], in an order of its own, or range(17, 91).",
             'ic.Domain.of(age=2)'),
            ('edges that fall', 'ic.binned([10, 0])',
             'sort them, remove repeats, and write inf where there is no end.', 'ic.binned([0, 10])'),
            ('one edge', 'ic.binned([0])', 'sort them, remove repeats, and write inf where there is no end.',
             'ic.binned([0, math.inf])'),
            ('NaN among edges', 'ic.binned([0, math.nan])',
             'sort them, remove repeats, and write inf where there is no end.', 'ic.binned([0, math.inf])'),
            ('edges that are texts', "ic.binned(['0', '1'])", 'write e.g. binned([0, 20, 35, 50]).',
             'ic.binned([0, 1])'),
            ('a number for edges', 'ic.binned(10)', 'write e.g. binned([0, 20, 35, 50]).',
             'ic.binned([0, 10])'),
            ('fractions as edges of whole numbers', 'ic.binned([0, 9.5], integer=True)',
             'round it up, or leave integer out.', 'ic.binned([0, 10], integer=True)'),
            ('a fraction as the end of integers', 'ic.integers(17, 90.5)',
             'integers must have integers as ends, got 17 and 90.5; write integers(17, 90).',
             'ic.integers(17, 90)'),
            ('integers backwards', 'ic.integers(90, 17)',
             'integers must run upwards, got 90 to 17; write integers(17, 90).', 'ic.integers(17, 90)'),
            ('dates backwards', "ic.dates('2024-12', '2024-01', by='month')",
             'dates must run forwards, got 2024-12 to 2024-01; swap the ends.',
             "ic.dates('2024-01', '2024-12', by='month')"),
            ('a unit of time that is none', "ic.dates('2024-01', '2024-12', by='fortnight')",
             "by must be one of year, quarter, month, week, day, hour, minute, got 'fortnight'; choose one.",
             "ic.dates('2024-01', '2024-12', by='week')"),
            ('a date in another form', "ic.dates('01.02.2024', '2024-12')",
             "first must be a date such as '2024-03-05' or '2024-03' without time zone, got '01.02.2024'; "
             'write', "ic.dates('2024-02-01', '2024-12')"),
            ('a zone that is none', "ic.dates('2024-01', '2024-12', zone='Paris')",
             'see zoneinfo.available_timezones().', "ic.dates('2024-01', '2024-12', zone='Europe/Paris')"),
            ('a synonym for a label that is none', "ic.categorical(['F', 'M'], synonyms={'male': 'Man'})",
             'write {value: label} with str labels of the list.',
             "ic.categorical(['F', 'M'], synonyms={'male': 'M'})"),
            ('synonyms as a list', "ic.categorical(['F', 'M'], synonyms=['male'])",
             "synonyms must be a mapping of value to label, got ['male']; write {'male': 'M'}.",
             "ic.categorical(['F', 'M'], synonyms={'male': 'M'})"),
            ('a name for others that is a label', "ic.categorical(['F', 'M'], other='M')",
             "other must be True or a name that is no label, got 'M'; choose another.",
             "ic.categorical(['F', 'M'], other='neither')"),
            ('a number for others', "ic.categorical(['F', 'M'], other=3)",
             'other must be True, False or a name, got 3; write other=True.',
             "ic.categorical(['F', 'M'], other=True)"),
            ('a text for the words for missing values', "ic.optional(['F', 'M'], missing=9)",
             "missing must be a list of texts, got 9; write ['?', 'NA'].",
             "ic.optional(['F', 'M'], missing=['9'])"),
            ('a word for missing values that is a label', "ic.optional(['F', 'M'], missing=['M'])",
             "labels, synonyms and texts of missing values must be distinct, got 'M' twice; remove one.",
             "ic.optional(['F', 'M'], missing=['?'])"),
            ('an attribute without a name', "ic.Domain.of({'': 3})",
             "attribute names must be distinct non-empty strings, got ['']; rename them.",
             "ic.Domain.of({'a': 3})"),
            ('no attribute', 'ic.Domain.of()', 'write Domain.of(age=range(17, 91)).', 'ic.Domain.of(a=3)'),
            ('an attribute twice', "ic.Domain.of({'a': 3}, a=3)",
             'attribute names must be distinct, got one twice; remove one.', "ic.Domain.of({'a': 3}, b=3)"),
            ('a list of kinds', 'ic.Domain.of([3, 4])', "write {'age': range(17, 91)}, or keywords.",
             'ic.Domain.of(a=3, b=4)'),
            ('a file that is no JSON', "ic.Domain.from_json('age: 3')",
             'write {"age": {"range": [17, 90]}, "sex": ["F", "M"]}.', 'ic.Domain.from_json(\'{"age": 3}\')'),
            ('a file with a list', "ic.Domain.from_json('[3]')",
             'write {"age": {"range": [17, 90]}, "sex": ["F", "M"]}.', 'ic.Domain.from_json(\'{"age": 3}\')'),
            ('two kinds for one attribute',
             'ic.Domain.from_json(\'{"age": {"range": [1, 9], "labels": [1]}}\')',
             "beside 'dates' 'by', 'clip', 'epoch', 'formats', 'zone'.",
             'ic.Domain.from_json(\'{"age": {"range": [1, 9]}}\')'),
            ('a word in a file that is none',
             'ic.Domain.from_json(\'{"age": {"range": [1, 9], "clipped": true}}\')',
             "age must have beside 'range' one of 'clip', 'clock', 'round', 'written', 'missing', "
             "'others', 'column', got 'clipped'; did you mean 'clip'.",
             'ic.Domain.from_json(\'{"age": {"range": [1, 9], "clip": true}}\')'),
            ('a range in a file with three ends', 'ic.Domain.from_json(\'{"age": {"range": [1, 9, 2]}}\')',
             'write [17, 90], both included.', 'ic.Domain.from_json(\'{"age": {"range": [1, 9]}}\')'),
            ('a switch in a file that is a text',
             'ic.Domain.from_json(\'{"age": {"range": [1, 9], "clip": "yes"}}\')',
             "age must give true or false for 'clip', got 'yes'; write true.",
             'ic.Domain.from_json(\'{"age": {"range": [1, 9], "clip": true}}\')'),
            ('null for a kind', 'ic.Domain.from_json(\'{"age": null}\')',
             'write ["F", "M"], {"range": [17, 90]}, {"edges": [0, 20, 35]} or {"dates": [first, last]}.',
             'ic.Domain.from_json(\'{"age": 90}\')'),
            ('a name twice in a file', 'ic.Domain.from_json(\'{"age": 3, "age": 4}\')',
             'the names in a domain file must be distinct, got one twice; remove one.',
             'ic.Domain.from_json(\'{"age": 3, "sex": 4}\')'),
        ],
        'InvalidQueryError': [
            ('an attribute that is not there', "domain.project('age', 'sexx')",
             "attribute must be one of the domain's, got 'sexx'; did you mean 'sex'?",
             "domain.project('age', 'sex')"),
        ],
    },
    'asking in Python': {
        'InvalidQueryError': [
            ('an attribute that is not there', 'session.answer(where(agee=30))',
             "attribute must be one of the domain's, got 'agee'; did you mean 'age'?",
             'session.answer(where(age=30))'),
            ('a label that is meant for another', "session.answer(where(sex='Female'))",
             "sex must be one of its 2 values ('F', 'M'), got sex='Female'; did you mean 'F'?",
             "session.answer(where(sex='F'))"),
            ('a label in another case', "session.answer(where(race='white'))",
             "race must be one of its 3 values ('White', 'Black', 'Other'), got race='white'; did you mean",
             "session.answer(where(race='White'))"),
            ('a label that is far from all', "session.answer(where(race='Q'))",
             "race must be one of its 3 values ('White', 'Black', 'Other'), got race='Q'; see the domain.",
             "session.answer(where(race='Other'))"),
            ('a number outside', 'session.answer(where(age=99))',
             'age must be an integer in [17, 90], got age=99; ask inside the domain.',
             'session.answer(where(age=90))'),
            ('a fraction for a whole number', 'session.answer(where(age=30.5))',
             'age must be an integer in [17, 90], got age=30.5; ask inside the domain.',
             'session.answer(where(age=30))'),
            ('a text for a number', "session.answer(where(age='30'))",
             "age must be an integer in [17, 90], got age='30'; write 30 without quotes.",
             'session.answer(where(age=30))'),
            ('a range that begins outside', 'session.answer(where(age=between(0, 30)))',
             'write between(17, 30), or at_least or below for one side.',
             'session.answer(where(age=between(17, 30)))'),
            ('a range that ends outside', 'session.answer(where(age=between(60, 120)))',
             'write between(60, 90), or at_least or below for one side.',
             'session.answer(where(age=between(60, 90)))'),
            ('an end outside, one side', 'session.answer(where(age=below(200)))',
             'write below(91), or at_least or below for one side.', 'session.answer(where(age=below(91)))'),
            ('a range of labels', "session.answer(where(race=between('Black', 'White')))",
             'write one_of(...) for labels.', "session.answer(where(race=one_of('Black', 'White')))"),
            ('a range of labels by numbers', 'session.answer(where(race=between(0, 1)))',
             'race must be ordered for a range, got labels without order; write one_of(...).',
             "session.answer(where(race=one_of('White', 'Black')))"),
            ('the missing value, where there is none', 'session.answer(where(age=None))',
             'declare it optional(..) when the domain is built, or ask for a value.',
             'session.answer(where(educ=None))'),
            ('a list of labels', "session.answer(where(race=['White', 'Black']))",
             'for several labels write one_of(*labels), for a range between(..), for missing values None.',
             "session.answer(where(race=one_of('White', 'Black')))"),
            ('a set of labels', "session.answer(where(race={'White', 'Black'}))",
             'for several labels write one_of(...), for missing values None.',
             "session.answer(where(race=one_of('White', 'Black')))"),
            ('a range of Python', 'session.answer(where(age=range(20, 30)))',
             'for a range write span(20, 30), for missing values None.',
             'session.answer(where(age=span(20, 30)))'),
            ('a tuple for a range', 'session.answer(where(age=(20, 30)))',
             'for a range write between(..), for several labels one_of(...), for missing values None.',
             'session.answer(where(age=between(20, 30)))'),
            ('a slice for a range', 'session.answer(where(age=slice(20, 30)))',
             'for a range write span(..) or between(..), for missing values None.',
             'session.answer(where(age=span(20, 30)))'),
            ('one_of of a list', "session.answer(where(race=one_of(['White', 'Black'])))",
             'for several labels write one_of(*labels), for a range between(..), for missing values None.',
             "session.answer(where(race=one_of(*['White', 'Black'])))"),
            ('one_of of nothing', 'one_of()',
             "one_of must list one or more labels, got none; write one_of('a', 'b').", "one_of('White')"),
            ('NaN for an end', 'between(math.nan, 30)', "write a number, or a date as '2024-03'.",
             'at_least(30)'),
            ('a text for an end of numbers', "session.answer(where(age=at_least('thirty')))",
             'write one_of(...) for labels.', 'session.answer(where(age=at_least(30)))'),
            ('None for an end', 'between(None, 30)', 'write at_least(..) or below(..) for one end alone.',
             'below(31)'),
            ('a single number of bins', 'session.answer(where(hours=38))',
             'hours must be asked by a range on its bin edges, got hours=38; write e.g. span(35, 40).',
             'session.answer(where(hours=span(35, 40)))'),
            ('a cut between edges', 'session.answer(where(hours=at_least(37)))',
             'the nearest edges are 35 and 40.', 'session.answer(where(hours=at_least(35)))'),
            ('a closed end at an edge', 'session.answer(where(hours=between(20, 40)))',
             'write span(20, 40), or declare integer=True for whole numbers.',
             'session.answer(where(hours=span(20, 40)))'),
            ('a date between cells', "session.answer(where(seen=between('2024-02', '2024-06')))",
             "write between or span with quarters such as '2024-Q1'.",
             "session.answer(where(seen=between('2024-01', '2024-06')))"),
            ('a date outside', "session.answer(where(seen=at_least('2023')))",
             'for a one-sided condition write at_least or below with an end inside.',
             "session.answer(where(seen=at_least('2024')))"),
            ('a date for many cells', "session.answer(where(seen='2024'))", "write between('2024', '2024').",
             "session.answer(where(seen=between('2024', '2024')))"),
            ('a word for a date', "session.answer(where(seen='spring'))",
             "write a date, or between('2024-Q1', '2024-Q4').", "session.answer(where(seen='2024-Q1'))"),
            ('a number for a date', 'session.answer(where(seen=2024))',
             "write a date, or between('2024-Q1', '2024-Q4').",
             "session.answer(where(seen=between('2024', '2024')))"),
            ('positional conditions', "where('age')",
             'write where(attribute=condition), or ask the text alone: answer(text).', "where({'age': 30})"),
            ('a condition and a truth value', 'where(age=30) & True',
             'a query must be combined with a query, got a bool; write where(...).',
             "where(age=30) & where(sex='F')"),
            ('weights above 1', 'weights([2.0] * 3)',
             'weights must lie in [0, 1], got weights[0]=2.0; write rescaled(...).', 'weights([1.0] * 3)'),
            ('weights below 0', 'weights([-0.5] * 3)',
             'weights must lie in [0, 1], got weights[0]=-0.5; write rescaled(...).',
             'ic.rescaled(race=[-0.5, -0.5, -0.5])'),
            ('NaN among weights', 'weights([math.nan] * 3)', 'give every value a finite one.',
             'weights([0.0] * 3)'),
            ('weights of another length', 'session.answer(where(race=weights([0.5] * 4)))',
             'give one for each of its values.', 'session.answer(where(race=weights([0.5] * 3)))'),
            ('a matrix for weights', 'weights(np.ones((2, 2)))', 'write dense(..) for weights of all cells.',
             'weights(np.ones(4))'),
            ('texts for weights', "weights(['a'])", 'give one number in [0, 1] a value.', 'weights([1.0])'),
            ('an array of another size', 'session.answer(np.zeros(7))',
             'got (7,); write where(name=weights([..])) for weights of one attribute.',
             'session.answer(np.ones(domain.size))'),
            ('an array of texts', "session.answer(np.array(['a'] * domain.size))",
             'give one number in [0, 1] a value.', 'session.answer(np.ones(domain.size))'),
            ('an array with a weight of 2', 'session.answer(np.full(domain.size, 2.0))',
             'weights must lie in [0, 1], got weights[0]=2.0; write rescaled(...).',
             'session.answer(np.full(domain.size, 1.0))'),
            ('a function', "session.answer(lambda row: row['age'] > 30)", 'write where(attribute=condition).',
             'session.answer(where(age=at_least(31)))'),
            ('a number', 'session.answer(30)', 'write where(attribute=condition).',
             'session.answer(where(age=30))'),
            ('nothing', 'session.answer(None)', 'write where(attribute=condition).',
             'session.answer(where(age=30))'),
            ('a list for one question', 'session.answer([where(age=30)])',
             'write where(attribute=condition), or answer_many([query, ...]) for several.',
             'session.answer_many([where(age=30)])'),
            ('one question for many', 'session.answer_many(where(age=30))',
             'write [query, ...], or answer(query) for one.', 'session.answer_many([where(age=30)])'),
            ('a text for many', "session.answer_many('age = 30')",
             'write [query, ...], or answer(query) for one.', "session.answer_many(['age = 30'])"),
            ('a dict for many', "session.answer_many({'age': 30})",
             'write [query, ...], or answer(query) for one.', "session.answer_many([{'age': 30}])"),
            ('an array for many', 'session.answer_many(np.ones(domain.size))',
             'write [query, ...], or answer(query) for one.', 'session.answer_many([np.ones(domain.size)])'),
            ('one bad question among many', 'session.answer_many([where(age=30), where(age=99)])',
             'age must be an integer in [17, 90], got age=99; ask inside the domain.',
             'session.answer_many([where(age=30), where(age=90)])'),
            ('a rescaled query', 'session.answer(ic.rescaled(race=[0, 4, 9]))',
             'query must be data (where(...), a text condition, a Query or an array of weights), got a '
             'Rescaled;', 'session.answer(ic.rescaled(race=[0, 4, 9]).expression)'),
        ],
        'TypeError': [
            ('and, or, not of Python', "where(age=30) and where(sex='F')",
             'a query has no truth value: combine queries with & | ~, not with and, or, not.',
             "where(age=30) & where(sex='F')"),
        ],
        'DomainMismatchError': [
            ('a query of another domain', 'session.answer(where(age=3).bind(ic.Domain.of(age=9)))',
             'bind the expression again.', 'session.answer(where(age=30).bind(domain))'),
        ],
    },
    'cross tables': {
        'InvalidQueryError': [
            ('a list of no attributes', 'marginal([])', "write marginal('age', 'sex').",
             "marginal('age', 'sex').bind(domain)"),
            ('in a session that measures numbers',
             "opened(ic.Budget(1.0), release='answer').answer(marginal('a'))", "session.group_by(['a'])",
             "opened(ic.Budget(1.0), release='answer').group_by(['a'])"),
            ('a list of names', "marginal(['age', 'sex'])", "write marginal('age', 'sex').",
             "marginal('age', 'sex')"),
            ('no name', 'marginal()', "write marginal('age', 'sex').", "marginal('sex')"),
            ('a name twice', "marginal('sex', 'sex')", "write marginal('age', 'sex').",
             "marginal('sex', 'race')"),
            ('a name that is not there', "session.answer(marginal('sx'))",
             "attribute must be one of the domain's, got 'sx'; did you mean 'sex'?",
             "session.answer(marginal('sex'))"),
            ('a number for a name', 'marginal(3)', "write marginal('age', 'sex').", "marginal('sex')"),
            ('a condition that is a number', "session.answer(marginal('sex', where=3))",
             'write where=where(attribute=condition).',
             "session.answer(marginal('sex', where=where(age=30)))"),
        ],
        'TooLargeError': [
            ('a table of too many cells', "ic.marginal('a', 'b').bind(ic.Domain.of(a=10**4, b=10**4))",
             'a marginal must have at most 65,536 blocks, got 100,000,000; use fewer attributes.',
             "ic.marginal('a').bind(ic.Domain.of(a=10**4, b=10**4))"),
        ],
    },
    'asking in JSON': {
        'InvalidQueryError': [
            ('an attribute that is not there', "session.answer({'agee': 30})",
             "attribute must be one of the domain's, got 'agee'; did you mean 'age'?",
             "session.answer({'age': 30})"),
            ('a label that is meant for another', "session.answer({'sex': 'Female'})",
             "sex must be one of its 2 values ('F', 'M'), got sex='Female'; did you mean 'F'?",
             "session.answer({'sex': 'F'})"),
            ('a range outside', "session.answer({'age': [0, 30]})",
             'write [17, 30], or {"from": ..} or {"below": ..} for one side.',
             "session.answer({'age': [17, 30]})"),
            ('a range of three', "session.answer({'age': [20, 30, 40]})",
             'write {"one_of": [..]} for several labels.',
             "session.answer({'age': {'one_of': [20, 30, 40]}})"),
            ('a range of labels', "session.answer({'race': ['White', 'Black']})",
             'write {"one_of": [..]} for several labels.',
             "session.answer({'race': {'one_of': ['White', 'Black']}})"),
            ('a word that is none', "session.answer({'age': {'above': 30}})",
             'write for example {"from": 20, "below": 65}.', "session.answer({'age': {'from': 31}})"),
            ('two ends above', "session.answer({'age': {'from': 20, 'below': 30, 'to': 40}})",
             "age must have at most one end on each side, got 'from' and 'below' and 'to'; leave one of "
             'them out.', "session.answer({'age': {'from': 20, 'to': 40}})"),
            ('a closed range of bins', "session.answer({'hours': [20, 40]})",
             'write {"from": 20, "below": 40}, or declare integer=True for whole numbers.',
             "session.answer({'hours': {'from': 20, 'below': 40}})"),
            ('a cut between edges', "session.answer({'hours': {'from': 37}})",
             'the nearest edges are 35 and 40.', "session.answer({'hours': {'from': 35}})"),
            ('one number of bins', "session.answer({'hours': 38})", 'write e.g. {"from": 35, "below": 40}.',
             "session.answer({'hours': {'from': 35, 'below': 40}})"),
            ('null, where none is missing', "session.answer({'age': None})",
             'declare it "missing": true in the domain file, or ask for a value.',
             "session.answer({'educ': None})"),
            ('one_of of a text', "session.answer({'race': {'one_of': 'White'}})",
             'write for example {"one_of": [..]}.', "session.answer({'race': {'one_of': ['White']}})"),
            ('or of one object', "session.answer({'or': {'age': 30}})", 'write {"or": [{..}, {..}]}.',
             "session.answer({'or': [{'age': 30}, {'sex': 'F'}]})"),
            ('or of nothing', "session.answer({'or': []})", 'write {"or": [{..}, {..}]}.',
             "session.answer({'or': [{'age': 30}, {'sex': 'F'}]})"),
            ('not of a text', "session.answer({'not': 'F'})",
             'a query must be a JSON object of attribute: condition, got a text; write {..}.',
             "session.answer({'not': {'sex': 'F'}})"),
            ('a table of a text', "session.answer({'marginal': 'sex'})",
             "list its attributes, and put conditions after 'where'.",
             "session.answer({'marginal': ['sex']})"),
            ('a table with another word', "session.answer({'marginal': ['sex'], 'if': {'age': 30}})",
             "list its attributes, and put conditions after 'where'.",
             "session.answer({'marginal': ['sex'], 'where': {'age': 30}})"),
            ('a date between cells', "session.answer({'seen': ['2024-02', '2024-06']})",
             'write [..] or {"from": .., "below": ..} with quarters such as \'2024-Q1\'.',
             "session.answer({'seen': ['2024-01', '2024-06']})"),
            ('a date for many cells', "session.answer({'seen': '2024'})",
             'seen must be asked by one quarter, got seen=\'2024\', which holds 4; write ["2024", "2024"].',
             "session.answer({'seen': ['2024', '2024']})"),
        ],
    },
    'asking by a text': {
        'InvalidQueryError': [
            ('a condition with a name that is not there', "session.answer('agee > 30')",
             "column must be one of age, sex, race, hours, educ, seen, got 'agee'; did you mean age?",
             "session.answer('age > 30')"),
            ('a double quote for a text', 'session.answer(\'sex = "F"\')',
             "string values take single quotes: 'F'.", 'session.answer("sex = \'F\'")'),
            ('two equals signs of Python', 'session.answer("sex == \'X\'")',
             "sex must be one of its 2 values ('F', 'M'), got sex='X'; see the domain.",
             'session.answer("sex = \'F\'")'),
            ('an ampersand of pandas', 'session.answer("age > 30 & sex = \'F\'")',
             'not supported: &; join conditions by AND.', 'session.answer("age > 30 AND sex = \'F\'")'),
            ('plain words', "session.answer('women above thirty')", "write e.g. age >= 30 AND sex = 'F'.",
             'session.answer("sex = \'F\' AND age > 30")'),
            ('an empty text', "session.answer('')",
             'condition must be valid SQL, got an empty text; write e.g. age >= 30.',
             "session.answer('TRUE')"),
            ('a statement for a condition', "session.answer('SELECT COUNT(*) FROM t')",
             'ask it by session.sql(text).', "session.sql('SELECT COUNT(*) FROM t')"),
            ('a condition for a statement', "session.sql('age > 30')",
             'write SELECT COUNT(*) FROM t WHERE condition, or ask a condition alone by '
             'session.answer(text).', "session.answer('age > 30')"),
            ('a cut between edges', "session.answer('hours < 37')", 'the nearest edges are 35 and 40.',
             "session.answer('hours < 35')"),
            ('records instead of aggregates', "session.sql('SELECT * FROM t')",
             'records are never released, ask COUNT(*), SUM(col) or AVG(col).',
             "session.sql('SELECT COUNT(*) FROM t')"),
            ('a column that is not grouped', "session.sql('SELECT sex, COUNT(*) FROM t')",
             'records are never released.', "session.sql('SELECT sex, COUNT(*) FROM t GROUP BY sex')"),
            ('the largest value', "session.sql('SELECT MAX(age) FROM t')",
             'no noise of a useful size hides that; ask QUANTILE_CONT(col, 0.99).',
             "session.sql('SELECT QUANTILE_CONT(age, 0.99) FROM t')"),
            ('a table of another name', "session.sql('SELECT COUNT(*) FROM people')",
             "table must be 't', got 'people'; write FROM t.", "session.sql('SELECT COUNT(*) FROM t')"),
            ('a join', "session.sql('SELECT COUNT(*) FROM t JOIN u ON t.a = u.a')",
             'the session holds one table, join before opening it (a join changes who is one record).',
             "session.sql('SELECT COUNT(*) FROM t')"),
            ('a subquery', "session.sql('SELECT COUNT(*) FROM t WHERE age IN (SELECT 30)')",
             'ask conditions on columns.', "session.sql('SELECT COUNT(*) FROM t WHERE age IN (30)')"),
            ('HAVING of a column', "session.sql('SELECT sex, COUNT(*) FROM t GROUP BY sex HAVING sex > 1')",
             'HAVING must compare an aggregate with a number, got the column sex; write it in WHERE.',
             "session.sql('SELECT sex, COUNT(*) FROM t GROUP BY sex HAVING COUNT(*) > 5')"),
            ('LIMIT of one row', "session.sql('SELECT COUNT(*) FROM t LIMIT 3')",
             'LIMIT must stand after GROUP BY, got a statement of one row; leave it out.',
             "session.sql('SELECT sex, COUNT(*) FROM t GROUP BY sex LIMIT 3')"),
            ('a limit that is no number', "session.sql('SELECT sex, COUNT(*) FROM t GROUP BY sex LIMIT 1.5')",
             'LIMIT must be a whole number from 0, got 1.5; write e.g. LIMIT 10.',
             "session.sql('SELECT sex, COUNT(*) FROM t GROUP BY sex LIMIT 1')"),
            ('ORDER BY a column that is not there',
             "session.sql('SELECT sex, COUNT(*) FROM t GROUP BY sex ORDER BY 3')",
             'ORDER BY must name a column of SELECT from 1 to 2, got 3; write its name.',
             "session.sql('SELECT sex, COUNT(*) FROM t GROUP BY sex ORDER BY 2')"),
            ('two statements', "session.sql('SELECT COUNT(*) FROM t; DROP TABLE t')",
             'no UNION, WITH, INSERT, DDL or second statement.', "session.sql('SELECT COUNT(*) FROM t')"),
            ('a parameter without a value', "session.sql('SELECT COUNT(*) FROM t WHERE age > :low')",
             "pass params={'low': ...}.",
             "session.sql('SELECT COUNT(*) FROM t WHERE age > :low', params={'low': 30})"),
            ('an average of labels', "session.sql('SELECT AVG(sex) FROM t')",
             'AVG must be over a numeric column, sex is categorical; GROUP BY it instead, or average a '
             "condition such as sex = '..'.", "session.sql('SELECT AVG(age) FROM t')"),
            ('an open bracket', "session.sql('SELECT COUNT(*) FROM t WHERE (age = 30')",
             'write e.g. SELECT COUNT(*) FROM t WHERE age >= 30.',
             "session.sql('SELECT COUNT(*) FROM t WHERE (age = 30)')"),
            ('a number for a statement', 'session.sql(3)', 'statement must be a text, got a int; write SQL.',
             "session.sql('SELECT COUNT(*) FROM t')"),
        ],
        'InvalidParameterError': [
            ('a dialect that is none', "session.sql('SELECT COUNT(*) FROM t', dialect='latin')",
             'dialect must be None or one of athena, bigquery, clickhouse, databricks, dax, doris, dremio, '
             'drill', "session.sql('SELECT COUNT(*) FROM t', dialect='postgres')"),
        ],
    },
    'means, groups, quantiles': {
        'InvalidQueryError': [
            ('a mean of labels', "session.mean('sex')",
             'ask for counts, or build the domain with sex=range(..) or binned(..).', "session.mean('age')"),
            ('a mean of a name that is not there', "session.mean('agee')",
             "attribute must be one of the domain's, got 'agee'; did you mean 'age'?", "session.mean('age')"),
            ('a mean over nobody', "session.mean('age', where(age=between(50, 40)))",
             'age must have a value that the condition allows, got where(age=between(50, 40)), which '
             'nobody with', "session.mean('age', where(age=between(40, 50)))"),
            ('a mean with a condition that is a number', "session.mean('age', 30)",
             'write where(attribute=condition).', "session.mean('age', where(sex='F'))"),
            ('a mean of dates', "session.mean('seen')",
             'ask for a median, a quantile or counts, or load a number such as the days since',
             "session.quantile('seen', 0.5)"),
            ('a quantile of labels', "session.quantile('race', 0.5)", 'ask for counts by group_by.',
             "session.quantile('age', 0.5)"),
            ('a distribution of labels', "session.cdf('race')", 'ask for counts by group_by.',
             "session.histogram('race')"),
            ('groups by nothing', 'session.group_by([])',
             "keys must be one or more different attributes, got []; write ['sex', 'age'], and name "
             "groupings by called('..').", "session.group_by('sex')"),
            ('groups by one twice', "session.group_by(['sex', 'sex'])",
             "keys must be one or more different attributes, got ['sex', 'sex']; write ['sex', 'age'], and "
             "name groupings by called('..').", "session.group_by('sex')"),
            ('groups by a name that is not there', "session.group_by('gender')",
             "it has ['age', 'sex', 'race', 'hours', 'educ', 'seen'].", "session.group_by('sex')"),
            ('a mean by group of nothing', "session.group_by('sex', aggregate='mean')",
             "write aggregate='mean', of='age'.", "session.group_by('sex', aggregate='mean', of='age')"),
            ('a count by group of something', "session.group_by('sex', of='age')",
             "write aggregate='mean', of='age'.", "session.group_by('sex', aggregate='mean', of='age')"),
            ('an explanation of nothing', 'session.explain(None)', 'write where(attribute=condition).',
             'session.explain(where(age=30))'),
            ('an explanation of a misspelt one', "session.explain(where(sex='Fem'))",
             "sex must be one of its 2 values ('F', 'M'), got sex='Fem'; did you mean 'F'?",
             "session.explain(where(sex='F'))"),
            ('an explanation of a derived one, asked at once', 'session.explain(session.mean)',
             "write explain(lambda session: session.mean('age')).",
             "session.explain(lambda session: session.mean('age'))"),
            ('a summary of an attribute that is not there', "session.summary(attributes=['agee'])",
             "attribute must be one of the domain's, got 'agee'; did you mean 'age'?",
             "session.summary(attributes=['age'])"),
        ],
        'InvalidParameterError': [
            ('a quantile above 1', "session.quantile('age', 90)",
             'write 0.9 for the value that nine in ten do not exceed.', "session.quantile('age', 0.9)"),
            ('a quantile that is NaN', "session.quantile('age', math.nan)",
             'write 0.9 for the value that nine in ten do not exceed.', "session.quantile('age', 0.5)"),
            ('an aggregate that is none', "session.group_by('sex', aggregate='avg', of='age')",
             "aggregate must be 'count', 'mean', 'sum' or 'variance', got aggregate='avg'.",
             "session.group_by('sex', aggregate='mean', of='age')"),
            ('a summary of a text', "session.summary(attributes='age')",
             "attributes must be a list of names, got the text 'age'; write it in brackets.",
             "session.summary(attributes=['age'])"),
            ('a summary of a negative number of answers', 'session.summary(answers=-1)',
             'answers must be an integer >= 0 and <= 10000, got answers=-1.', 'session.summary(answers=0)'),
            ('no synthetic rows', 'session.synthetic(0)',
             'rows must be an integer >= 1 and <= 10000000, got rows=0.', 'session.synthetic(1)'),
            ('a fraction of synthetic rows', 'session.synthetic(10.5)',
             'rows must be an integer >= 1 and <= 10000000, got rows=10.5.', 'session.synthetic(10)'),
            ('a seed that is none', "session.synthetic(10, seed='a')",
             "seed must be an integer >= 0, got seed='a'.", 'session.synthetic(10, seed=7)'),
            ('bounds of unequal lists', 'session.joint_bounds([where(age=30)], [])',
             'give one Answer a query, in their order.', "session.joint_bounds([where(sex='F')], [answer])"),
        ],
    },
    'answers': {
        'TypeError': [
            ('an answer and a number', 'answer + 1', 'compute with answer.count or answer.value.',
             'answer.count + 1'),
            ('a number and an answer', '1 - answer', 'compute with answer.count or answer.value.',
             '1 - answer.value'),
            ('a numpy number and an answer', 'np.float64(2) + answer',
             'compute with answer.count or answer.value.', 'np.float64(2) * answer'),
            ('the square of an answer', 'answer ** 2',
             'a result must be combined by + - * and /, got another operation; compute with its value, and '
             'carry error_bound along.', 'answer.value ** 2'),
            ('the sum of an answer and a text', "sum([answer, '3'])",
             'a result must be combined with another or with a number, got a str; take its value.',
             'sum([answer, answer])'),
            ('the minus of a table', '-table',
             'must be combined group by group, got the table; ask group_by.', "-session.group_by('sex')"),
            ('an answer as a truth', 'bool(answer)',
             'an Answer has no truth value: compare answer.value instead.', 'answer.value > 0'),
            ('the order of answers', 'answer < answer',
             'a result has no order, since its bound may leave it open: compare value, or look at the '
             'interval of a difference.', 'answer.value < answer.value'),
            ('an answer against a number', 'answer > 0.5',
             'a result has no order, since its bound may leave it open: compare value, or look at the '
             'interval of a difference.', 'answer.value > 0.5'),
            ('the largest answer', 'max([answer, answer])',
             'a result has no order, since its bound may leave it open: compare value, or look at the '
             'interval of a difference.', 'max([answer, answer], key=lambda one: one.value)'),
            ('a table as a number', 'float(table)',
             'an Answer to a cross table must be read cell by cell, got it as one number; use answer.value.',
             'float(table.value[0, 0])'),
            ('a table as a truth', 'bool(table)',
             'an Answer has no truth value: compare answer.value instead.', '(table.value > 0).all()'),
            ('a mean as a truth', 'bool(average)',
             'a derived answer has no truth value: compare its value instead.', 'average.value > 30'),
            ('a mean and a text', "average + '1'",
             'a result must be combined with another or with a number, got a str; take its value.',
             'average + 1'),
            ('an answer in JSON', 'json.dumps(answer)', 'Object of type Answer is not JSON serializable',
             'json.dumps(answer.to_dict())'),
            ('a condition as a truth', 'bool(where(age=30))',
             'a query has no truth value: combine queries with & | ~, not with and, or, not.',
             "where(age=30) & where(sex='F')"),
        ],
        'InvalidParameterError': [
            ('an answer as a whole number', 'int(answer)',
             'write round(answer.count) for records, or round(answer, 3) for the fraction.',
             'round(answer.count)'),
            ('an answer rounded', 'round(answer)',
             'write round(answer.count) for records, or round(answer, 3) for the fraction.',
             'round(answer, 3)'),
            ('a table as counts', 'int(table)',
             'write round(answer.count) for records, or round(answer, 3) for the fraction.',
             'table.count.round().astype(int)'),
            ('a format that is none', "f'{answer:.3q}'",
             "write f'{answer:.3f}' for the fraction, or f'{answer.count:.0f}' for records.",
             "f'{answer:.3f}'"),
            ('a format of whole numbers', "f'{answer:d}'",
             "write f'{answer:.3f}' for the fraction, or f'{answer.count:.0f}' for records.",
             "f'{round(answer.count):d}'"),
            ('a confidence of 95', 'answer.interval(95)',
             'confidence must be a number in (0, 1), got confidence=95; write 0.95.',
             "session.answer(where(sex='F')).interval(0.95)"),
            ('a confidence of 1', 'answer.interval(1.0)',
             'confidence must be a number in (0, 1), got confidence=1.0; write 0.95.',
             "session.answer(where(sex='F')).interval(0.999)"),
            ('a confidence that no bound holds with', 'without.interval(0.99)',
             'confidence must be at most 0.95, with which the bound of an answer without an estimate '
             'holds, got confidence=0.99; write 0.95.', 'without.interval(0.95)'),
            ('a picture of a number', 'answer.plot()', 'ask marginal("a") or marginal("a", "b").',
             'table.plot()'),
            ('a picture of another kind', "table.plot(kind='pie')",
             "kind must be 'map' for 2 attributes, got 'pie'; leave it out.", "table.plot(kind='map')"),
            ('a map of one attribute', "ages.plot(kind='map')",
             "kind must be 'bars' or 'line' for 1 attributes, got 'map'; leave it out.",
             "ages.plot(kind='line')"),
            ('a line of two attributes', "table.plot(kind='line')",
             "kind must be 'map' for 2 attributes, got 'line'; leave it out.", "table.plot(kind='map')"),
            ('a picture of three attributes', 'cube.plot()', 'ask marginal("a") or marginal("a", "b").',
             'table.plot()'),
            ('a picture on a text', "table.plot(ax='left')",
             'ax must be axes of matplotlib or None, got a str; write fig.add_subplot().',
             'table.plot(ax=None)'),
            ('a quantile of a distribution above 1', 'rising.quantile(2)',
             'write 0.9 for the value that nine in ten do not exceed.', 'rising.quantile(0.5)'),
        ],
        'AttributeError': [
            ('a field that is not there', 'answer.error', "did you mean 'error_bound'?",
             'answer.error_bound'),
        ],
        'InvalidQueryError': [
            ('a picture of the summary of a name that is not there', "session.summary().plot('agee')",
             "attribute must be one of the domain's, got 'agee'; did you mean 'age'?",
             "session.summary().plot('age')"),
        ],
    },
    'opening a session': {
        'InvalidParameterError': [
            ('an epsilon of 0', 'ic.Budget(0.0)', 'epsilon must be a number in (0, 20], got epsilon=0.0.',
             'ic.Budget(0.5)'),
            ('a negative epsilon', 'ic.Budget(-1.0)',
             'epsilon must be a number in (0, 20], got epsilon=-1.0.', 'ic.Budget(1.0)'),
            ('an infinite epsilon', 'ic.Budget(math.inf)',
             'in a Budget, allow_large_epsilon=True lifts the upper limit.', 'ic.Budget(1.0)'),
            ('NaN for epsilon', 'ic.Budget(math.nan)',
             'epsilon must be a number in (0, 20], got epsilon=nan.', 'ic.Budget(1.0)'),
            ('a text for epsilon', "ic.Budget('1')", "epsilon must be a number in (0, 20], got epsilon='1'.",
             'ic.Budget(1.0)'),
            ('a truth for epsilon', 'ic.Budget(True)',
             'epsilon must be a number in (0, 20], got epsilon=True.', 'ic.Budget(1.0)'),
            ('a delta of 1', 'ic.Budget(1.0, 1.0)', 'delta must be a number in [0, 1), got delta=1.0.',
             'ic.Budget(1.0, 1e-9)'),
            ('a negative delta', 'ic.Budget(1.0, -1e-9)',
             'delta must be a number in [0, 1), got delta=-1e-09.', 'ic.Budget(1.0, 1e-9)'),
            ('a number for a budget', 'opened(1.0)', 'write Budget(epsilon=1.0, delta=1e-9).',
             'opened(ic.Budget(epsilon=1.0, delta=1e-9))'),
            ('a table for data', 'ic.OnlineIC(people, ic.Budget(1.0))',
             'write PrivateData.from_records(...).', 'ic.OnlineIC(load(), ic.Budget(1.0))'),
            ('a frame for data', 'ic.OnlineIC(pd.DataFrame(people), ic.Budget(1.0))',
             'write PrivateData.from_records(...).',
             'ic.OnlineIC(ic.PrivateData.from_frame(pd.DataFrame(people), who), ic.Budget(1.0))'),
            ('certify and hard_answers', 'opened(certify=0.2, hard_answers=5)',
             'it settles both, so leave out one of them.', 'opened(hard_answers=5)'),
            ('an accuracy of 0', 'opened(certify=0)',
             'certify must be a number in [1e-100, 1), got certify=0.', 'opened(certify=None)'),
            ('an accuracy above 1', 'opened(certify=1.5)',
             'certify must be a number in [1e-100, 1), got certify=1.5.', 'opened(certify=0.4)'),
            ('no queries', 'opened(max_queries=0)',
             'max_queries must be an integer >= 1 and <= 9223372036854775807, got max_queries=0.',
             'opened(max_queries=1)'),
            ('a fraction of queries', 'opened(max_queries=10.5)',
             'max_queries must be an integer >= 1 and <= 9223372036854775807, got max_queries=10.5.',
             'opened(max_queries=10)'),
            ('1e4 queries', 'opened(max_queries=1e4)',
             'max_queries must be an integer >= 1 and <= 9223372036854775807, got max_queries=10000.0; write',
             'opened(max_queries=10000)'),
            ('endless queries', 'opened(max_queries=math.inf)',
             'max_queries must be an integer >= 1 and <= 9223372036854775807, got max_queries=inf.',
             'opened(max_queries=10**6)'),
            ('a text for queries', "opened(max_queries='100')",
             "max_queries must be an integer >= 1 and <= 9223372036854775807, got max_queries='100'.",
             'opened(max_queries=100)'),
            ('no hard answers', 'opened(hard_answers=0)',
             'hard_answers must be an integer >= 1 and <= 1000000000, got hard_answers=0.',
             'opened(hard_answers=1)'),
            ('a beta of 0', 'opened(beta=0)', 'beta must be a number in [1e-100, 1), got beta=0.',
             'opened(beta=0.01)'),
            ('a beta of 95', 'opened(beta=95)', 'beta must be a number in [1e-100, 1), got beta=95.',
             'opened(beta=0.05)'),
            ('a threshold below 0', 'opened(threshold=-0.1)',
             'threshold must be a number in (0, 1), got threshold=-0.1.', 'opened(threshold=0.1)'),
            ('a rule by its name', "opened(update='mw')", 'write MultiplicativeWeights().',
             'opened(update=ic.MultiplicativeWeights())'),
            ('a rule that is a class', 'opened(update=ic.MaximumEntropy)',
             'update must be an UpdateRule, got the class MaximumEntropy; write MaximumEntropy().',
             'opened(update=ic.MaximumEntropy())'),
            ('a mechanism that is none', "opened(sparse='gauss')",
             "sparse must be 'gumbel', 'exponential' or 'laplace', got 'gauss'.", "opened(sparse='laplace')"),
            ('a release that is none', "opened(release='cells')",
             "release must be 'answer' or 'partition', got release='cells'.", "opened(release='answer')"),
            ('a start of another domain', 'opened(prior=ic.Histogram(ic.Domain.of(a=3)))',
             'write Histogram(domain, weights).', 'opened(prior=ic.Histogram(small))'),
            ('a table for a start', 'opened(prior=np.ones(small.size))', 'write Histogram(domain, weights).',
             'opened(prior=ic.Histogram(small, np.ones(small.size)))'),
            ('a wish that is none, when used up', "opened(exhausted='stop')",
             "exhausted must be 'untested' or 'raise', got exhausted='stop'.", "opened(exhausted='raise')"),
            ('a number of questions that is 0', 'opened(questions=0)',
             "write 20, or [('age', 'sex'), 'city'].", 'opened(questions=20)'),
            ('a number of questions that is none', 'opened(questions=True)',
             "write 20, or [('age', 'sex'), 'city'].", 'opened(questions=20)'),
            ('questions as one word', "opened(questions='age')", "write 20, or [('age', 'sex'), 'city'].",
             "opened(questions=['a'])"),
            ('no questions', 'opened(questions=[])',
             'questions must name attributes, got none; leave it out.', 'opened()'),
            ('a person without rows', 'opened(rows_per_person=0)',
             'rows_per_person must be an integer >= 1, got rows_per_person=0.', 'opened(rows_per_person=1)'),
            ('a fraction of rows for a person', 'opened(rows_per_person=1.5)',
             'rows_per_person must be an integer >= 1, got rows_per_person=1.5.',
             'opened(rows_per_person=2)'),
            ('a file without the name of its table', 'opened(ledger=new_file())',
             "write table='census 2026, release 3': a ledger is of one table as it is.",
             "opened(ledger=new_file(), table='census 2026').close()"),
            ('the name of a table without a file', "opened(table='census 2026')",
             "table must be None without a ledger file, got table='census 2026'; give ledger='FILE.db'.",
             "opened(ledger=new_file(), table='census 2026').close()"),
            ('a number for a file', "opened(ledger=3, table='census 2026')",
             "write ledger='FILE.db', table='LABEL'.",
             "opened(ledger=new_file(), table='census 2026').close()"),
            ('a folder for a file', "opened(ledger=folder, table='census 2026')", 'give it a name.',
             "opened(ledger=new_file(), table='census 2026').close()"),
            ('an empty name of a table', "opened(ledger=new_file(), table='')",
             "write table='census 2026, release 3': a ledger is of one table as it is.",
             "opened(ledger=new_file(), table='census 2026').close()"),
            ('a durability that is none', "opened(ledger=new_file(), table='census 2026', durability='some')",
             "durability must be 'hits' or 'all', got durability='some'.",
             "opened(ledger=new_file(), table='census 2026', durability='all').close()"),
            ('simulated noise with a file',
             "opened(ledger=new_file(), table='census 2026', noise=SimulatedNoise(1))",
             'ledger must be None with simulated noise, whose answers are not private, got a ledger too; '
             'leave', 'opened(noise=SimulatedNoise(1))'),
            ('a seed for noise', 'opened(noise=1)',
             'write SystemNoise(), or SimulatedNoise(seed) for what need not be private.',
             'opened(noise=SimulatedNoise(1))'),
            ('a generator for noise', 'opened(noise=np.random.default_rng(1))',
             'write SystemNoise(), or SimulatedNoise(seed) for what need not be private.',
             'opened(noise=SimulatedNoise(1))'),
            ('progress that is no function', 'opened(progress=True)',
             "progress must be a callable (stage, done, total), 'bar' or None, got a bool.",
             'opened(progress=lambda stage, done, total: None)'),
            ('purchases that are a number', 'opened(purchases=3)',
             'purchases must be a PurchaseRule, got a int; write ', 'opened(purchases=ic.TestsOnly())'),
            ('the book with a rule without T(alpha)', 'book(update=ic.MaximumEntropy())',
             'update must have a proven T(alpha) in textbook mode, got MaximumEntropy(evaluations=30',
             'opened(update=ic.MaximumEntropy())'),
            ('an epsilon of 50', 'ic.Budget(50.0)',
             'in a Budget, allow_large_epsilon=True lifts the upper limit.',
             'ic.Budget(50.0, allow_large_epsilon=True)'),
            ('a start that is a class', 'opened(prior=ic.Histogram)', 'write Histogram(domain, weights).',
             'opened(prior=ic.Histogram(small))'),
        ],
        'InfeasibleAccuracyError': [
            ('an accuracy that cannot be', 'opened(certify=1e-6)',
             'raise certify, epsilon or n, or give hard_answers.',
             "opened(certify=least('opened(certify=1e-6)'))"),
            ('too many hard answers', 'opened(hard_answers=10**9)', 'lower hard_answers, or raise epsilon.',
             'opened(hard_answers=10)'),
            ('the book with an alpha that cannot be', 'book(alpha=1e-4)', 'raise alpha, n or epsilon.',
             "book(alpha=least('book(alpha=1e-4)'))"),
        ],
        'TypeError': [
            ('a copy of a session', 'copy.copy(session)',
             'hand on summary(), or go on elsewhere from a ledger file by OnlineIC.resume.',
             'session.transcript'),
            ('a session in a pickle', 'pickle.dumps(session)',
             'hand on summary(), or go on elsewhere from a ledger file by OnlineIC.resume.',
             'session.summary().to_markdown()'),
            ('data in a pickle', 'pickle.dumps(data)',
             'PrivateData cannot be copied or pickled: a copy would hold the private counts; load it anew.',
             'session.transcript'),
        ],
        'SessionStateError': [
            ('a closed session', 'closed.answer(where(a=1))',
             'go on with OnlineIC.resume(FILE, data), if it has a ledger file.',
             'opened().answer(where(a=1))'),
            ('opening a session twice', 'closed.__init__(small_table(), ic.Budget(1.0))',
             'a session must be opened once, got __init__ again; open a new one.', 'opened()'),
        ],
        'SessionExhaustedError': [
            ('a session that is used up', 'used_up.answer(ic.dense(np.eye(small.size)[11]))',
             "open a session with a larger budget, or exhausted='untested'.", 'used_up.answer(asked_before)'),
        ],
    },
    'totals of a table': {
        'InvalidParameterError': [
            ('a budget for a total', 'small_table().draw_on(ic.Budget(1.0))',
             'write TableBudget(Budget(..)).', 'small_table().draw_on(ic.TableBudget(ic.Budget(1.0)))'),
            ('a number for the budget of a total', 'ic.TableBudget(1.0)',
             'budget must be a Budget without an order, got a float; write Budget(1.0, 1e-9).',
             'ic.TableBudget(ic.Budget(1.0, 1e-9))'),
            ('a second total', 'totalled.draw_on(ic.TableBudget(ic.Budget(1.0)))',
             'total must be the one that the table has, got another; leave it.', 'totalled.draw_on(total)'),
            ('a share above 1', 'total.share(2)', 'part must be a number in (0, 1], got part=2.',
             'total.share(1)'),
            ('a share of 0', 'total.share(0)', 'part must be a number in (0, 1], got part=0.',
             'total.share(0.25)'),
            ('a total of persons without rows', 'ic.TableBudget(ic.Budget(1.0), rows_per_person=0)',
             'rows_per_person must be an integer >= 1, got rows_per_person=0.',
             'ic.TableBudget(ic.Budget(1.0), rows_per_person=2)'),
            ('a total in a file without a name of the table',
             'ic.TableBudget(ic.Budget(1.0), ledger=new_file())',
             "write table='census 2026, release 3': a ledger is of one table as it is.",
             "ic.TableBudget(ic.Budget(1.0), ledger=new_file(), table='census 2026').close()"),
            ('a name of the table without a file', "ic.TableBudget(ic.Budget(1.0), table='census 2026')",
             "table and receipt must be None without a ledger file, got one; give ledger='FILE.db'.",
             "ic.TableBudget(ic.Budget(1.0), ledger=new_file(), table='census 2026').close()"),
            ('an order without delta', 'ic.TableBudget(ic.Budget(1.0), order=2)',
             'order must be None with delta=0, got order=2.', 'ic.TableBudget(ic.Budget(1.0))'),
        ],
        'SessionStateError': [
            ('a total after something was released', 'used_up_table.draw_on(ic.TableBudget(ic.Budget(1.0)))',
             'load the table anew, with what was released before taken off the budget of the total.',
             'small_table().draw_on(ic.TableBudget(ic.Budget(1.0)))'),
            ('a receipt of a total in memory', 'total.receipt',
             "open it with ledger='FILE.db', table='LABEL'.",
             "with ic.TableBudget(ic.Budget(1.0), ledger=new_file(), table='census 2026') as one: "
             'one.receipt'),
        ],
        'BudgetExceededError': [
            ('more than is left', 'ic.OnlineIC(totalled, ic.Budget(5.0, 1e-9))',
             'nothing was spent: take at most Budget(1.0, 1e-09).',
             'ic.OnlineIC(totalled, ic.Budget(0.5, 1e-10))'),
        ],
        'TypeError': [
            ('a total in a pickle', 'pickle.dumps(total)',
             'TableBudget cannot be copied or pickled: a copy would be spent again; open its file anew.',
             'total.share(0.5)'),
        ],
    },
    'tomorrow': {
        'LedgerCorruptError': [
            ('a file that is not there', "ic.OnlineIC.resume(folder / 'none.db', small_table())",
             'if there never was one, open it with OnlineIC(data, budget, ledger=.., table=..).',
             'ic.OnlineIC.resume(kept(), small_table()).close()'),
            ('a file that is no ledger', "ic.OnlineIC.resume(csv('age,sex'), small_table())",
             'restore it from a backup, and give its newest receipt.',
             'ic.OnlineIC.resume(kept(), small_table()).close()'),
            ('a file that was cut', 'ic.OnlineIC.resume(cut, small_table())',
             'restore it from a backup, and give its newest receipt.',
             'ic.OnlineIC.resume(kept(), small_table(), receipt=receipt).close()'),
        ],
        'LedgerMismatchError': [
            ('a label of another table', "ic.OnlineIC.resume(file, small_table(), table='census 2027')",
             'open a new ledger for another table.',
             "ic.OnlineIC.resume(file, small_table(), table='census 2026').close()"),
            ('another domain', 'ic.OnlineIC.resume(file, load())', 'open a new ledger for another table.',
             "ic.OnlineIC(load(), ic.Budget(1.0, 1e-9), ledger=new_file(), table='people').close()"),
            ('a table of another size', 'ic.OnlineIC.resume(file, other)',
             'open a new ledger for another table.',
             "ic.OnlineIC(other, ic.Budget(1.0, 1e-9), ledger=new_file(), table='other').close()"),
            ('a start that was not given',
             'ic.OnlineIC.resume(file, small_table(), prior=ic.Histogram(small))',
             'prior must be None, as the ledger was opened, got another; leave it out.',
             'ic.OnlineIC.resume(file, small_table()).close()'),
            ('another budget on the same file', "opened(ic.Budget(2.0), ledger=file, table='census 2026')",
             'call OnlineIC.resume, or open a new ledger (budgets add).',
             'ic.OnlineIC.resume(file, small_table()).close()'),
            ('another setting on the same file', "opened(ledger=file, table='census 2026', max_queries=77)",
             'call OnlineIC.resume, or open a new ledger (budgets add).',
             "opened(ledger=file, table='census 2026', max_queries=10_000).close()"),
            ('another label on the same file', "opened(ledger=file, table='census 2027')",
             'open a new ledger for another table.',
             "opened(ledger=new_file(), table='census 2027').close()"),
            ('the total of a table for a session', 'ic.OnlineIC.resume(total_file, small_table())',
             'open it by ic.TableBudget.',
             "ic.TableBudget(ic.Budget(1.0), ledger=total_file, table='census 2026').close()"),
            ('the ledger of a session for a total',
             "ic.TableBudget(ic.Budget(1.0), ledger=file, table='census 2026')",
             'open it by ic.OnlineIC.resume.', 'ic.OnlineIC.resume(file, small_table()).close()'),
        ],
        'LedgerLockedError': [
            ('a second opener', 'ic.OnlineIC.resume(busy, small_table())',
             'close that session, in this process or another.',
             'held.close(); ic.OnlineIC.resume(busy, small_table()).close()'),
        ],
        'LedgerRollbackError': [
            ('an older copy', 'ic.OnlineIC.resume(older, small_table(), receipt=newest)',
             'what was spent since is not in it: restore the newest copy.',
             'ic.OnlineIC.resume(newer, small_table(), receipt=newest).close()'),
        ],
        'InvalidParameterError': [
            ('a receipt that is none', "ic.OnlineIC.resume(file, small_table(), receipt='abc')",
             "receipt must be a text such as 12:9f86.., got receipt='abc'; copy it whole.",
             'ic.OnlineIC.resume(file, small_table(), receipt=str(receipt)).close()'),
            ('a durability that is none', "ic.OnlineIC.resume(file, small_table(), durability='some')",
             "durability must be 'hits' or 'all', got durability='some'.",
             "ic.OnlineIC.resume(file, small_table(), durability='all').close()"),
            ('an open ledger for a path', "opened(ledger=open_ledger, table='census 2026')",
             "release it, and give its path: ledger='FILE.db', table='LABEL', or "
             "OnlineIC.resume('FILE.db', data).",
             "open_ledger.release(); opened(ledger=open_file, table='census 2026').close()"),
            ('a frame for a table', 'ic.OnlineIC.resume(file, pd.DataFrame(people))',
             'write PrivateData.from_records(...).', 'ic.OnlineIC.resume(file, small_table()).close()'),
        ],
        'SessionStateError': [
            ('a receipt of a session in memory', 'session.receipt',
             "open it with ledger='FILE.db', table='LABEL'.",
             "with opened(ledger=new_file(), table='census 2026') as one: one.receipt"),
        ],
    },
    'warnings': {
        'BudgetsAddWarning': [
            ('a second session on one table', 'ic.OnlineIC(used_up_table, ic.Budget(1.0))',
             'a table must have one total to keep one budget, got another of epsilon=1, delta=0 after '
             'epsilon=1',
             'again, whole = small_table(), ic.TableBudget(ic.Budget(1.0, 1e-9)); again.draw_on(whole); '
             '[ic.OnlineIC(again, whole.share(0.5)) for _ in range(2)]'),
        ],
        'LargeDeltaWarning': [
            ('a delta above 1/n', 'opened(ic.Budget(1.0, 0.5))',
             'delta must be below 1/n to protect a row, got delta=0.5 for n=66001: a mechanism that shows '
             'one row', 'opened(ic.Budget(1.0, 1e-9))'),
        ],
        'VacuousPromiseWarning': [
            ('a promise of 1/2 or more', 'ic.OnlineIC.textbook(load(), epsilon=0.1)',
             "the session's promise must be below 0.5 to say anything, got an error bound of 1080: the "
             'answer', 'ic.OnlineIC(load(), ic.Budget(0.1))'),
        ],
        'InvalidDomainError': [
            ('labels that were read from the rows', 'ic.Domain.from_json(drafted)',
             "sex must have beside 'labels' one of 'other', 'synonyms', 'missing', 'others', 'column', got "
             "'from rows'; remove it.",
             'ic.Domain.from_json(drafted.replace(\', "from rows": "NOT PRIVATE"\', \'\'))'),
        ],
    },
    'the command line': {
        'exit status 1': [
            ('an attribute that is not there', 'asked(\'{"agee": 30}\')',
             "attribute must be one of the domain's, got 'agee'; did you mean 'age'?",
             'asked(\'{"age": 30}\')'),
            ('a label that is meant for another', 'asked(\'{"sex": "Female"}\')',
             "sex must be one of its 2 values ('F', 'M'), got sex='Female'; did you mean 'F'?",
             'asked(\'{"sex": "F"}\')'),
            ('a range outside', 'asked(\'{"age": [0, 30]}\')',
             'write [17, 30], or {"from": ..} or {"below": ..} for one side.',
             'asked(\'{"age": [17, 30]}\')'),
            ('an object that is not closed', 'asked(\'{"age": [30, 50]\')',
             'a query must be one line of JSON such as {"age": [30, 50], "sex": "F"}, got other text.',
             'asked(\'{"age": [30, 50]}\')'),
            ('NaN', 'asked(\'{"age": NaN}\')', 'numbers must be finite, got NaN; write a number.',
             'asked(\'{"age": 30}\')'),
            ('an attribute twice', 'asked(\'{"age": 30, "age": 40}\')',
             'write {"and": [{..}, {..}]} for both, {"or": [{..}, {..}]} for either.',
             'asked(\'{"or": [{"age": 30}, {"age": 40}]}\')'),
            ('Python for JSON', "asked('where(age=30)')", "write e.g. age >= 30 AND sex = 'F'.",
             'asked(\'{"age": 30}\')'),
            ('a date in another form', 'asked(\'{"seen": "05.03.2024"}\')',
             'write a date, or ["2024-03-01", "2024-03-31"].', 'asked(\'{"seen": "2024-03-05"}\')'),
            ('a month where days are counted', 'asked(\'{"seen": "2024-03"}\')',
             'write ["2024-03", "2024-03"].', 'asked(\'{"seen": ["2024-03", "2024-03"]}\')'),
            ('null, where none is missing', 'asked(\'{"age": null}\')',
             'declare it "missing": true in the domain file, or ask for a value.', 'asked(\'{"age": 30}\')'),
            ('a double quote', 'asked(\'sex = "F"\')', "string values take single quotes: 'F'.",
             'asked("sex = \'F\'")'),
            ('a statement about another table', "asked('SELECT COUNT(*) FROM people')",
             "table must be 't', got 'people'; write FROM t.", "asked('SELECT COUNT(*) FROM t')"),
            ('a largest value', "asked('SELECT MAX(age) FROM t')",
             'no noise of a useful size hides that; ask QUANTILE_CONT(col, 0.99).',
             "asked('SELECT QUANTILE_CONT(age, 0.99) FROM t')"),
            ('plain words', "asked('how many women?')", "write e.g. age >= 30 AND sex = 'F'.",
             'asked("sex = \'F\'")'),
            ('a cross table of a text', 'asked(\'{"marginal": "sex"}\')',
             "list its attributes, and put conditions after 'where'.", 'asked(\'{"marginal": ["sex"]}\')'),
            ('one bad line among good ones', 'asked(\'{"age": 30}\\n{"age": 300}\\n{"sex": "F"}\')',
             'age must be an integer in [17, 90], got age=300; ask inside the domain.',
             'asked(\'{"age": 30}\\n{"age": 90}\\n{"sex": "F"}\')'),
            ('a table that is not there',
             "command('ask', '--csv', folder / 'none.csv', '--domain', domain_file, '--epsilon', '1')",
             'No such file or directory', "asked('')"),
            ('a domain that is not there',
             "command('ask', '--csv', table_file, '--domain', folder / 'none.json', '--epsilon', '1')",
             'No such file or directory', "asked('')"),
            ('a file of questions that is not there', "asked('', folder / 'none.txt')",
             'No such file or directory', "asked('', questions)"),
            ('a table that does not fit',
             "command('ask', '--csv', dirty_file, '--domain', domain_file, '--epsilon', '1')",
             '--show-data-errors says more, and quotes it.',
             "command('ask', '--csv', dirty_file, '--domain', wide_file, '--epsilon', '1')"),
            ('a ledger of another table', "asked('', '--ledger', file, '--table', 'people 2026')",
             'open a new ledger for another table.',
             "asked('', '--ledger', new_file(), '--table', 'people 2026')"),
            ('a ledger that is none', "command('ledger', 'show', table_file)",
             'restore it from a backup, and give its newest receipt.', "command('ledger', 'show', file)"),
            ('a ledger that is not there', "command('ledger', 'verify', folder / 'none.db')",
             'No such file or directory', "command('ledger', 'verify', file)"),
            ('an older copy of a ledger', "command('ledger', 'verify', older, '--receipt', newest)",
             'what was spent since is not in it: restore the newest copy.',
             "command('ledger', 'verify', newer, '--receipt', newest)"),
            ('an export over a file', "command('ledger', 'export', file, '--output', table_file)",
             'File exists', "command('ledger', 'export', file, '--output', new_file())"),
            ('a draft over a file', "command('domain', 'draft', table_file, *kinds, '--out', domain_file)",
             'File exists', "command('domain', 'draft', table_file, *kinds, '--out', new_file())"),
        ],
        'exit status 2': [
            ('no command', 'command()', 'required: {demo,ask,domain,audit,ledger,periods,serve,user}',
             "command('--version')"),
            ('a command that is none', "command('query')",
             "argument {demo,ask,domain,audit,ledger,periods,serve,user}: invalid choice: 'query' (choose "
             'from ', "command('ledger', 'show', file)"),
            ('no table', "command('ask', '--domain', domain_file, '--epsilon', '1')",
             '--csv must be given, or --url of a server', "asked('')"),
            ('no epsilon', "command('ask', '--csv', table_file, '--domain', domain_file)",
             '--epsilon must be given, or --url of a server', "asked('')"),
            ('an option cut short', "asked('', '--eps', '1')", 'unrecognized arguments: --eps',
             "asked('', '--delta', '1e-9')"),
            ('an epsilon of 0', "asked('', epsilon='0')",
             'epsilon must be a number in (0, 20], got epsilon=0.0.', "asked('', epsilon='0.5')"),
            ('an epsilon that is none', "asked('', epsilon='one')",
             "argument --epsilon: invalid float value: 'one", "asked('', epsilon='1')"),
            ('a delta of 1', "asked('', '--delta', '1')", 'delta must be a number in [0, 1), got delta=1.0.',
             "asked('', '--delta', '1e-9')"),
            ('no hard answers', "asked('', '--hard-answers', '0')",
             "argument --hard-answers: must be a whole number >= 1, got '0",
             "asked('', '--hard-answers', '4')"),
            ('hard answers and certify', "asked('', '--hard-answers', '4', '--certify', '0.3')",
             'argument --certify: not allowed with argument --hard-answers',
             "asked('', '--hard-answers', '4')"),
            ('a format that is none', "asked('', '--format', 'xml')",
             "argument --format: invalid choice: 'xml' (choose from 'text', 'json', 'csv')",
             "asked('', '--format', 'json')"),
            ('a prompt and a file', "asked('', '--repl', questions)", 'leave one out',
             "asked('', questions)"),
            ('a domain that is no JSON',
             "command('ask', '--csv', table_file, '--domain', table_file, '--epsilon', '1')",
             'write {"age": {"range": [17, 90]}, "sex": ["F", "M"]}.', "asked('')"),
            ('a ledger without the name of the table', "asked('', '--ledger', new_file())",
             "write --table 'census 2026, release 3",
             "asked('', '--ledger', new_file(), '--table', 'people 2026')"),
            ('the name of a table without a ledger', "asked('', '--table', 'people 2026')",
             "--table must stand with a ledger, got 'people 2026' alone; write --ledger FILE.db",
             "asked('', '--ledger', new_file(), '--table', 'people 2026')"),
            ('a receipt that is none', "command('ledger', 'verify', file, '--receipt', 'abc')",
             "receipt must be a text such as 12:9f86.., got receipt='abc'; copy it whole.",
             "command('ledger', 'verify', file, '--receipt', receipt)"),
            ('a draft without kinds', "command('domain', 'draft', table_file)",
             "such as 'range 17 90', 'labels F, M' or 'skip', or run it on a terminal. Nothing was written.",
             "command('domain', 'draft', table_file, *kinds)"),
            ('a kind without a name', "command('domain', 'draft', table_file, '--attribute', 'range 17 90')",
             'clock hours, zone Europe/Paris, format %b-%Y, epoch s.',
             "command('domain', 'draft', table_file, *kinds)"),
            ('a kind of a column that is not there',
             "command('domain', 'draft', table_file, *kinds, '--attribute', 'agee=range 17 90')",
             "--attribute must name a column, got 'agee'; did you mean 'age'.",
             "command('domain', 'draft', table_file, *kinds)"),
            ('a kind that is none',
             "command('domain', 'draft', table_file, *kinds, '--attribute', 'age=numbers')",
             'clock hours, zone Europe/Paris, format %b-%Y, epoch s.',
             "command('domain', 'draft', table_file, *kinds, '--attribute', 'age=range 17 90')"),
            ('a word behind a kind that is none',
             "command('domain', 'draft', table_file, *kinds, '--attribute', 'age=range 17 90; cut')",
             'clock hours, zone Europe/Paris, format %b-%Y, epoch s.',
             "command('domain', 'draft', table_file, *kinds, '--attribute', 'age=range 17 90; clip')"),
            ('rows of a column that is not there',
             "command('domain', 'draft', table_file, *kinds, '--from-rows', 'gender')",
             "it has ['age', 'sex', 'seen'].", "command('domain', 'draft', table_file, *kinds)"),
            ('no queries of a demonstration', "command('demo', '--queries', '0')",
             "argument --queries: must be a whole number >= 1, got '0", "command('demo', '--help')"),
            ('too few sessions of an audit', "command('audit', '--runs', '10')",
             "argument --runs: must be a whole number >= 1000, got '10", "command('audit', '--help')"),
        ],
    },
    'for researchers': {
        'InvalidParameterError': [
            ('a comparison of no rules', 'compared({})', "write {'default': None} for the session's own",
             "compared({'default': None})"),
            ('a comparison of no seeds', "compared({'default': None}, [])",
             'seeds must be one or more, got none; write range(3).', "compared({'default': None}, range(1))"),
            ('a comparison on no tables',
             "ic.evaluate.compare({}, ic.Budget(1.0), [where(a=1)], {'mw': None}, [0])",
             "give a table, or {'label': table}.",
             "ic.evaluate.compare({'one': small_table()}, ic.Budget(1.0), [where(a=1)], {'mw': None}, [0])"),
            ('a comparison on no streams',
             "ic.evaluate.compare(small_table(), ic.Budget(1.0), {}, {'mw': None}, [0])",
             "give queries, or {'label': queries}.",
             "ic.evaluate.compare(small_table(), ic.Budget(1.0), {'one': [where(a=1)]}, {'mw': None}, [0])"),
            ('rows of no traces', 'ic.evaluate.rows([])', 'run compare(...) first.',
             "ic.evaluate.rows(compared({'default': None}))"),
            ('a figure of an attribute without values', 'ic.evaluate.plot_marginal(None, [], [], [])',
             'give those of an attribute.',
             'ic.evaluate.plot_marginal(ic.evaluate.new_figure(3, 3).add_subplot(), [1], [0.5], [0.5])'),
            ('a histogram of too few weights', 'ic.Histogram(small, np.ones(3))',
             'prior must have 12 entries, got shape (3,); give one weight a cell.',
             'ic.Histogram(small, np.ones(small.size))'),
            ('a histogram of negative weights', 'ic.Histogram(small, -np.ones(small.size))',
             'prior must be positive in every cell (at least 1e-90 of its sum), got prior[0]=-1; add a '
             'floor.', 'ic.Histogram(small, np.ones(small.size))'),
            ('a histogram without any weight', 'ic.Histogram(small, np.zeros(small.size))',
             'prior must be positive in every cell (at least 1e-90 of its sum), got prior[0]=0; add a floor.',
             'ic.Histogram(small, np.ones(small.size))'),
            ('a histogram of a table', 'ic.Histogram(people)',
             'domain must be a Domain, got a dict; write Domain.of(...).', 'ic.Histogram(who)'),
            ('a rate below 0', 'ic.MultiplicativeWeights(rate=-1)',
             'rate must be a number in (0, 100], got rate=-1.', 'ic.MultiplicativeWeights(rate=0.3)'),
            ('a variant that is none', "ic.MultiplicativeWeights(variant='paper')",
             "variant must be 'tight' or 'book', got variant='paper'.",
             "ic.MultiplicativeWeights(variant='book')"),
            ('a mean without epsilon, offline', "ic.offline.mean(load(), 'age', epsilon=0)",
             'epsilon must be a number in (0, 20], got epsilon=0.',
             "ic.offline.mean(load(), 'age', epsilon=0.1)"),
            ('a forecast of no records', 'ic.forecast(small, 0, ic.Budget(1.0), 10)',
             'n must be an integer >= 1 and <= 9007199254740992, got n=0; write how many records there '
             'are, or about that.', 'ic.forecast(small, 1000, ic.Budget(1.0), 10)'),
            ('a forecast of a table', 'ic.forecast(small_table(), 1000, ic.Budget(1.0), 10)',
             'domain must be a Domain, got a PrivateData; write data.domain.',
             'ic.forecast(small, 1000, ic.Budget(1.0), 10)'),
            ('rules without names, to be compared', 'compared([ic.Perceptron()])',
             "rules must be a mapping of label to rule, got a list; write {'mw': rule}.",
             "compared({'perceptron': ic.Perceptron()})"),
            ('a rule by its name, to be compared', "compared({'mw': 'mw'})", 'write MultiplicativeWeights().',
             "compared({'mw': ic.MultiplicativeWeights()})"),
            ('seeds as one number, to be compared', "compared({'mw': ic.MultiplicativeWeights()}, seeds=3)",
             'seeds must be a list of integers, got 3; write range(3).',
             "compared({'mw': ic.MultiplicativeWeights()}, seeds=range(1))"),
            ('a number for a cut, bound', 'where(age=30).bind(30)',
             'domain must be a Domain, got a int; write Domain.of(...).', 'where(age=30).bind(domain)'),
            ('a grid that is too fine', 'where(a=1).bind(small, 99)',
             'grid_bits must be an integer >= 0 and <= 20, got grid_bits=99.', 'where(a=1).bind(small, 20)'),
        ],
        'AssertionError': [
            ('a rule checked on one cell',
             'ic.testing.check_update_rule(ic.MultiplicativeWeights(), domain=ic.Domain.of(a=1))',
             'domain must have two or more cells',
             'ic.testing.check_update_rule(ic.MultiplicativeWeights(), domain=ic.Domain.of(a=2), steps=20)'),
            ('a rule checked on no histograms',
             'ic.testing.check_update_rule(ic.MultiplicativeWeights(), truths=[])',
             'truths must be one or more histograms, got none; leave them out.',
             'ic.testing.check_update_rule(ic.MultiplicativeWeights(), steps=20)'),
            ('a rule by its name, to be checked', "ic.testing.check_update_rule('mw')",
             'write MultiplicativeWeights().', 'ic.testing.check_update_rule(ic.MultiplicativeWeights())'),
            ('a class of rules, to be checked', 'ic.testing.check_update_rule(ic.MultiplicativeWeights)',
             'write MultiplicativeWeights().', 'ic.testing.check_update_rule(ic.MultiplicativeWeights())'),
        ],
        'AttributeError': [
            ('a wing that is not there', 'ic.offlin',
             "onlineic has no attribute 'offlin'; did you mean 'offline'?", 'ic.offline'),
            ('a class that is not there', 'ic.Perceptrons', "did you mean 'Perceptron'?", 'ic.Perceptron'),
        ],
        'InvalidQueryError': [
            ('a mean of labels, offline', "ic.offline.mean(load(), 'sex', epsilon=1.0)",
             "attribute must be a range of integers, got 'sex', a Categorical; declare it as a range.",
             "ic.offline.mean(load(), 'age', epsilon=1.0)"),
            ('a mean of a name that is not there, offline', "ic.offline.mean(load(), 'agee', epsilon=1.0)",
             "attribute must be one of the domain's, got 'agee'; did you mean 'age'?",
             "ic.offline.mean(load(), 'age', epsilon=1.0)"),
        ],
    },
}  # fmt: skip
CALLS = [
    (section, kind, call, name, words, remedy)
    for section, refused in CATALOGUE.items()
    for name, rows in refused.items()
    for kind, call, words, remedy in rows
]
NEEDED = {
    "pd.": "pandas", "pl.": "polars", "parquet": "polars", "pa.": "pyarrow", "duckdb.": "duckdb",
    "plot(": "matplotlib",
}  # fmt: skip


class RefusedError(Exception):
    """What the command line said on standard error, with its exit status."""


def command(*arguments, asked=""):
    """Run the command line; raise what it says of bad input, as a person reads it."""
    told, out = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stderr(told), redirect_stdout(out):
        patched.setattr("sys.stdin", io.StringIO(asked))
        try:
            status = main(list(map(str, arguments)))
        except SystemExit as left:
            status = int(left.code or 0)
    if status:
        raise RefusedError(f"exit status {status}", told.getvalue())
    return out.getvalue()


def spoilt(folder, odd, odd_number, moved):
    """Return what the calls of the catalogue name: tables, sessions and files, all made anew.

    Two of these worlds differ in one record of every table, by `moved`, and in the dirt `odd` and
    `odd_number`, which no message may quote.
    """
    files = itertools.count()
    who = ic.Domain.of(age=range(17, 91), sex=["F", "M"])
    people = {"age": [34, 51, 34], "sex": ["F", "M", "F"]}
    domain = ic.Domain.of(
        age=range(17, 91),
        sex=["F", "M"],
        race=["White", "Black", "Other"],
        hours=ic.binned([0, 20, 35, 40, 60, 100]),
        educ=ic.optional(range(1, 4)),
        seen=ic.dates("2024-Q1", "2024-Q4", by="quarter"),
    )
    small = ic.Domain.of(a=4, b=3)
    rng = np.random.default_rng(1)
    counts = rng.multinomial(20_000, rng.dirichlet(np.ones(domain.size)))
    counts[0], counts[-1] = counts[0] + moved, counts[-1] + 1 - moved
    data = ic.PrivateData(counts, domain)
    session = ic.OnlineIC(data, ic.Budget(10.0, 1e-9), noise=SimulatedNoise(1))

    def load(domain=who, **columns):
        return ic.PrivateData.from_records({**people, **columns}, domain)

    def new_file():
        return folder / f"{next(files)}.db"

    def csv(text, encoding="utf-8"):
        path = folder / f"{next(files)}.csv"
        path.write_text(text, encoding=encoding)
        return path

    def visits(seen, by="month", **more):
        kind = ic.dates("2024-01", "2024-12", by=by, **more)
        return ic.PrivateData.from_records({"seen": [seen]}, ic.Domain.of(seen=kind))

    def paid(**unit):
        columns = {"pay": [1.0, 2.0] * 500}
        return ic.PrivateData.from_records(columns, ic.Domain.of(pay=ic.number(0, 4)), **unit)

    def small_table():
        cells = np.arange(12) * 1000
        cells[3], cells[4] = cells[3] + moved, cells[4] + 1 - moved
        return ic.PrivateData(cells, small)

    def opened(budget=BUDGET, **options):
        return ic.OnlineIC(small_table(), budget, **options)

    def book(**options):
        return ic.OnlineIC.textbook(small_table(), epsilon=1.0, **options)

    def compared(rules, seeds=range(1)):
        options = {"hard_answers": 2, "max_queries": 3}
        return ic.evaluate.compare(small_table(), BUDGET, [where(a=1)], rules, seeds=seeds, **options)

    def kept(name="kept.db"):
        path = new_file()
        shutil.copy(folder / name, path)
        return path

    def least(call):
        """Return the least accuracy that a refusal names."""
        with pytest.raises(InfeasibleAccuracyError) as refused:
            eval(call, world)
        return float(re.search(r"must be >= ([\d.e-]+) at", str(refused.value))[1])

    file = folder / "kept.db"
    with opened(ledger=file, table="census 2026") as one:
        one.answer(where(a=1))
    receipt = one.receipt
    older, newer, cut, busy, open_file = (kept() for _ in range(5))
    with ic.OnlineIC.resume(newer, small_table()) as one:
        one.answer(where(a=2))
    newest = one.receipt
    cut.write_bytes(cut.read_bytes()[:5000])
    held = ic.OnlineIC.resume(busy, small_table())
    total_file = new_file()
    ic.TableBudget(ic.Budget(1.0), ledger=total_file, table="census 2026").close()
    totalled, total = small_table(), ic.TableBudget(BUDGET)
    totalled.draw_on(total)
    closed = opened()
    closed.close()
    used_up_table, asked_before = small_table(), ic.dense(np.eye(small.size)[0])
    used_up = ic.OnlineIC(
        used_up_table,
        ic.Budget(1.0),
        hard_answers=2,
        sparse="laplace",
        threshold=0.001,
        exhausted="raise",
        update=Still(),
    )
    with contextlib.suppress(SessionExhaustedError):
        for cell in np.eye(small.size)[:11]:
            used_up.answer(ic.dense(cell))

    database = databases.opened()
    database.execute("CREATE TABLE people (age INTEGER, sex TEXT)")
    database.executemany("INSERT INTO people VALUES (?, ?)", zip(*people.values(), strict=True))
    parquet = folder / "people.parquet"
    if importlib.util.find_spec("polars") is not None:
        importlib.import_module("polars").DataFrame(people).write_parquet(parquet)

    table_domain = ic.Domain.of(age=range(17, 91), sex=["F", "M"], seen=ic.dates("2024-03-01", "2024-03-31"))
    rows = [f"{17 + i % 74},{'FM'[i % 2]},2024-03-{1 + i % 31:02}" for i in range(2000)]
    rows[7] = rows[7 + moved]  # a neighbour: one record is another
    table_file = csv("\n".join(["age,sex,seen", *rows]))
    dirty_file = csv("\n".join(["age,sex,seen", *rows, f"{odd_number},{odd},2024-03-01"]))
    domain_file, wide_file = folder / "domain.json", folder / "wide.json"
    domain_file.write_text(table_domain.to_json())
    wide_file.write_text(
        '{"age": {"range": [17, 90], "clip": true}, "sex": {"labels": ["F", "M"], "other": true},'
        ' "seen": {"dates": ["2024-03-01", "2024-03-31"], "by": "day"}}'
    )
    questions = folder / "questions.txt"
    questions.write_text('{"age": 30}\n')

    def asked(lines, *options, epsilon="1"):
        files = ("ask", "--csv", table_file, "--domain", domain_file, "--epsilon", epsilon)
        return command(*files, *options, asked=lines)

    answer, table = session.answer(where(sex="F")), session.answer(ic.marginal("sex", "race"))
    world = {
        **{name: getattr(ic, name) for name in ASKING},
        "first": answer,
        "ages": session.answer(ic.marginal("age")),
        "command": command,
        "cube": session.answer(ic.marginal("sex", "race", "educ")),
        "without": session.answer(ic.dense(rng.random(domain.size))),
        "average": session.mean("age"),
        "rising": session.cdf("age"),
        "first_seen": session.median("seen"),
        "other": ic.PrivateData(np.arange(12) * 100, small),
        "open_ledger": SqliteLedger.open(open_file),
        "drafted": '{"sex": {"labels": ["F", "M"], "from rows": "NOT PRIVATE"}}',
        "kinds": (
            "--attribute",
            "age=range 17 90",
            "--attribute",
            "sex=labels F, M",
            "--attribute",
            "seen=skip",
        ),
    }
    world.update({name: value for name, value in locals().items() if name not in ("one", "rows", "files")})
    return {**world, **LIBRARIES}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # every table is small, and opened often
        made = [
            spoilt(tmp_path_factory.mktemp("one"), "Zorro", 4_711, 0),
            spoilt(tmp_path_factory.mktemp("other"), "Quixote", 8_128, 1),
        ]
    yield made
    for world in made:
        world["held"].close()
        world["database"].close()


def state(world):
    """Return all that a refusal must leave as it was: what is spent, released, read, remembered, kept."""
    sessions = [world[name] for name in ("session", "used_up", "closed")]
    tables = [world[name] for name in ("data", "used_up_table", "totalled")]
    return (
        [one.statistics() for one in sessions],
        [len(one.transcript) for one in sessions],
        [(table.reads, table.budgets) for table in tables],
        [world[name].read_bytes() for name in ("file", "older", "newer", "total_file")],
        world["total"].drawn,
        sorted(path.name for path in world["folder"].glob("*.db")),
    )


def refusal(world, call):
    """Return class and message of what a call raises; of the command line exit status and what it said."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            eval(call, world)
        except RefusedError as refused:
            return refused.args
        except Exception as error:
            return type(error).__name__, str(error)
    raise AssertionError(f"accepted: {call}")


def unnamed(world, message):
    """Return a message without the names of files that the test itself has made."""
    return re.sub(r"\b\d+\.(csv|db)\b", "FILE", message.replace(str(world["folder"]), "FOLDER"))


@pytest.mark.parametrize(
    ("section", "kind", "call", "name", "words", "remedy"),
    CALLS,
    ids=[f"{row[0]}: {row[1]}" for row in CALLS],
)
def test_bad_input_is_refused_by_name_and_what_is_told_instead_works(
    worlds, section, kind, call, name, words, remedy
):
    for sign, module in NEEDED.items():
        if sign in call + remedy:
            pytest.importorskip(module)
    told = []
    for world in worlds:
        before = state(world)
        told.append(refusal(world, call))
        assert before == state(world)
    (found, message), other = told

    assert name == found
    assert words in message
    assert (found, unnamed(worlds[0], message)) == (other[0], unnamed(worlds[1], other[1]))
    assert "Zorro" not in message
    assert "4711" not in message
    with warnings.catch_warnings():
        warnings.simplefilter("error" if section == "warnings" else "ignore")
        exec(remedy, worlds[0])


def test_the_catalogue_has_every_kind_once():
    kinds = [(section, kind) for section, kind, *_ in CALLS]

    assert len(kinds) == len(set(kinds))
    assert len(kinds) >= 150
    assert {section for section, _ in kinds} == CATALOGUE.keys()


def test_every_refusal_has_a_name_of_this_package_unless_python_asks_for_its_own():
    names = {name for refused in CATALOGUE.values() for name in refused}

    assert {name for name in names if not hasattr(ic.errors, name)} <= {
        "TypeError",  # of operators, truth values, copies: so that Python and numpy know it
        "AttributeError",
        "AssertionError",  # of the checks of onlineic.testing
        "exit status 1",
        "exit status 2",
    }
