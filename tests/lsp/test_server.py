"""The command `stmlang lsp` as an editor meets it: a process, spoken to over its pipes by pygls' client."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

from stmlang.lsp.desk import uri_of
from stmlang.lsp.structure import format_source
from stmlang.source.span import SourceFile

TEXT = """# stmlang: rows=4, cols=4
use shared (opened)

scan turning(key = 4, value = 4) on grid(rows, cols) {
    pace[out] = opened(2) # 😀 é
    source[out] = pace
    transition[out, in] = 0.25
}
"""
SHARED = "def opened(start) = sigmoid(linear(x, bias = start))\n"


class Editor:
    """One text in an editor, and what it is told."""

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client, self.uri, self.version = client, uri_of(folder / "main.stm"), 0
        self.told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.document = types.TextDocumentIdentifier(self.uri)

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # pyright: ignore[reportUntypedFunctionDecorator]
        def tell(said: types.PublishDiagnosticsParams) -> None:
            self.told.put_nowait(said)

    async def write(self, text: str) -> list[types.Diagnostic]:
        """Change the text, and wait for what is said of it."""
        self.version += 1
        if self.version == 1:
            item = types.TextDocumentItem(self.uri, "stm", 1, text)
            self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        else:
            whole = types.TextDocumentContentChangeWholeDocument(text)
            name = types.VersionedTextDocumentIdentifier(self.version, self.uri)
            self.client.text_document_did_change(types.DidChangeTextDocumentParams(name, [whole]))
        while True:
            said = await asyncio.wait_for(self.told.get(), 60)
            if said.uri == self.uri and said.version == self.version:
                return list(said.diagnostics)


async def session(folder: Path, use: Callable[[Editor], Awaitable[None]]) -> int:
    """Start the server, use it, end it as an editor does; its exit status."""
    (folder / "main.stm").write_text(TEXT, encoding="utf-8")
    (folder / "shared.stm").write_text(SHARED, encoding="utf-8")
    client = LanguageClient("tests", "1")
    editor = Editor(client, folder)
    await client.start_io(sys.executable, "-m", "stmlang", "lsp", cwd=str(folder))
    folders = [types.WorkspaceFolder(uri_of(folder), "tests")]
    answer = await client.initialize_async(types.InitializeParams(types.ClientCapabilities(), workspace_folders=folders))
    assert answer.server_info is not None
    assert answer.server_info.name == "stmlang"
    client.initialized(types.InitializedParams())
    await use(editor)
    await client.shutdown_async(None)
    client.exit(None)
    process = client._server  # pyright: ignore[reportPrivateUsage]
    assert process is not None
    status = await asyncio.wait_for(process.wait(), 30)
    await client.stop()
    return status


def test_a_session(tmp_path: Path) -> None:
    assert asyncio.run(asyncio.wait_for(session(tmp_path, _session), 120)) == 0


async def _session(editor: Editor) -> None:
    client, document = editor.client, editor.document
    assert await editor.write(TEXT) == []
    await _findings(editor)
    await _words(editor)
    await _names(editor)
    # What no position of the text is, and what no text is.
    for line, character in ((4, 29), (99, 0), (0, 2**31 - 1)):
        await client.text_document_hover_async(types.HoverParams(document, types.Position(line, character)))
        await client.text_document_completion_async(types.CompletionParams(document, types.Position(line, character)))
    for text in ("\0", "😀" * 5, "scan s on chain(t {\n", ""):
        said = await editor.write(text)
        assert bool(said) == bool(text)
        tokens = await client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(document))
        assert tokens is not None


async def _findings(editor: Editor) -> None:
    """A mistake, its places in UTF-16, and its fix."""
    wrong = TEXT.replace("    source[out] = pace", "    source[out] = opend(pace) # 😀")
    said = await editor.write(wrong)
    assert [(entry.code, entry.severity) for entry in said] == [("STM1002", types.DiagnosticSeverity.Error)]
    context = types.CodeActionContext(said)
    actions = await editor.client.text_document_code_action_async(
        types.CodeActionParams(editor.document, said[0].range, context)
    )
    assert actions is not None
    action = actions[0]
    assert isinstance(action, types.CodeAction)
    assert action.edit is not None
    assert action.edit.changes is not None
    (edit,) = action.edit.changes[editor.uri]
    assert (edit.new_text, edit.range) == ("opened", said[0].range)
    twice = TEXT.replace("    source[out] = pace", "    😀; pace[out] = 2; source[out] = pace")
    said = await editor.write(twice)
    stray = next(entry for entry in said if entry.code == "STM0101")
    assert (stray.range.start, stray.range.end) == (types.Position(5, 4), types.Position(5, 6))
    said = await editor.write(TEXT.replace("    source", "    pace[out] = 2\n    source"))
    assert said[0].related_information is not None
    assert said[0].related_information[0].location.range.start.line == 4
    assert await editor.write(TEXT) == []


async def _words(editor: Editor) -> None:
    client, document = editor.client, editor.document
    whole = types.Range(types.Position(0, 0), types.Position(99, 0))
    shown = await client.text_document_hover_async(types.HoverParams(document, types.Position(3, 6)))
    assert shown is not None
    assert isinstance(shown.contents, types.MarkupContent)
    assert "**Plan** for 16 nodes" in shown.contents.value
    items = await client.text_document_completion_async(types.CompletionParams(document, types.Position(5, 20)))
    assert isinstance(items, list | tuple)
    assert "pace" in {item.label for item in items}
    help = await client.text_document_signature_help_async(types.SignatureHelpParams(document, types.Position(4, 23)))
    assert help is not None
    assert help.signatures[0].label == "opened(start)"
    hints = await client.text_document_inlay_hint_async(types.InlayHintParams(document, whole))
    assert hints is not None
    assert [(hint.position.line, hint.label) for hint in hints] == [
        (4, " in [0, 1]"),
        (5, "[out]"),
        (5, " in [0, 1]"),
    ]
    edits = await client.text_document_formatting_async(
        types.DocumentFormattingParams(document, types.FormattingOptions(4, True))
    )
    assert edits is not None
    lines = [str(line) for line in TEXT.splitlines(keepends=True)]
    (edit,) = edits
    lines[edit.range.start.line : edit.range.end.line] = [edit.new_text]
    assert "".join(lines) == format_source(SourceFile("a", TEXT))
    folds = await client.text_document_folding_range_async(types.FoldingRangeParams(document))
    assert folds is not None
    assert [(fold.start_line, fold.end_line) for fold in folds] == [(3, 7)]
    symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
    assert symbols is not None
    assert [symbol.name for symbol in symbols] == ["turning"]
    tokens = await client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(document))
    assert tokens is not None
    assert len(tokens.data) % 5 == 0


async def _names(editor: Editor) -> None:
    client, document = editor.client, editor.document
    place = types.Position(4, 18)
    found = await client.text_document_definition_async(types.DefinitionParams(document, place))
    assert isinstance(found, types.Location)
    assert (Path(found.uri).name, found.range.start) == ("shared.stm", types.Position(0, 4))
    context = types.ReferenceContext(include_declaration=True)
    used = await client.text_document_references_async(types.ReferenceParams(context, document, place))
    assert used is not None
    assert sorted((Path(entry.uri).name, entry.range.start.line) for entry in used) == [
        ("main.stm", 1),
        ("main.stm", 4),
        ("shared.stm", 0),
    ]
    marks = await client.text_document_document_highlight_async(types.DocumentHighlightParams(document, types.Position(5, 19)))
    assert marks is not None
    assert [mark.range.start.line for mark in marks] == [4, 5]
    edit = await client.text_document_rename_async(types.RenameParams(document, place, "wide"))
    assert edit is not None
    assert edit.changes is not None
    assert sorted((Path(uri).name, len(edits)) for uri, edits in edit.changes.items()) == [("main.stm", 2), ("shared.stm", 1)]
    with pytest.raises(JsonRpcException, match="`sigmoid` is a built-in function"):
        await client.text_document_rename_async(types.RenameParams(document, place, "sigmoid"))
    # Another text that is imported changes: this one is checked again.
    other = types.TextDocumentItem(uri_of(Path(found.uri.removeprefix("file://"))), "stm", 1, SHARED.replace("opened", "shut"))
    client.text_document_did_open(types.DidOpenTextDocumentParams(other))
    while True:
        said = await asyncio.wait_for(editor.told.get(), 60)
        if said.uri == editor.uri:
            assert [entry.code for entry in said.diagnostics] == ["STM1023"]
            break
    client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(other.uri)))
