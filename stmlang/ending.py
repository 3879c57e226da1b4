"""How a process of ours begins and ends: told to stop by Ctrl-C, by SIGTERM or by a terminal that was closed, or of itself.

An exception that a signal raised could come out anywhere: in the middle of an import, of which it makes an ImportError; in a
callback, which swallows it; in C++, which aborts. And the interpreter takes its modules apart while threads of XLA still
compile, which ends in a segmentation fault. So nothing is raised here. A process that is told to stop saves what is to be saved
(`rescuing`), ends its children, takes away files that are not finished (`unfinished`), says so in one line, and leaves by
`os._exit`. That is done by the main thread, or, if that does not come to it because it is in C++, by another one. `held` keeps
a few steps together.

Exit status: 130 by Ctrl-C, 143 by SIGTERM, 129 for a closed terminal, 141 where the reader of our output has left, 1 where the
system does not let us go on, 70 for a fault of ours.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

SIGNALS = {"SIGINT": (130, "interrupted"), "SIGTERM": (143, "terminated"), "SIGHUP": (129, "the terminal was closed")}
REFUSED, INTERNAL, BROKEN_PIPE = 1, 70, 141
EXTRAS = {
    "PIL": "graphs",
    "optax": "demo",
    "sklearn": "demo",
    "threadpoolctl": "demo",
    "matplotlib": "draw",
    "tyro": "demo",
    "typing_extensions": "demo",
    "orbax": "demo",
    "tensorboardX": "tensorboard",
    "safetensors": "safetensors",
    "pygls": "lsp",
    "lsprotocol": "lsp",
    "grain": "images",
    "absl": "images",
}
"""The extra that a module comes with, for what is not always installed."""
NEEDED = (
    "jax",
    "jaxlib",
    "numpy",
    "equinox",
    "jaxtyping",
    "scipy",
    "lark",
    "flatbuffers",
    "rich",
    "shtab",
    "pygments",
    "hypothesis",
    "wadler_lindig",
)
"""What is always installed."""

GRACE = 1.0
"""Seconds that the main thread has to answer a signal."""
LAST = 10.0
"""Seconds after which the process ends whatever it does."""

Rescue = Callable[[], object]

_name = "stmlang"
_rescues: list[Rescue] = []
_unfinished: dict[str, None] = {}
_hold = threading.RLock()
_depth = 0
_waiting: list[int] = []
_begun = threading.Event()
_claim = threading.Lock()
_owner = 0
_said: set[str] = set()
_lost: list[OSError] = []
"""What was to be said on standard error, and could not."""


# --- what is to be done before leaving -------------------------------------------------------------------------------


@contextmanager
def rescuing(rescue: Rescue) -> Generator[None]:
    """Within the block, an interruption calls `rescue` before the process ends; the last one that was named comes first."""
    _rescues.append(rescue)
    try:
        yield
    except KeyboardInterrupt:  # only where this is no process of ours
        rescue()
        raise
    finally:
        _rescues.remove(rescue)


@contextmanager
def unfinished(path: str) -> Generator[None]:
    """Within the block, an interruption removes a file or folder, whether it is there already or not."""
    _unfinished[path] = None
    try:
        yield
    finally:
        _unfinished.pop(path, None)


@contextmanager
def held() -> Generator[None]:
    """An interruption within the block counts once it has ended: for a few steps that belong together."""
    global _depth
    with _hold:
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1
    if _waiting and not _depth:
        _told(_waiting[0], None)


@contextmanager
def shielded() -> Generator[None]:
    """Processes that are started within the block never hear of Ctrl-C: who started them ends them."""
    block: Any = getattr(signal, "pthread_sigmask", None)
    with held():
        before = None if block is None else block(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            if block is not None:
                block(signal.SIG_SETMASK, before)


def output_of(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """What a process writes to standard output. It ends with us. Raises CalledProcessError where it fails."""
    from subprocess import PIPE, CalledProcessError, Popen

    with shielded():
        process = Popen(command, env=environment, stdout=PIPE, text=True)
    with process, rescuing(process.kill):
        output, _ = process.communicate()
    if process.returncode:
        raise CalledProcessError(process.returncode, command)
    return output


# --- being told ------------------------------------------------------------------------------------------------------


def listen(name: str) -> None:
    """Answer signals from now on, as `name`. Those that whoever started us has us ignore stay ignored."""
    global _name
    _name = name
    if os.name == "posix":
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(reading,), daemon=True).start()
    for number in _numbers():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _told)


def _numbers() -> dict[int, tuple[int, str]]:
    return {int(getattr(signal, name)): end for name, end in SIGNALS.items() if hasattr(signal, name)}


def _told(number: int, _: object) -> None:
    """The handler. The main thread runs it, between two steps of Python."""
    if _depth:
        _waiting.append(number)
        return
    _begun.set()
    if _claim.acquire(blocking=False):
        _finish(number)
    if _owner != threading.get_ident():  # another thread is about to end the process
        time.sleep(LAST)
    _leave_at_once(number)  # told again while we were at it


def _watch(reading: int) -> None:
    """Wait for a signal; end the process if the main thread does not."""
    number = 0
    while number not in _numbers():
        number = os.read(reading, 1)[0]
    if not _begun.wait(GRACE) and _claim.acquire(blocking=False):
        threading.Thread(target=_finish, args=(number,), daemon=True).start()
    time.sleep(LAST)
    _leave_at_once(number)


def _finish(number: int) -> NoReturn:
    """Save, clear up, say so, and leave."""
    global _owner
    _owner = threading.get_ident()
    status, words = _numbers()[number]
    held_back = not _hold.acquire(timeout=LAST / 2)
    for rescue in () if held_back else tuple(reversed(_rescues)):
        with suppress(BaseException):
            rescue()
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):
            stream.flush()
    _clear()
    with suppress(OSError):
        os.write(2, f"{_name}: {words}\n".encode())
    os._exit(status)


def _leave_at_once(number: int) -> NoReturn:
    _clear()
    os._exit(_numbers()[number][0])


def _clear() -> None:
    """End our children, and take away what is not finished."""
    with suppress(BaseException):
        if "multiprocessing.process" in sys.modules:
            from multiprocessing import active_children

            for child in active_children():
                child.kill()
    for path in tuple(_unfinished):
        with suppress(OSError):
            if os.path.isdir(path):
                from shutil import rmtree

                rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)


# --- a process of ours -----------------------------------------------------------------------------------------------


def start(command: Callable[[], int | None], name: str = "stmlang") -> NoReturn:
    """Run a command as all that this process does. Its result is the exit status, None stands for 0."""
    open_streams()  # first: what was closed has a number that the next file would get
    listen(name)
    status = outcome(command)
    if status != BROKEN_PIPE:
        status = outcome(sys.stdout.flush) or status
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    _clear()
    os._exit(status or (REFUSED if _lost else 0))


def outcome(command: Callable[[], int | None]) -> int:
    """The exit status of a command, once what went wrong is said."""
    try:
        return command() or 0
    except SystemExit as stop:  # argparse has printed what it had to say
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else REFUSED
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError as error:
        return refused(error)
    except ModuleNotFoundError as error:
        if (words := missing(error)) is None:
            raise
        _say(words)
        return REFUSED
    except Exception:
        from traceback import print_exc

        print_exc()
        return INTERNAL


def require(*modules: str) -> None:
    """Raises ModuleNotFoundError, before much work is done, where one is not installed that will be needed."""
    from importlib.util import find_spec

    for module in modules:
        if find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def missing(error: ModuleNotFoundError) -> str | None:
    """What to install for a module that is not there; None for one that we know nothing of."""
    module = (error.name or "").partition(".")[0]
    wanted = f"'stmlang[{EXTRAS[module]}]'" if module in EXTRAS else "stmlang" if module in NEEDED else None
    return None if wanted is None else f"this needs `{module}`, which is not installed: run `pip install {wanted}`"


def refused(error: OSError) -> int:
    """Say what the system did not let us do, and with what."""
    what = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    reason = error.strerror or str(error) or type(error).__name__
    _say(what + reason[0].lower() + reason[1:])
    return REFUSED


def _say(words: str) -> None:
    """A line on standard error, once: the buffer of a stream that cannot be written says so each time it is flushed."""
    line = "".join(character if character.isprintable() else "\ufffd" for character in f"{_name}: {words}")
    if line not in _said:
        _said.add(line)
        with suppress(OSError, ValueError):
            print(line, file=sys.stderr)


# --- its streams -----------------------------------------------------------------------------------------------------


class _Stream(io.FileIO):
    """Standard output or standard error, which names itself where it cannot be written."""

    def __init__(self, descriptor: int, label: str, required: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.label, self.required = label, required

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except OSError as error:
            if self.required:
                raise OSError(error.errno, error.strerror, self.label) from None
            if error.errno != errno.EIO:  # of a terminal that is gone nobody is to hear
                _lost.append(error)
            return len(data)


def open_streams() -> None:
    """Standard input that was closed reads as empty; a closed standard error is written to as if somebody heard. What cannot be
    written to standard output is an error that names it; so is all that is written where it was closed."""
    for descriptor, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        if (sys.stdin, sys.stdout, sys.stderr)[descriptor] is None:
            opened = os.open(os.devnull, flags)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = _stream(sys.stdout, 1, "standard output", required=True)
    sys.stderr = _stream(sys.stderr, 2, "standard error", required=False)


def _stream(old: Any, descriptor: int, label: str, required: bool) -> io.TextIOWrapper:
    """A text stream of a descriptor. What a terminal cannot show is an escape there, not an error."""
    raw = _Stream(descriptor, label, required)
    encoding = getattr(old, "encoding", None) or "utf-8"
    lines = not required or raw.isatty()
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=lines)
