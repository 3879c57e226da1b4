"""STM0xxx: reading a text, its characters, its words and its grammar."""

from __future__ import annotations

SYNTAX: dict[str, tuple[str, str]] = {
    "STM0001": (
        "file not found",
        "No file of this name exists. Paths are taken relative to the current directory; a spec of the installed library "
        "is named `std:folder/name`.",
    ),
    "STM0002": (
        "not a file",
        "The path names a folder, a pipe or a device. A spec is one regular text file.",
    ),
    "STM0003": (
        "unreadable file",
        "The file exists and the operating system refused to read it, most often for want of permission.",
    ),
    "STM0004": (
        "text too large",
        "A text may hold up to 1 MiB and 100,000 words, signs and comments, which keeps every check of it fast. Larger graphs "
        'belong into a graph file: `dag from "file"`.',
    ),
    "STM0005": (
        "not UTF-8",
        "A spec is a text in UTF-8, with or without a byte order mark. The message names the first byte that is not.",
    ),
    "STM0006": (
        "control character",
        "The text holds a zero byte or another control character. It is most likely not a text, or was saved as UTF-16.",
    ),
    "STM0007": (
        "file of another kind",
        "The file is an artifact, an archive, a graph file or Python, and no spec. Artifacts are looked into by "
        "`stmlang inspect`, what `stmlang fuzz` saved is replayed by its `--replay`, and a spec takes its topology from a "
        'graph file by `dag from "file"`.',
    ),
    "STM0101": (
        "stray character",
        "The character has no meaning in the language outside a comment.",
    ),
    "STM0102": (
        "sign or word of another language",
        "The sign is how another language, or a typeset formula, writes something that is written differently here: "
        "powers are `^`, equations `=`, comments start with `#`, an edge is `->`, the minus is the one on the keyboard. "
        "There are no conditions, loops or assignments.",
    ),
    "STM0103": (
        "malformed number",
        "Numbers are decimal: `1`, `.5`, `2.5e-3`. Digits are needed after a point and after an exponent's `e`, and a "
        "number may not run into a name. A number has to fit into double precision.",
    ),
    "STM0104": (
        "unterminated string",
        "A path between quotes ends on the line on which it begins.",
    ),
    "STM0105": (
        "not an ASCII name",
        "Names are made of the letters a-z and A-Z, digits and `_`, and do not start with a digit, so that they can be "
        "typed and told apart anywhere. An index may end in a prime, `key'`.",
    ),
    "STM0201": (
        "unexpected word or sign",
        "The text up to here is fine, and what follows cannot continue it. The message lists what could.",
    ),
    "STM0202": (
        "bracket never closed",
        "A bracket was opened and the line, the item or the text ends before it is closed. The label shows where it was "
        "opened.",
    ),
    "STM0203": (
        "bracket without a partner",
        "A closing bracket stands where none is open, or where one of another kind is.",
    ),
    "STM0204": (
        "nested too deeply",
        "Brackets, leading minus signs and powers may be nested 100 deep, all together. Name a part in an equation of its "
        "own and use the name.",
    ),
    "STM0205": (
        "missing `=`",
        "An equation is a name, its indices in square brackets if it has any, `=`, and a value.",
    ),
    "STM0206": (
        "reserved word",
        "`topology`, `scan`, `def` and `use` begin an item and cannot name anything; `directions`, `stabilize`, "
        "`normalize` and `read` begin a setting and cannot name a gate.",
    ),
    "STM0207": (
        "missing comma",
        "The entries of a list are separated by commas.",
    ),
    "STM0208": (
        "missing value",
        "A value was expected: a number, a name, a call, or something in parentheses, with a minus in front if need be.",
    ),
    "STM0209": (
        "line goes on",
        "An item, an equation or a setting ends with its line or at a `;`. A line goes on where a bracket is open, where "
        "it ends with an operator, `=` or a comma, and where the next one begins with an operator.",
    ),
    "STM0210": (
        "outside a scan",
        "Equations and settings stand between the braces of a scan. Outside, a text holds `topology`, `def`, `use` and "
        "`scan` items.",
    ),
}
