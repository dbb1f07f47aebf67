"""The command line: one module per group of commands; heavy imports live inside the commands."""

from __future__ import annotations

import os
import sys

from stillroom.cli.signals import CODES, code_of, end_on_signals, farewell

INTERNAL_FAULT = 1


def main() -> None:
    """Run `stillroom`; every way it can end has its exit code."""
    end_on_signals()
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        code = _run(arguments)
    except (KeyboardInterrupt, SystemExit) as end:
        signalled = code_of(end)
        if signalled is None:
            raise
        code = signalled
    if code in CODES:
        print(farewell(arguments, code), file=sys.stderr)
    return code


def _run(arguments: list[str]) -> int:
    import click
    from click.exceptions import NoArgsIsHelpError

    from stillroom.cli.app import app
    from stillroom.cli.misuse import misused
    from stillroom.errors import BadInput, StillroomError
    from stillroom.extras import EXTRA_OF, unloaded

    try:
        result = app(args=arguments, prog_name="stillroom", standalone_mode=False)
    except StillroomError as error:
        _explain(error)
        return error.exit_code
    except click.UsageError as error:
        if isinstance(error, NoArgsIsHelpError):
            error.show()
        else:
            _explain(misused(error))
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except MemoryError:
        _explain(
            BadInput(
                "there is not enough memory",
                where=" ".join(arguments[:1]),
                why="something could not be read or computed as a whole",
                remedy="give smaller files, or use a machine with more memory",
            )
        )
        return BadInput.exit_code
    except ModuleNotFoundError as fault:
        package = (fault.name or "").partition(".")[0]
        if package not in EXTRA_OF or os.environ.get("STILLROOM_TRACEBACK"):
            return _unexpected(fault)
        why, extra = "this command needs it", EXTRA_OF[package]
        where = " ".join(arguments[:1])
        _explain(unloaded(package, where, why, absent=True, extra=extra))
        return BadInput.exit_code
    except BrokenPipeError:
        # The reader of our output has closed it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as fault:
        # A file that ends too early is no wish to abort, though typer takes it for one.
        return _unexpected(fault.__cause__ or fault if isinstance(fault, click.Abort) else fault)
    # Typer turns Ctrl-C into a code of its own, which is the same one.
    return result if isinstance(result, int) else 0


def _unexpected(fault: BaseException) -> int:
    if os.environ.get("STILLROOM_TRACEBACK"):
        raise fault
    return _fault(fault)


def _fault(fault: BaseException) -> int:
    """The message of a foreign exception may quote data, so only its kind and place are shown."""
    place = fault.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else "unknown"
    print(
        f"error: internal fault ({type(fault).__name__})\n  where: {where}\n"
        "  what to do: report it; STILLROOM_TRACEBACK=1 shows the whole trace, which may "
        "quote data",
        file=sys.stderr,
    )
    return INTERNAL_FAULT


def _explain(error: object) -> None:
    from stillroom.cli.printing import printable

    parts = [
        ("error", "what"),
        ("where", "where"),
        ("why it matters", "why"),
        ("what to do", "remedy"),
    ]
    for place, (title, field) in enumerate(parts):
        # The name of a file may hold escapes that a terminal obeys.
        text = printable(getattr(error, field))
        if text:
            print(f"{'' if place == 0 else '  '}{title}: {text}", file=sys.stderr)
