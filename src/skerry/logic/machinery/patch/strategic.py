"""Strategic Merge Patch: a merge patch that knows which lists are really maps or sets.

The schema says, per list, whether a patch replaces it or merges into it, and by which key its
elements are distinguished. A patch may carry directives:

- ``$patch: replace`` or ``delete`` in a map, or in an element of a merged list;
- ``$retainKeys`` in a map: every other key goes;
- ``$deleteFromPrimitiveList/<list>``: elements to take out of a list of scalars;
- ``$setElementOrder/<list>``: the order the client wants. What only the server has keeps its place
  relative to its neighbours; ties go to the client.

Where the schema is silent (unknown fields, kinds without one) maps merge and lists are replaced.
kube-apiserver answers 500 to some malformed patches (an element without its merge key, a list
where a map should be); they are the client's mistake, so here they are 400 with the same words.
"""

from __future__ import annotations

from typing import Any, Final

from skerry.api.errors import BadRequest, Invalid
from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.patch.values import go_text, go_type, json_kind

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM_LIST: Final = "$deleteFromPrimitiveList"
SET_ORDER: Final = "$setElementOrder"

# Every element with the key of another is merged into the same place, which is copied each time.
# Nobody means more than one.
_MAX_REPEATED: Final = 10
_BAD_ORDER: Final = "invalid patch format of setElementOrder list"
_BAD_RETAIN: Final = "invalid patch format of retainKeys"
_BAD_DELETE: Final = "invalid patch format of primitive list"


def apply_strategic_patch(obj: Object, patch: Any, schema: Schema | None) -> Object:
    """Return *obj* changed as *patch* says, list by list as *schema* says."""
    if not isinstance(patch, dict):
        raise BadRequest(
            f"json: cannot unmarshal {json_kind(patch)} "
            "into Go value of type map[string]interface {}"
        )
    return _merge_map(obj, patch, schema)


def list_strategy(schema: Schema | None) -> tuple[bool, str]:
    """Tell whether patches merge into this list, and the merge key of its elements if maps."""
    if schema is None:
        return False, ""
    return "merge" in schema.patch_strategy, schema.merge_key


def _merge_map(original: Object, patch: Object, schema: Schema | None) -> Object:
    if DIRECTIVE in patch:
        return _directed(patch)
    result = dict(original)
    rest = patch
    if RETAIN_KEYS in patch:
        rest = {key: value for key, value in patch.items() if key != RETAIN_KEYS}
        _retain(result, rest, patch[RETAIN_KEYS])
    ordered = [key for key in rest if key.startswith(SET_ORDER)]
    if ordered:
        rest = dict(rest)
        for key in ordered:
            _merge_ordered(result, rest, key, schema)
    for key, value in rest.items():
        if key.startswith(DELETE_FROM_LIST):
            _delete_from_list(result, _list_name(key, _BAD_DELETE), value)
        else:
            _merge_member(result, key, value, schema)
    return result


def _merge_member(result: Object, key: str, value: Any, schema: Schema | None) -> None:
    """Merge one member of a patch into *result*, which is ours to change."""
    if value is None:
        result.pop(key, None)
        return
    current = result.get(key)
    if isinstance(value, dict) and isinstance(current, dict):
        child = schema.child(key) if schema is not None else None
        replaces = child is not None and "replace" in child.patch_strategy
        result[key] = value if replaces else _merge_map(current, value, child)
    elif isinstance(value, list) and isinstance(current, list):
        child = schema.child(key) if schema is not None else None
        result[key] = _merge_list(current, value, child)
    else:
        _set_new(result, key, value)


def _set_new(result: Object, key: str, value: Any) -> None:
    """Put in a value that has nothing to merge with; a directive alone puts in nothing."""
    if isinstance(value, dict) and DIRECTIVE in value:
        result.pop(key, None)
    else:
        result[key] = plain(value)


def plain(value: Any) -> Any:
    """Return *value* with nothing in it that speaks to a merge, there being nothing to merge with.

    Nulls in maps go, and whatever carries ``$patch``, and directives about lists and keys: kubectl
    writes them into elements that it cannot know to be new.
    """
    if isinstance(value, dict):
        return {
            key: plain(member)
            for key, member in value.items()
            if member is not None and not _has_directive(member) and not _is_directive(key)
        }
    if isinstance(value, list):
        return [plain(element) for element in value if not _has_directive(element)]
    return value


def _is_directive(key: str) -> bool:
    return key[:1] == "$" and key.partition("/")[0] in (RETAIN_KEYS, DELETE_FROM_LIST, SET_ORDER)


def _has_directive(value: Any) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value


def _directed(patch: Object) -> Object:
    """Return what a map that carries ``$patch`` puts in place of the original."""
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, patch: Object) -> BadRequest:
    return BadRequest(f"unknown patch type: {go_text(directive)} in map: {go_text(patch)}")


def _retain(result: Object, patch: Object, wanted: Any) -> None:
    """Drop from *result* every key that *wanted* does not list; the patch may set no other."""
    if not isinstance(wanted, list):
        raise BadRequest(_BAD_RETAIN)
    kept = {key for key in wanted if isinstance(key, str)}
    for key, value in patch.items():
        parallel = key.startswith((DELETE_FROM_LIST, SET_ORDER))
        if value is not None and not parallel and key not in kept:
            raise BadRequest(_BAD_RETAIN)
    for key in [key for key in result if key not in kept]:
        del result[key]


def _list_name(key: str, complaint: str) -> str:
    """Return the list that a ``$directive/<list>`` key speaks of."""
    directive, slash, name = key.partition("/")
    if not slash or directive not in (DELETE_FROM_LIST, SET_ORDER):
        raise BadRequest(complaint)
    return name


def _delete_from_list(result: Object, name: str, gone: Any) -> None:
    current = result.get(name)
    if gone is None:
        result.pop(name, None)
    elif isinstance(current, list) and isinstance(gone, list):
        identities = {_identity(element) for element in gone}
        result[name] = [element for element in current if _identity(element) not in identities]


def _merge_ordered(result: Object, rest: Object, directive: str, schema: Schema | None) -> None:
    """Merge the list that *directive* orders, and take both out of *rest*."""
    order = rest.pop(directive)
    name = _list_name(directive, _BAD_ORDER)
    child = schema.child(name) if schema is not None else None
    _, merge_key = list_strategy(child)
    _require_list(order)
    if name in rest and rest[name] is None:
        return
    current, patched = result.get(name), rest.pop(name, None)
    for present in (current, patched):
        if present is not None:
            _require_list(present)
    if current is None and patched is None:
        return
    _check_order(patched or [], order, merge_key)
    if patched is None:
        merged = current
    elif current is None:
        merged = plain(patched)
    else:
        merged = _merge_list(current, patched, child)
    server_order = _server_order(current or [], patched or [], merge_key)
    result[name] = _in_order(merged or [], order, server_order, merge_key)


def _server_order(current: list[Any], patched: list[Any], merge_key: str) -> list[Any]:
    """Return the order the server's own elements are held to while *patched* is merged.

    In kube-apiserver a new element takes the place that a deleted one leaves at the end of the
    list, so what only the server has goes before it. Clients see that order; so it is kept.
    """
    deleted = {_key_of(item, merge_key) for item in patched if _deletes(item)}
    if not merge_key or not deleted:
        return current
    remaining = [item for item in current if _key_of(item, merge_key) not in deleted]
    known = set(_places(remaining, merge_key))
    new = [
        item
        for item in patched
        if not _has_directive(item) and _key_of(item, merge_key) not in known
    ]
    return remaining + new[: len(current) - len(remaining)]


def _deletes(element: Any) -> bool:
    return isinstance(element, dict) and element.get(DIRECTIVE) == "delete"


def _require_list(value: Any) -> None:
    if not isinstance(value, list):
        raise BadRequest(f"expected a []interface {{}}, but received a {go_type(value)}")


def _check_order(patched: list[Any], order: list[Any], merge_key: str) -> None:
    """Raise unless the patched elements stand in *order* in the same sequence."""
    if not order:
        return
    wanted = iter([_key_of(element, merge_key) for element in order])
    for element in patched:
        if _has_directive(element):
            continue
        key = _key_of(element, merge_key)
        if not any(key == other for other in wanted):
            raise BadRequest(
                f"The order in patch list:\n{go_text(patched)}\n doesn't match {SET_ORDER} "
                f"list:\n{go_text(order)}\n"
            )


def _merge_list(current: list[Any], patch: list[Any], schema: Schema | None) -> list[Any]:
    merges, merge_key = list_strategy(schema)
    if not merges:
        return patch
    if not current and not patch:
        return current
    if not _are_maps(current, patch):
        merged = {_identity(element): element for element in (*current, *patch)}
        return _in_order(list(merged.values()), patch, current, "")
    if not merge_key:
        name = schema.name if schema is not None else ""
        raise BadRequest(f"cannot merge lists without merge key for {name}")
    remaining, additions, replaced = _special_elements(current, patch, merge_key)
    if replaced:
        return additions
    items = schema.items if schema is not None else None
    merged_elements = _merge_elements(remaining, additions, merge_key, items)
    return _in_order(merged_elements, additions, remaining, merge_key)


def _are_maps(current: list[Any], patch: list[Any]) -> bool:
    """Tell whether the elements are maps (rather than scalars); raise if they are mixed."""
    kinds = {_element_kind(element) for element in (*current, *patch)}
    if "list" in kinds:
        raise Invalid("the server rejected our request due to an error in our request")
    if len(kinds) > 1:
        raise BadRequest(f"list element types are not identical: {go_text([current, patch])}")
    return kinds == {"map"}


def _element_kind(element: Any) -> str:
    if isinstance(element, dict):
        return "map"
    if isinstance(element, list):
        return "list"
    if isinstance(element, bool) or element is None:
        return str(element is None)
    return "string" if isinstance(element, str) else "number"


def _special_elements(
    current: list[Any], patch: list[Any], merge_key: str
) -> tuple[list[Any], list[Any], bool]:
    """Obey the elements that carry ``$patch``: what remains, what is added, and if it replaces."""
    additions, replaced = [], False
    gone: set[Any] = set()
    for element in patch:
        if DIRECTIVE not in element:
            additions.append(element)
        elif element[DIRECTIVE] == "delete":
            gone.add(_key_of(element, merge_key))
        elif element[DIRECTIVE] == "replace":
            replaced = True
        elif element[DIRECTIVE] == "merge":
            raise BadRequest("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(element[DIRECTIVE], element)
    remaining = current
    if gone:
        remaining = [i for i in current if _identity(_map(i).get(merge_key)) not in gone]
    return remaining, additions, replaced


def _merge_elements(
    current: list[Any], additions: list[Any], merge_key: str, items: Schema | None
) -> list[Any]:
    merged = list(current)
    # The first of several with one key is the one that is merged into.
    places: dict[Any, int] = {}
    for place, element in enumerate(merged):
        places.setdefault(_identity(_map(element).get(merge_key)), place)
    times: dict[Any, int] = {}
    for addition in additions:
        key = _key_of(addition, merge_key)
        times[key] = times.get(key, 0) + 1
        if times[key] > _MAX_REPEATED:
            raise BadRequest(
                f"merge key {merge_key}: {go_text(addition[merge_key])}: stands in more than "
                f"{_MAX_REPEATED} elements of one patch list"
            )
        if key in places:
            merged[places[key]] = _merge_map(merged[places[key]], addition, items)
        else:
            places[key] = len(merged)
            merged.append(plain(addition))
    return merged


def _in_order(
    merged: list[Any], order: list[Any], server_order: list[Any], merge_key: str
) -> list[Any]:
    """Return *merged* with the client's elements in *order* and the server's own in between.

    Two sorted runs are zipped: an element only the server knows goes before a client's element
    exactly if it stood before it on the server.
    """
    wanted = _places(order, merge_key)
    known = _places(server_order, merge_key)
    keys = [_key_of(element, merge_key) for element in merged]
    clients = sorted(
        (i for i, key in enumerate(keys) if key in wanted), key=lambda i: wanted[keys[i]]
    )
    servers = sorted(
        (i for i, key in enumerate(keys) if key not in wanted), key=lambda i: known.get(keys[i], i)
    )
    result: list[Any] = []
    position = 0
    for client in clients:
        place = known.get(keys[client])
        while place is not None and position < len(servers):
            server_place = known.get(keys[servers[position]])
            if server_place is None or server_place >= place:
                break
            result.append(merged[servers[position]])
            position += 1
        result.append(merged[client])
    result.extend(merged[server] for server in servers[position:])
    return result


def _places(elements: list[Any], merge_key: str) -> dict[Any, int]:
    places: dict[Any, int] = {}
    for place, element in enumerate(elements):
        places.setdefault(_key_of(element, merge_key), place)
    return places


def _key_of(element: Any, merge_key: str) -> Any:
    """Return what tells *element* apart: its merge key's value, or itself in a list of scalars."""
    if not merge_key:
        return _identity(element)
    if merge_key not in _map(element):
        raise BadRequest(
            f"map: {go_text(element)} does not contain declared merge key: {merge_key}"
        )
    return _identity(element[merge_key])


def _map(element: Any) -> Object:
    if not isinstance(element, dict):
        raise BadRequest(f"expected a map[string]interface {{}}, but received a {go_type(element)}")
    return element


def _identity(value: Any) -> Any:
    """Return something hashable that is equal for equal values; ``True`` is not ``1``."""
    if isinstance(value, bool):
        return ("bool", value)
    return go_text(value) if isinstance(value, dict | list) else value
