"""Answers in the types of the Language Server Protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from lsprotocol import types

from stmlang.lsp import completion as completing
from stmlang.lsp.colours import COLOURS, MODIFIERS, Painted
from stmlang.lsp.desk import uri_of
from stmlang.lsp.document import Document
from stmlang.lsp.findings import UNUSED, QuickFix, words_of
from stmlang.lsp.hints import Hint
from stmlang.lsp.hover import Hover
from stmlang.lsp.positions import offset_at, place_at
from stmlang.lsp.signature import Signature
from stmlang.lsp.structure import Entry, Fold
from stmlang.lsp.symbols import Kind
from stmlang.source.advice import Edit, Rewrite
from stmlang.source.diagnostic import Diagnostic, Severity
from stmlang.source.span import SourceFile, Span

SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}
_COMPLETED = types.CompletionItemKind
_ITEM_KINDS = {
    Kind.FUNCTION: _COMPLETED.Function,
    Kind.BUILT_IN: _COMPLETED.Function,
    Kind.TOPOLOGY: _COMPLETED.Class,
    Kind.TOPOLOGY_KIND: _COMPLETED.Class,
    Kind.GATE: _COMPLETED.Variable,
    Kind.INPUT: _COMPLETED.Variable,
    Kind.FEATURE: _COMPLETED.Variable,
    Kind.NUMBER: _COMPLETED.Constant,
    Kind.SIZE: _COMPLETED.Constant,
    Kind.CONSTANT: _COMPLETED.Constant,
    Kind.PARAMETER: _COMPLETED.Variable,
    Kind.INDEX: _COMPLETED.Property,
    Kind.ARGUMENT: _COMPLETED.Property,
    Kind.FILE: _COMPLETED.Module,
}
_SYMBOLS = {
    Kind.SCAN: types.SymbolKind.Class,
    Kind.FUNCTION: types.SymbolKind.Function,
    Kind.TOPOLOGY: types.SymbolKind.Struct,
    Kind.GATE: types.SymbolKind.Variable,
}


# --- places


def offset_of(document: Document, position: types.Position) -> int:
    """The offset of a position, moved into the text where it lies outside."""
    return offset_at(document.source, position.line, position.character)


def range_of(span: Span) -> types.Range:
    """A span as a range."""
    return types.Range(*(types.Position(*place_at(span.file, offset)) for offset in (span.start, span.end)))


def uri_in(document: Document, file: SourceFile) -> str:
    """The URI of a file that a document's spans lie in."""
    path = document.paths.get(file.name)
    return document.uri if path is None or file == document.source else uri_of(path)


def location_of(document: Document, span: Span) -> types.Location:
    """Where a span lies that was found in a document."""
    return types.Location(uri_in(document, span.file), range_of(span))


# --- findings


def diagnostic_of(document: Document, diagnostic: Diagnostic) -> types.Diagnostic:
    """A finding with its related places."""
    span = diagnostic.span or Span(document.source, 0, 0)
    related = [
        types.DiagnosticRelatedInformation(location_of(document, label.span), label.message) for label in diagnostic.labels
    ]
    return types.Diagnostic(
        range=range_of(span),
        message=words_of(diagnostic),
        severity=SEVERITIES[diagnostic.severity],
        code=diagnostic.code,
        source="stmlang",
        related_information=related or None,
        tags=[types.DiagnosticTag.Unnecessary] if diagnostic.code in UNUSED else None,
    )


def code_action_of(document: Document, fix: QuickFix, preferred: bool) -> types.CodeAction:
    """A quick fix."""
    edits: dict[str, Sequence[types.TextEdit]] = {
        uri_in(document, fix.rewrite.edits[0].span.file): text_edits(fix.rewrite.edits)
    }
    return types.CodeAction(
        title=fix.title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic_of(document, fix.diagnostic)],
        is_preferred=preferred or None,
        edit=types.WorkspaceEdit(changes=edits),
    )


def text_edits(edits: Iterable[Edit]) -> list[types.TextEdit]:
    """Edits of one text."""
    return [types.TextEdit(range_of(edit.span), edit.text) for edit in edits]


def workspace_edit(rewrites: dict[Document, Rewrite]) -> types.WorkspaceEdit:
    """Edits of several texts."""
    return types.WorkspaceEdit(changes={document.uri: text_edits(rewrite.edits) for document, rewrite in rewrites.items()})


# --- answers


def hover_of(hover: Hover) -> types.Hover:
    """A hover."""
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, hover.text), range_of(hover.span))


def completion_of(item: completing.Item) -> types.CompletionItem:
    """A completion."""
    snippet = item.snippet is not None
    edit = types.TextEdit(range_of(item.span), item.snippet or item.label)
    return types.CompletionItem(
        label=item.label,
        kind=_COMPLETED.Keyword if item.kind is None else _ITEM_KINDS.get(item.kind, _COMPLETED.EnumMember),
        detail=item.detail or None,
        documentation=types.MarkupContent(types.MarkupKind.Markdown, item.more) if item.more else None,
        insert_text_format=types.InsertTextFormat.Snippet if snippet else types.InsertTextFormat.PlainText,
        text_edit=edit,
        additional_text_edits=text_edits(item.edits) or None,
        sort_text=f"{int(item.late)}{item.label}",
    )


def signature_of(signature: Signature) -> types.SignatureHelp:
    """Help for a call."""
    parameters = [types.ParameterInformation(argument) for argument in signature.arguments]
    documentation = types.MarkupContent(types.MarkupKind.Markdown, signature.meaning) if signature.meaning else None
    active = len(parameters) if signature.active is None else signature.active
    return types.SignatureHelp([types.SignatureInformation(signature.label, documentation, parameters)], 0, active)


def hint_of(document: Document, hint: Hint) -> types.InlayHint:
    """An inlay hint."""
    position = types.Position(*place_at(document.source, hint.offset))
    return types.InlayHint(position, hint.label, types.InlayHintKind.Type, padding_left=hint.interval or None)


def symbol_of(entry: Entry) -> types.DocumentSymbol:
    """An entry of the outline."""
    return types.DocumentSymbol(
        name=entry.name,
        kind=_SYMBOLS[entry.kind],
        range=range_of(entry.span),
        selection_range=range_of(entry.name_span),
        detail=entry.detail or None,
        children=[symbol_of(inner) for inner in entry.inside],
    )


def fold_of(fold: Fold) -> types.FoldingRange:
    """A range of lines that can be folded."""
    kinds = {"comment": types.FoldingRangeKind.Comment, "imports": types.FoldingRangeKind.Imports}
    return types.FoldingRange(fold.first - 1, fold.last - 1, kind=kinds.get(fold.kind, types.FoldingRangeKind.Region))


def semantic_tokens(pieces: Iterable[Painted]) -> types.SemanticTokens:
    """Colours as the protocol packs them: each piece by its distance from the one before. None may span lines."""
    numbers: list[int] = []
    line, character = 0, 0
    for piece in pieces:
        place = partial(place_at, piece.span.file)
        (first, start), (last, end) = place(piece.span.start), place(piece.span.end)
        if first != last:
            continue
        flags = sum(1 << MODIFIERS.index(modifier) for modifier in piece.modifiers)
        gap = start - character if first == line else start
        numbers += [first - line, gap, end - start, COLOURS.index(piece.colour), flags]
        line, character = first, start
    return types.SemanticTokens(numbers)


LEGEND = types.SemanticTokensLegend(list(COLOURS), list(MODIFIERS))
