"""128-bit keys: found where a dictionary finds them."""

from __future__ import annotations

import random
import uuid

import numpy as np
import pyarrow as pa

from pipeline.results.keys import Keys, raw_array, raw_column, raw_keys, uuid_array


def test_keys_are_found_as_a_dictionary_finds_them() -> None:
    numbers = random.Random(1)
    high = [numbers.randrange(40) for _ in range(500)]  # few, so that many keys share their upper half
    values = [uuid.UUID(int=h << 64 | numbers.randrange(1 << 64)) for h in high]
    keys, order = Keys.sorted_from(raw_keys([str(one) for one in values]))
    assert [values[i] for i in order] == sorted(values)
    by_value = {one: place for place, one in enumerate(sorted(values))}
    asked = [*numbers.sample(values, 200), *(uuid.UUID(int=numbers.randrange(1 << 128)) for _ in range(50))]
    asked += [uuid.UUID(int=(41 << 64)), uuid.UUID(int=0), uuid.UUID(int=(1 << 128) - 1)]
    found = keys.find(raw_keys([str(one) for one in asked])).tolist()
    assert found == [by_value.get(one, -1) for one in asked]
    assert len(keys) == 500
    assert (keys.raw() == raw_keys([str(one) for one in sorted(values)])).all()


def test_nothing_is_found_among_nothing() -> None:
    keys, _ = Keys.sorted_from(np.empty((0, 16), np.uint8))
    assert keys.find(raw_keys([str(uuid.uuid4())])).tolist() == [-1]
    assert keys.find(raw_keys([])).tolist() == []


def test_uuids_go_through_arrow_as_uuids() -> None:
    values = [uuid.uuid4() for _ in range(5)]
    column = pa.chunked_array([[str(values[0])], [str(one) for one in values[1:]]])
    array = uuid_array(raw_column(column))
    assert array.to_pylist() == values
    assert (raw_array(array.slice(2)) == raw_keys([str(one) for one in values[2:]])).all()
