"""Modules are joined as they are written here, and refused in any other form."""

from __future__ import annotations

import pytest

from skerry.web.assets import APART, ENTRY, STATIC
from skerry.web.bundle import Unjoined, flattened, joined


def texts(files: dict[str, str], apart: frozenset[str] = frozenset()) -> dict[str, str]:
    found = joined({name: text.encode() for name, text in files.items()}, "app/main.js", apart)
    return {name: body.decode() for name, body in found.items()}


def test_what_a_module_needs_comes_before_it_and_once() -> None:
    found = texts(
        {
            "app/main.js": 'import { b } from "./b.js";\nimport { c as d } from "./c.js";\nb(d);\n',
            "app/b.js": 'import { c } from "./c.js";\nexport const b = c;\n',
            "app/c.js": "export function c() {}\n",
        }
    )
    main = found["app/main.js"]
    assert main.index("function c()") < main.index("const b = c;") < main.index("b(d);")
    assert main.count("function c()") == 1
    assert "const { c: d } = $module0;" in main
    assert found["app/c.js"] == (
        'import { $module0 as it } from "./main.js";\nexport const { c } = it;\n'
    )


def test_vendored_modules_are_single_lines() -> None:
    found = texts(
        {
            "app/main.js": 'import f from "../vendor/f.js";\n'
            'export { g } from "../vendor/g.js";\nf();\n',
            "vendor/f.js": "var x=1;export default function(){return x}\n//# sourceMappingURL=f\n",
            "vendor/g.js": 'import{h as i}from"./h.js";var k=i;export{k as g};',
            "vendor/h.js": "let a=2;export{a as h}",
        }
    )
    main = found["app/main.js"]
    assert "const f = $module0.default;" in main
    assert "return { g: $module2.g };" in main
    assert "const { h: i } = $module1;" in main
    assert "sourceMappingURL" not in main
    assert found["vendor/f.js"].endswith("export default it.default;\n")
    assert 'from "../app/main.js"' in found["vendor/f.js"]


def test_what_is_apart_is_imported_and_what_is_fetched_later_is_found_from_there() -> None:
    found = texts(
        {
            "app/main.js": 'import { w } from "./wire.js";\n'
            'import { v } from "./views/v.js";\nv(w);\n',
            "app/wire.js": "export const w = 1;\n",
            "app/views/v.js": 'export const v = () => import("../../vendor/big.js");\n',
        },
        frozenset({"app/wire.js"}),
    )
    main = found["app/main.js"]
    assert main.startswith('import * as $apart0 from "./wire.js";\n')
    assert "const { w } = $apart0;" in main
    assert 'import("./../vendor/big.js")' in main
    assert "app/wire.js" not in found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('import "./effects.js";\n', "is not understood"),
        ('import * as all from "./b.js";\n', "is not understood"),
        ("export let counter = 0;\n", "is not understood"),
        ('import { a } from "./main.js";\n', "imports itself by way of others"),
    ],
)
def test_another_form_is_refused(text: str, why: str) -> None:
    with pytest.raises(Unjoined, match=why):
        texts({"app/main.js": text})


def test_a_style_sheet_has_those_that_it_imports_in_their_place() -> None:
    files = {"style/a.css": b'@import "b.css";\np {}\n', "style/b.css": b"a {}\n"}
    assert flattened(files, "style/a.css") == b"a {}\n\np {}\n"


def test_the_page_of_the_console_can_be_joined() -> None:
    files = {
        path.relative_to(STATIC).as_posix(): path.read_bytes()
        for path in STATIC.rglob("*")
        if path.is_file()
    }
    found = joined(files, ENTRY, APART)
    assert {"app/socket.js", "app/views/fleet.js", "vendor/preact.js"} <= found.keys()
