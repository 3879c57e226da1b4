"""The language server: messages in, answers out.

Requests are answered by one worker, one after the other, so that changes of a text are taken in while it thinks; a request
that is cancelled before its turn is never begun. Texts come whole: nothing that an editor believes of positions can make them
differ.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from stmlang.lsp import protocol
from stmlang.lsp.colours import painted
from stmlang.lsp.completion import completion
from stmlang.lsp.desk import Desk, path_of, settle
from stmlang.lsp.document import Document
from stmlang.lsp.findings import findings, quick_fixes
from stmlang.lsp.hints import hints
from stmlang.lsp.hover import hover
from stmlang.lsp.navigation import Refused, definition, references, renamable, rename
from stmlang.lsp.signature import signature_help
from stmlang.lsp.structure import folds, formatting, outline

Answer = TypeVar("Answer")

PAUSE = 0.1
"""Seconds without another change after which a text is checked."""
REST = 2.0
"""Seconds after that in which nothing changed, after which memory is tidied up."""


def serve(search_path: Sequence[Path], target: str, version: str, debug: bool = False) -> None:
    """Answer on standard input and output until the editor leaves. Plans that are shown are for `target`."""
    if not debug:
        logging.getLogger("pygls").setLevel(logging.CRITICAL)
    worker = ThreadPoolExecutor(1, "stmlang")
    settle()
    try:
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:  # pygls closes what it writes to
            made(Desk(search_path), target, version, worker).start_io(stdout=out)
    finally:
        worker.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Thinker:
    """What answers questions about the texts on a desk, in a thread of its own."""

    desk: Desk
    worker: ThreadPoolExecutor

    async def ask(self, uri: str, question: Callable[[Document], Answer]) -> Answer | None:
        """What there is to say of a document, as it is when its turn comes; None where there is none."""

        def answer() -> Answer | None:
            document = self.desk.get(uri)
            return None if document is None else question(document)

        return await asyncio.get_running_loop().run_in_executor(self.worker, answer)


def made(desk: Desk, target: str, version: str, worker: ThreadPoolExecutor) -> LanguageServer:
    """A server over some texts."""
    server, thinker = LanguageServer("stmlang", version, types.TextDocumentSyncKind.Full), Thinker(desk, worker)
    _texts(server, desk, thinker)
    _names(server, thinker)
    _words(server, target, thinker)
    _views(server, thinker)
    return server


def _texts(server: LanguageServer, desk: Desk, thinker: Thinker) -> None:
    """Texts come and go, and are checked."""
    pending: dict[str, asyncio.Task[None]] = {}

    def publish(uri: str, version: int | None, shown: list[types.Diagnostic]) -> None:
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, shown, version))

    async def check(uri: str, version: int | None, pause: float) -> None:
        await asyncio.sleep(pause)
        shown = await thinker.ask(uri, lambda text: [protocol.diagnostic_of(text, entry) for entry in findings(text)])
        publish(uri, version, shown or [])
        await asyncio.sleep(REST)
        await asyncio.get_running_loop().run_in_executor(thinker.worker, gc.collect)

    def later(uri: str, version: int | None, pause: float = PAUSE) -> None:
        if uri in pending:
            pending[uri].cancel()
        pending[uri] = asyncio.get_running_loop().create_task(check(uri, version, pause))

    def again(besides: str = "") -> None:
        """Other texts may import what has changed."""
        for uri in desk.dependants(besides):
            later(uri, None)

    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        folders = [path_of(folder.uri) for folder in server.workspace.folders.values()]
        desk.roots = [folder for folder in folders if folder is not None]

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(parameters: types.DidOpenTextDocumentParams) -> None:
        text = parameters.text_document
        desk.put(text.uri, text.text)
        later(text.uri, text.version, 0.0)
        again(text.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(parameters: types.DidChangeTextDocumentParams) -> None:
        text = parameters.text_document
        desk.put(text.uri, parameters.content_changes[-1].text)
        later(text.uri, text.version)
        again(text.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(parameters: types.DidCloseTextDocumentParams) -> None:
        uri = parameters.text_document.uri
        desk.drop(uri)
        if uri in pending:
            pending.pop(uri).cancel()
        publish(uri, None, [])
        again()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(_: types.DidChangeWatchedFilesParams) -> None:
        desk.refresh()
        again()


def _names(server: LanguageServer, thinker: Thinker) -> None:
    """Where names are declared and used, and other names for them."""

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def declared(parameters: types.DefinitionParams) -> types.Location | None:
        def answer(text: Document) -> types.Location | None:
            span = definition(text, protocol.offset_of(text, parameters.position))
            return None if span is None else protocol.location_of(text, span)

        return await thinker.ask(parameters.text_document.uri, answer)

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def used(parameters: types.ReferenceParams) -> list[types.Location] | None:
        def answer(text: Document) -> list[types.Location]:
            places = references(text, protocol.offset_of(text, parameters.position), thinker.desk.others(text))
            wanted = [(other, entry) for other, entry in places if parameters.context.include_declaration or not entry.declares]
            return [types.Location(other.uri, protocol.range_of(entry.span)) for other, entry in wanted]

        return await thinker.ask(parameters.text_document.uri, answer)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def highlighted(parameters: types.DocumentHighlightParams) -> list[types.DocumentHighlight] | None:
        def answer(text: Document) -> list[types.DocumentHighlight]:
            places = references(text, protocol.offset_of(text, parameters.position), ())
            write, read = types.DocumentHighlightKind.Write, types.DocumentHighlightKind.Read
            return [
                types.DocumentHighlight(protocol.range_of(entry.span), write if entry.declares else read) for _, entry in places
            ]

        return await thinker.ask(parameters.text_document.uri, answer)

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepared(parameters: types.PrepareRenameParams) -> types.Range | None:
        def answer(text: Document) -> types.Range:
            return protocol.range_of(_agreed(renamable(text, protocol.offset_of(text, parameters.position))))

        return await thinker.ask(parameters.text_document.uri, answer)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def renamed(parameters: types.RenameParams) -> types.WorkspaceEdit | None:
        def answer(text: Document) -> types.WorkspaceEdit:
            offset = protocol.offset_of(text, parameters.position)
            return protocol.workspace_edit(_agreed(rename(text, offset, parameters.new_name, thinker.desk.others(text))))

        return await thinker.ask(parameters.text_document.uri, answer)


def _agreed(answer: Answer | Refused) -> Answer:
    """An answer; what is refused is told to whoever asked."""
    if isinstance(answer, Refused):
        raise JsonRpcInvalidParams(answer.reason)
    return answer


def _words(server: LanguageServer, target: str, thinker: Thinker) -> None:
    """What is said of a word, and what could be written in its place."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hovered(parameters: types.HoverParams) -> types.Hover | None:
        def answer(text: Document) -> types.Hover | None:
            shown = hover(text, protocol.offset_of(text, parameters.position), target)
            return None if shown is None else protocol.hover_of(shown)

        return await thinker.ask(parameters.text_document.uri, answer)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["[", "(", ".", "=", "+", "-"]))
    async def completed(parameters: types.CompletionParams) -> list[types.CompletionItem] | None:
        def answer(text: Document) -> list[types.CompletionItem]:
            return [protocol.completion_of(item) for item in completion(text, protocol.offset_of(text, parameters.position))]

        return await thinker.ask(parameters.text_document.uri, answer)

    @server.feature(types.TEXT_DOCUMENT_SIGNATURE_HELP, types.SignatureHelpOptions(trigger_characters=["(", ","]))
    async def called(parameters: types.SignatureHelpParams) -> types.SignatureHelp | None:
        def answer(text: Document) -> types.SignatureHelp | None:
            shown = signature_help(text, protocol.offset_of(text, parameters.position))
            return None if shown is None else protocol.signature_of(shown)

        return await thinker.ask(parameters.text_document.uri, answer)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix]))
    async def fixed(parameters: types.CodeActionParams) -> list[types.CodeAction] | None:
        def answer(text: Document) -> list[types.CodeAction]:
            start, end = (protocol.offset_of(text, place) for place in (parameters.range.start, parameters.range.end))
            fixes = quick_fixes(text, start, end)
            return [protocol.code_action_of(text, fix, len(fixes) == 1) for fix in fixes]

        return await thinker.ask(parameters.text_document.uri, answer)


def _views(server: LanguageServer, thinker: Thinker) -> None:
    """A text as a whole: its colours, its outline, hints between its words, its canonical form."""

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def hinted(parameters: types.InlayHintParams) -> list[types.InlayHint] | None:
        def answer(text: Document) -> list[types.InlayHint]:
            start, end = (protocol.offset_of(text, place) for place in (parameters.range.start, parameters.range.end))
            return [protocol.hint_of(text, hint) for hint in hints(text, start, end)]

        return await thinker.ask(parameters.text_document.uri, answer)

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    async def formatted(parameters: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        return await thinker.ask(parameters.text_document.uri, lambda text: protocol.text_edits(formatting(text)))

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    async def folded(parameters: types.FoldingRangeParams) -> list[types.FoldingRange] | None:
        return await thinker.ask(parameters.text_document.uri, lambda text: [protocol.fold_of(fold) for fold in folds(text)])

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def outlined(parameters: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
        return await thinker.ask(
            parameters.text_document.uri, lambda text: [protocol.symbol_of(entry) for entry in outline(text)]
        )

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, protocol.LEGEND)
    async def coloured(parameters: types.SemanticTokensParams) -> types.SemanticTokens | None:
        return await thinker.ask(parameters.text_document.uri, lambda text: protocol.semantic_tokens(painted(text)))
