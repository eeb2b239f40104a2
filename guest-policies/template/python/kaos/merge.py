"""Merges patches. `kaos.patch` has the functions for policies. `kaos.merge_table` has the rules of each type."""

import copy

from kaos.merge_table import NO_RULE, PLAIN, is_directive
from kaos.quote import member
from kaos.refusal import text

_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_ORDER_MISMATCH = "$setElementOrder must list every item of the patch, in the same order"
_NO_KEY = "each item needs the field {}, which identifies it"
_BASE_WITHOUT_KEY = "cannot be merged: an item of the base list has no {}"


class Mistake(Exception):
    """A mistake in a patch, with its path from the root of the patch."""

    def __init__(self, message, path):
        super().__init__(f"{path}: {message}")
        self.message, self.path = message, path


def name_of(item):
    """Returns the name of an item of a list."""
    return item.get("name") if isinstance(item, dict) else None


class Merger:
    """Merges patches. `exclusive` adds a rule for members that exclude each other: such a member in the patch replaces
    the other members, and the merge refuses a patch with two of these members. Go's merge does not have this rule."""

    def __init__(self, exclusive=False):
        self.exclusive = exclusive

    def run(self, base, patch, of):
        """Merges a patch into a copy of the base."""
        base = copy.deepcopy(base)
        if patch is None:
            return base
        if not isinstance(patch, dict):
            raise Mistake("must be an object", "")
        self._check_object(patch, of, "")
        return self._map(base, patch, of, "")

    def _check_object(self, patch, of, path):
        """Checks a patch on its own, without the base."""
        if "$patch" in patch:
            if patch["$patch"] == "delete":
                return
            if patch["$patch"] not in ("replace", "merge"):
                raise Mistake("$patch must be delete, merge or replace", member(path, "$patch"))
        first = None
        for key in sorted(patch):
            # An empty text means unset, as on an API server: `value: ""` is allowed together with `valueFrom`.
            if not self.exclusive or not of.is_rival(key) or patch[key] in (None, ""):
                continue
            if first is not None:
                raise Mistake(f"must not be set together with {first}; remove one of them", member(path, key))
            first = key
        for key in sorted(patch):
            if not is_directive(key):
                self._check_value(patch[key], of.fields.get(key, NO_RULE).of or PLAIN, member(path, key))

    def _check_value(self, patch, of, path):
        if isinstance(patch, dict):
            self._check_object(patch, of, path)
        elif isinstance(patch, list):
            for at, item in enumerate(patch):
                self._check_value(item, of, f"{path}[{at}]")

    def _map(self, base, patch, of, path):
        if patch.get("$patch") == "delete":
            return {}
        if patch.get("$patch") == "replace":
            return fresh(patch)
        _retain(base, patch, path)
        if self.exclusive:
            _make_room(base, patch, of)
        for key in sorted(patch):
            at = member(path, key)
            if key.startswith(_DELETE_FROM):
                _delete_items(base, key.removeprefix(_DELETE_FROM), patch[key], at)
            elif key.startswith(_ORDER):
                field = key.removeprefix(_ORDER)
                if field not in patch:
                    _set_order(base, field, patch[key], of, at)
            elif not is_directive(key):
                self._member(base, key, patch, of, at)
        return base

    def _member(self, base, key, patch, of, path):
        below, overlay, rule = base.get(key), patch[key], of.fields.get(key, NO_RULE)
        # If the patch has no order, `order` is empty. If the patch has the order None, `order` contains this None.
        order = [patch[_ORDER + key]] if _ORDER + key in patch else []
        if isinstance(overlay, dict) and isinstance(below, dict):
            merged = self._map(below, overlay, rule.of if rule.of and not rule.key else PLAIN, path)
        elif isinstance(overlay, list) and isinstance(below, list) and rule.key:
            merged = self._list(below, overlay, rule, order, path)
        elif isinstance(overlay, list) and isinstance(below, list) and rule.is_set:
            merged = _merged_set(below, overlay, order, path)
        else:
            merged = fresh(overlay)
        if merged is not None:
            base[key] = merged
        else:
            base.pop(key, None)

    def _list(self, base, patch, rule, order, path):
        """Merges each item of the patch into the item of the base with the same key."""
        content, deleted, replaces = [], set(), False
        for at, item in enumerate(patch):
            place = f"{path}[{at}]"
            if not isinstance(item, dict):
                raise Mistake("must be an object", place)
            if "$patch" not in item:
                content.append((item, place))
            elif item["$patch"] == "delete":
                deleted.add(_id(item, rule.key, place, _NO_KEY))
            elif item["$patch"] == "replace":
                replaces = True
            else:
                message = f"$patch: merge is not possible in a list; name the item by its {rule.key} instead"
                raise Mistake(message, place)
        if replaces:
            return fresh([item for item, _ in content])
        below = _ids(base, rule.key, path, _BASE_WITHOUT_KEY)
        left = [id for id in below if id not in deleted]
        kept = [item for id, item in zip(below, base) if id not in deleted]
        named = [_id(item, rule.key, place, _NO_KEY) for item, place in content]
        own, known = list(left), _positions(left)
        for (item, place), id in zip(content, named):
            if id in known:
                slot = known[id]
                if isinstance(kept[slot], dict):
                    kept[slot] = self._map(kept[slot], item, rule.of, place)
                continue
            new = fresh(item)
            if new is not None:
                known[id] = len(kept)
                own.append(id)
                kept.append(new)
        if not order:
            return _arrange(kept, own, named, left)
        # Go reuses the slots of deleted items for new items, and treats these new items as items of the base.
        return _arrange(kept, own, _ordered(order[0], rule.key, named, path), own[: len(below)])


def fresh(patch):
    """Returns the value that a patch creates where the base has no value. Returns None if the patch only deletes."""
    if isinstance(patch, dict):
        if patch.get("$patch", "merge") not in ("replace", "merge"):
            return None
        made = {key: fresh(value) for key, value in patch.items() if not is_directive(key)}
        return {key: value for key, value in made.items() if value is not None}
    if isinstance(patch, list):
        # Leave out the items with a directive: they are not content.
        made = [fresh(item) for item in patch if not (isinstance(item, dict) and item.get("$patch") is not None)]
        return [item for item in made if item is not None]
    return patch


def _retain(base, patch, path):
    """Applies $retainKeys: removes every member of the base that the directive does not list."""
    if "$retainKeys" not in patch:
        return
    keys = patch["$retainKeys"]
    if not isinstance(keys, list):
        raise Mistake("must be a list", member(path, "$retainKeys"))
    for key in sorted(patch):
        if patch[key] is not None and not is_directive(key) and key not in keys:
            message = f"$retainKeys must list every field that is set here; {key} is missing"
            raise Mistake(message, member(path, "$retainKeys"))
    for key in [key for key in base if key not in keys]:
        del base[key]


def _make_room(base, patch, of):
    """Removes the members of the base that must not exist together with a member of the patch."""
    if of.by is not None:
        if patch.get(of.by) is not None and text(base.get(of.by)) != text(patch[of.by]):
            base.clear()
    elif any(of.is_rival(key) and patch[key] is not None for key in patch):
        for key in [key for key in base if of.is_rival(key) and patch.get(key) is None]:
            del base[key]


def _delete_items(base, field, gone, path):
    if not isinstance(gone, list):
        raise Mistake("must be a list", path)
    if isinstance(base.get(field), list):
        texts = [text(item) for item in gone]
        base[field] = [item for item in base[field] if text(item) not in texts]


def _set_order(base, field, wanted, of, path):
    """Applies $setElementOrder if the patch does not contain the field."""
    if not isinstance(wanted, list):
        raise Mistake("must be a list", path)
    items = base.get(field)
    if isinstance(items, list):
        key = of.fields.get(field, NO_RULE).key
        order = _ids(wanted, key, path, _NO_KEY)
        below = _ids(items, key, path, _BASE_WITHOUT_KEY)
        base[field] = _arrange(items, below, order, below)


def _merged_set(base, patch, order, path):
    """Merges plain values into one set."""
    both = base + patch
    for at, item in enumerate(patch):
        if isinstance(item, (dict, list)) or _kind(item) != _kind(both[0]):
            raise Mistake("all items must be of one type", f"{path}[{at}]")
    below, named = _ids(base, "", path, _NO_KEY), _ids(patch, "", path, _NO_KEY)
    first = _positions(below + named)
    own, items = list(first), [both[at] for at in first.values()]
    if not order:
        return _arrange(items, own, named, below)
    return _arrange(items, own, _ordered(order[0], "", named, path), below)


def _kind(value):
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def _ids(items, key, path, missing):
    return [_id(item, key, f"{path}[{at}]", missing) for at, item in enumerate(items)]


def _id(item, key, path, missing):
    """Returns the id of an item: the value of the merge key, or the item itself in a list without a merge key. A text
    is its own id, and `8000` differs from `"8000"`."""
    if not key:
        return _plain_id(item)
    if not isinstance(item, dict):
        raise Mistake("must be an object", path)
    if item.get(key) is None:
        raise Mistake(missing.format(key), path)
    # The protocol distinguishes ports with the same number. TCP is the default.
    protocol = item.get("protocol") if key in ("containerPort", "port") else None
    return _plain_id(item[key]) + (protocol if isinstance(protocol, str) and protocol != "TCP" else "")


def _plain_id(value):
    return value if isinstance(value, str) else "\0" + text(value)


def _positions(ids):
    first = {}
    for at, id in enumerate(ids):
        first.setdefault(id, at)
    return first


def _arrange(items, own, wanted, below):
    """Orders items as Go does. Items with an id in `wanted` get the order of `wanted`. The other items keep their
    order. Another item comes before an item of `wanted` only if `below` contains both items in this order."""
    to, before = _positions(wanted), _positions(below)
    named, others = [], []
    for id, item in zip(own, items):
        (named if id in to else others).append((to.get(id), before.get(id), item))
    # The sort is stable, so items with equal ids keep their order.
    named.sort(key=lambda placed: placed[0])
    arranged, next_other = [], 0
    for _, was, item in named:
        while next_other < len(others):
            _, other_was, other = others[next_other]
            if other_was is None or was is None or other_was >= was:
                break
            arranged.append(other)
            next_other += 1
        arranged.append(item)
    return arranged + [other for _, _, other in others[next_other:]]


def _ordered(wanted, key, named, path):
    """Returns the ids of a $setElementOrder list, which must contain all ids of the patch, in the patch's order."""
    if not isinstance(wanted, list):
        raise Mistake(_ORDER_MISMATCH, path)
    order = _ids(wanted, key, path, _NO_KEY)
    rest = order
    for id in named:
        if id not in rest and order:
            raise Mistake(_ORDER_MISMATCH, path)
        rest = rest[rest.index(id) + 1 :] if id in rest else rest
    return order
