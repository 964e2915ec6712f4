"""Questions and partitions as JSON values from which the same ones are read, to the bit.

This is the form of the record, made of codes and whole numbers; people write `onlineic.ask.json`. Arrays
of up to 64 numbers are lists, longer ones the bytes of their little-endian numbers in base64.
"""

import base64
import math
from typing import Any

import attrs
import numpy as np

from onlineic._typing import Floats, Ints
from onlineic.domain.domain import Domain
from onlineic.queries.cuts import Cut, is_long
from onlineic.queries.groupings import Grouping
from onlineic.queries.marginals import BoundMarginal, KeyLabels, Question
from onlineic.queries.partitions import Partition
from onlineic.queries.query import Query, _constant, _marked, canonical

LISTED = 64  # numbers that a person may want to read


def floats_to_json(values: Floats) -> Any:
    """Return a float64 array of one axis as JSON: the text of a float is read back to its bits."""
    flat = np.ascontiguousarray(values, np.float64).ravel()
    if flat.size <= LISTED and np.isfinite(flat).all():
        return flat.tolist()
    return {"float64": base64.b64encode(flat.astype("<f8").tobytes()).decode("ascii")}


def floats_from_json(written: Any) -> Floats:
    """Return the array, shape (m,)."""
    if isinstance(written, list):
        return np.array([float(value) for value in written], np.float64)
    return np.frombuffer(base64.b64decode(written["float64"], validate=True), "<f8").astype(np.float64)


def integers_to_json(values: Any) -> Any:
    """Return an array of integers as JSON."""
    flat = np.ascontiguousarray(values, np.int64).ravel()
    if flat.size <= LISTED:
        return flat.tolist()
    if flat.min() >= 0 and flat.max() <= 1:
        return {"bits": base64.b64encode(np.packbits(flat.astype(np.uint8)).tobytes()).decode("ascii")}
    name, kind = ("int32", "<i4") if -(2**31) <= flat.min() <= flat.max() < 2**31 else ("int64", "<i8")
    return {name: base64.b64encode(flat.astype(kind).tobytes()).decode("ascii")}


def integers_from_json(written: Any, shape: tuple[int, ...]) -> Ints:
    """Return the array of this shape, one length of which may be -1: as many as there are."""
    size = math.prod(shape)
    if isinstance(written, list):
        array = np.array([int(value) for value in written], np.int64)
    elif "bits" in written:  # never of a length that is not known
        packed = np.frombuffer(base64.b64decode(written["bits"], validate=True), np.uint8)
        array = np.unpackbits(packed, count=size).astype(np.int64)
    else:
        ((name, text),) = written.items()
        kind = {"int32": "<i4", "int64": "<i8"}[name]
        array = np.frombuffer(base64.b64decode(text, validate=True), kind).astype(np.int64)
    return array.reshape(shape)


def question_to_json(question: Question) -> dict[str, Any]:
    """Return a bound query or cross table as a JSON object."""
    if isinstance(question, BoundMarginal):
        return {
            "marginal": list(question.names),
            "partition": partition_to_json(question.partition),
            "cells": integers_to_json(question.cells),
            **(
                {"keys": [_key_labels_to_json(one) for one in question.key_labels]}
                if question.key_labels
                else {}
            ),
        }
    written: dict[str, Any] = {}
    if question.constant is not None:
        written["constant"] = [question.constant, question.grid_bits]
    tables: list[dict[str, Any]] = []
    if question.box is not None:  # without making factors of it
        boxes = [[*one] for one in zip(question.axes, *question.box, strict=True)]
    else:
        boxes = [[*one.axes, one.low, one.high] for one in question.factors if one.table is None]
        tables = [
            {"axes": list(one.axes), "bits": one.bits, "weights": integers_to_json(one.table)}
            for one in question.factors
            if one.table is not None
        ]
    if boxes:
        written["box"] = boxes
    if tables:
        written["tables"] = tables
    if question.complement:
        written["complement"] = True
    if question.rounding:
        written["rounding"] = question.rounding
    return written


def _key_labels_to_json(key_labels: KeyLabels) -> dict[str, Any]:
    """Return what a key is called, and its groups."""
    return {"name": key_labels.name, "labels": list(key_labels.labels), "ordered": key_labels.ordered}


def _key_labels_from_json(written: dict[str, Any]) -> KeyLabels:
    return KeyLabels(str(written["name"]), tuple(written["labels"]), bool(written["ordered"]))


def question_from_json(written: dict[str, Any], domain: Domain) -> Question:
    """Return the question, bound to the domain; its sensitivity is computed anew, and never read."""
    if "marginal" in written:
        names = tuple(str(name) for name in written["marginal"])
        key_labels = tuple(map(_key_labels_from_json, written.get("keys", ())))
        sizes = [len(one.labels) for one in key_labels] or [domain.attribute(name).size for name in names]
        cells = integers_from_json(written["cells"], tuple(sizes))
        made = tuple(
            Grouping("told", name, (one,)) for name, one in zip(names, key_labels, strict=bool(key_labels))
        )
        return BoundMarginal(
            names,
            partition_from_json(written["partition"], domain),
            cells,
            groupings=made,
            key_labels=key_labels,
        )
    rounding = float(written.get("rounding", 0.0))
    if "constant" in written:
        value, bits = map(int, written["constant"])
        return _constant(domain, False, value, bits, rounding)
    joint: dict[tuple[int, ...], tuple[int, int] | Floats] = {}
    for axis, low, high in written.get("box", ()):
        joint[(axis,)] = (low, high)
    finest = fractional = 0
    for table in written.get("tables", ()):
        axes, bits = tuple(table["axes"]), int(table["bits"])
        weights = integers_from_json(table["weights"], tuple(domain.shape[axis] for axis in axes))
        joint[axes] = np.ldexp(weights.astype(np.float64), -bits)
        finest, fractional = max(finest, bits), fractional + (bits > 0)
    query = canonical(domain, written.get("complement", False), joint, finest * fractional)
    return _marked(attrs.evolve(query, rounding=rounding)) if rounding else query


def partition_to_json(partition: Partition) -> dict[str, Any]:
    """Return a partition: of every axis "each" code, the codes at which a block `starts`, or all labels."""
    classes: list[Any] = []
    for cut in partition.cuts:
        labels = cut.labels
        if labels is None:
            whole = cut.parts == cut.size
            classes.append("each" if whole else {"starts": integers_to_json(cut.firsts[1:])})
            continue
        steps = np.diff(labels)
        if labels[0] == 0 and (steps == 1).all():
            classes.append("each")
        elif labels[0] == 0 and ((steps == 0) | (steps == 1)).all():
            classes.append({"starts": integers_to_json(np.flatnonzero(steps) + 1)})
        else:
            classes.append({"labels": integers_to_json(labels)})
    return {"axes": list(partition.axes), "classes": classes}


def partition_from_json(written: dict[str, Any], domain: Domain) -> Partition:
    """Return the partition of the domain."""
    held: list[Cut | Ints] = []
    for axis, form in zip(written["axes"], written["classes"], strict=True):
        size = domain.shape[axis]
        if form == "each":
            held.append(np.arange(size))
        elif "starts" in form:
            starts = integers_from_json(form["starts"], (-1,))
            if is_long(domain.attributes[axis]):
                held.append(Cut.at(size, np.append(0, starts)))
                continue
            cuts = np.zeros(size, np.int64)
            cuts[starts] = 1
            held.append(np.cumsum(cuts))
        else:
            held.append(integers_from_json(form["labels"], (size,)))
    return Partition(domain, tuple(written["axes"]), held)


def target_to_json(target: Query | Partition) -> dict[str, Any]:
    """Return what was measured."""
    if isinstance(target, Partition):
        return {"partition": partition_to_json(target)}
    return {"query": question_to_json(target)}


def target_from_json(written: dict[str, Any], domain: Domain) -> Query | Partition:
    """Return what was measured."""
    if "partition" in written:
        return partition_from_json(written["partition"], domain)
    found = question_from_json(written["query"], domain)
    if not isinstance(found, Query):
        raise TypeError
    return found
