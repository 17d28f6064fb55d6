"""`unbraid identify`: records in, a file with a dynamic model out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import click
import numpy as np

from unbraid import dynamics, methods
from unbraid.cli.bars import progress_bar
from unbraid.cli.cells import this_command
from unbraid.cli.dynamics.records import Signals, record_options
from unbraid.cli.errors import INTERRUPTED, file_is_there, in_options, kept_on_interrupt
from unbraid.cli.fit import as_rank, check_checkpoint, choose_constraint, kept_in, shape_options
from unbraid.cli.options.bases import basis_options, choose_basis
from unbraid.cli.options.data import OutputFile, check_output
from unbraid.cli.output import MOST_ROWS, json_option, print_table, say, say_document
from unbraid.cli.report import check_report, report_option, say_report
from unbraid.data.checks import counted
from unbraid.dynamics import DynamicFit, Record, RecordError
from unbraid.dynamics.models.state_space import StateSpaceModel
from unbraid.dynamics.reading import describe_record, naming
from unbraid.dynamics.record import check_alike
from unbraid.errors import FileError
from unbraid.fitting.request import Continuing
from unbraid.report.dynamic import write_report
from unbraid.results.outcome import Status
from unbraid.runtime.interrupts import keeping_interrupts_back
from unbraid.runtime.text import clean_name

KINDS = ("state-space", "narx")

EXAMPLES = """\b
Examples:
  unbraid identify record.csv --inputs u --outputs y --order 2 --rank 1 \\
      -o dynamic.npz
  unbraid identify record.csv --inputs u --outputs y --time t \\
      --order 2 --rank 1 -o dynamic.npz --report page.html
  unbraid identify record.npz --dt 0.1 --order 2 --rank 1 \\
      --test record.npz -o dynamic.npz
  unbraid identify record.npz --kind narx --input-lags 0,1 \\
      --output-lags 1,2 --rank 1 -o dynamic.npz
"""


def as_lags(context: click.Context, option: click.Parameter, given: str | None) -> tuple[int, ...]:
    """The lags that an option gives: whole numbers with commas between them."""
    try:
        return tuple(int(part) for part in (given or "").split(",") if part.strip())
    except ValueError:
        raise click.BadParameter(f"{given!r} is no list of whole numbers, such as 1,2.") from None


def auto_option(name: str, text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Make an option that takes a whole number, or auto, which it is by default."""
    return click.option(
        name,
        callback=as_rank,
        metavar="INTEGER|auto",
        shell_complete=lambda context, option, begun: ["auto"] if "auto".startswith(begun) else [],
        default="auto",
        show_default=True,
        help=text,
    )


@click.command("identify", short_help="Find a model of a dynamic system.", epilog=EXAMPLES)
@click.argument("data", nargs=-1, required=True, type=click.Path(path_type=Path))
@record_options
@click.option(
    "--test", multiple=True, type=click.Path(path_type=Path), help="A further record, to be simulated; may be repeated."
)
@click.option("--kind", type=click.Choice(KINDS), default="state-space", show_default=True)
@auto_option("--order", "How many states; auto: as many as the data support.")
@auto_option("--rank", "How many branches; auto: as many as the data support.")
@click.option("--input-lags", callback=as_lags, metavar="LAGS", help="Of a NARX model: moments of u, such as 0,1,2.")
@click.option("--output-lags", callback=as_lags, metavar="LAGS", help="Of a NARX model: moments of y, such as 1,2.")
@basis_options
@shape_options
@click.option(
    "--continuation",
    type=click.Choice(get_args(Continuing)),
    default="auto",
    show_default=True,
    help="How branches go on beyond the range of their inputs, as of fit; auto: as simulates held-out stretches best.",
)
@click.option("--starts", type=int, default=8, show_default=True, help="How many random starts.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the random starts.")
@click.option("--max-seconds", type=float, help="A time limit: the best model until then is written.")
@click.option("-o", "--output", type=OutputFile(), required=True, help="The model, an .npz file of just this name.")
@report_option
@click.option(
    "--checkpoint",
    type=OutputFile(),
    help="A file for the work until now: killed, the same command goes on from there.",
)
@json_option
def command(
    data: tuple[Path, ...],
    signals: Signals,
    test: tuple[Path, ...],
    kind: str,
    order: int | Literal["auto"],
    rank: int | Literal["auto"],
    input_lags: tuple[int, ...],
    output_lags: tuple[int, ...],
    basis_name: str | None,
    df: int | None,
    degree: int | None,
    continuation: Continuing,
    starts: int,
    seed: int,
    max_seconds: float | None,
    output: Path,
    report_path: Path | None,
    checkpoint: Path | None,
    as_json: bool,
    **shapes: bool,
) -> None:
    """Find a model of a dynamic system from records of its inputs u(t) and outputs y(t), evenly sampled.

    DATA is a file with a record, or several files with records of the same system: a table with a row a moment, .csv
    or .parquet, whose columns --inputs and --outputs name; or a file with arrays u and y, (T,) or (T, how many), .npz,
    .mat or .h5. Outputs may have gaps, empty cells or NaN; inputs may not.

    What is found is linear but for a few curves: x⁺ = A x + B u + W_x g(W0 [x; u]), y = C x + D u + W_y g(...), or with
    --kind narx y(t) = L φ + W1 g(W0 φ) + bias, where φ are earlier outputs and inputs.

    Ctrl-C ends the search and keeps the best model found until then; the exit code then is 130.
    """
    form = chosen_form(kind, order, input_lags, output_lags)
    constraint, basis = choose_constraint(shapes), choose_basis(basis_name, df, degree, methods.default())
    read = (*data, *test, *signals.files)
    check_output(output, *read)
    if output.suffix.lower() == ".json":
        raise FileError(f"{output} would not be JSON: dynamic models are written as .npz, so end its name in that.")
    check_report(report_path, output, *read)
    check_checkpoint(checkpoint, output, *read, *filter(None, [report_path]))
    with progress_bar("Identifying") as callback:
        records = [signals.read(path, callback) for path in data]
        fresh = [replace(signals, burn_in=0, period=None).read(path, callback) for path in test]
        for k, (path, one) in enumerate(zip((*data, *test), (*records, *fresh), strict=True), 1):
            with naming(path):
                check_alike(records[0], one, k)
        with kept_on_interrupt(lambda: kept_in(checkpoint)):
            identify = dynamics.state_space if kind == "state-space" else dynamics.narx
            result = identify(
                records,
                rank=rank,
                **form,
                basis=basis,
                constraint=constraint,
                continuation=continuation,
                starts=starts,
                rng=seed,
                callback=callback,
                checkpoint=checkpoint,
                max_seconds=max_seconds,
            )
        with keeping_interrupts_back():
            result.model.save(output)
            file_is_there("model", output)
        errors = []
        for path, one in zip(test, fresh, strict=True):
            with naming(path):
                errors.append(result.error_on(one))
        if report_path is not None:
            shell = this_command("unbraid identify", left_out=("as_json", "checkpoint"))
            with kept_on_interrupt(lambda: f"Interrupted while the report was made: the model is there, in {output}."):
                write_report(result, report_path, test=fresh, command=shell, callback=callback)
    if as_json:
        say_document({**fit_document(result, records, errors, seed, output), "report": report_path})
    else:
        print_fit(result, list(zip(data, records, strict=True)), list(zip(test, errors, strict=True)))
        say(f"Model:  {output}")
        say_report(report_path)
    if result.status is Status.INTERRUPTED:
        raise click.exceptions.Exit(INTERRUPTED)


def chosen_form(
    kind: str, order: int | Literal["auto"], input_lags: tuple[int, ...], output_lags: tuple[int, ...]
) -> dict[str, Any]:
    """The settings that belong to one kind of model, refused where they are another's."""
    if kind == "state-space":
        if input_lags or output_lags:
            raise click.UsageError("--input-lags and --output-lags are of NARX models: add --kind narx, or --order.")
        return {"order": order}
    if order != "auto":
        raise click.UsageError("--order is of state-space models: a NARX model has --input-lags and --output-lags.")
    if not input_lags or not output_lags:
        raise click.UsageError("A NARX model needs --input-lags and --output-lags, such as 0,1,2 and 1,2.")
    return {"input_lags": input_lags, "output_lags": output_lags}


def fit_document(
    result: DynamicFit, records: Sequence[Record], tests: Sequence[RecordError], seed: int, output: Path
) -> dict[str, Any]:
    """What `unbraid identify --json` prints: the fit, its records and its settings."""
    model, shapes = result.model, {None if one is None else one.means for one in result.constraints}
    narx = not isinstance(model, StateSpaceModel)
    return {
        "model": output,
        "kind": KINDS[narx],
        "order": None if narx else getattr(model, "order", None),
        "input_lags": model.input_lags if narx else None,
        "output_lags": model.feedback.lags if narx else None,
        "rank": model.rank,
        "records": len(records),
        "samples": result.simulation_error.samples,
        "inputs": model.nu,
        "outputs": model.ny,
        "output_names": model.output_names,
        "dt": model.dt,
        "taken": [describe_record(one) for one in records],
        "simulation_error": error_document(result.simulation_error),
        "prediction_error": error_document(result.prediction_error),
        "linear_error": error_document(result.linear_error),
        "test_errors": [error_document(one) for one in tests],
        "noise": result.noise,
        "converged": result.status.converged,
        "status": result.status.name,
        "advice": in_options(result.advice),
        "basis": None if result.basis is None else repr(result.basis),
        "constraint": next(iter(shapes)) if len(shapes) == 1 else None,
        "starts": result.starts,
        "seed": seed,
        "seconds": result.seconds,
        "notes": result.notes,
    }


def error_document(error: RecordError) -> dict[str, Any]:
    """An error on records, in a document."""
    names = ("rmse", "percent", "inside", "outside", "outside_share", "samples")
    return {**{name: getattr(error, name) for name in names}, "status": error.status.name}


def print_fit(
    result: DynamicFit, records: Sequence[tuple[Path, Record]], tests: Sequence[tuple[Path, RecordError]]
) -> None:
    """Print how good the model is, and how it came about."""
    model = result.model
    names = [clean_name(name) for name in model.output_names or [f"output {i + 1}" for i in range(model.ny)]]
    columns = {"simulation": result.simulation_error, "one step ahead": result.prediction_error}
    columns |= {"linear model": result.linear_error}
    rows: list[tuple[str, ...]] = [
        (name, *(error_text(one, i) for one in columns.values()), *noise_text(result, i))
        for i, name in enumerate(names)
    ]
    noise = () if result.noise is None else ("noise",)
    print_table("Errors, and in % of the spread of the output", ("", *columns, *noise), rows[:MOST_ROWS])
    if tests:
        rows = [(f"{path}, {name}", error_text(one, i)) for path, one in tests for i, name in enumerate(names)]
        print_table("On further records", ("", "simulation"), rows[:MOST_ROWS])
    for path, record in records:
        say(f"Data:   {path}: {describe_record(record)}.")
    say(f"Found:  {model!r}, {result.basis!r}, {result.seconds:.2f} s.")
    if result.starts:
        say(f"Starts: {len(result.starts)}, {result.close} within 1 % of the best.")
    say(f"Status: {result.status.name}. {in_options(result.advice)}")
    outside = result.simulation_error.outside_share
    if outside:
        say(f"Note: {100.0 * outside:.2g} % of samples lie outside the range that branches are known on.")
    for note in result.notes:
        say(f"Note: {in_options(note)}")
    for path, one in tests:
        if one.outside_share:
            share = f"{100.0 * one.outside_share:.2g} %"
            say(f"Note: {share} of {counted(one.samples, 'sample')} of {path} lie outside that range.")


def error_text(error: RecordError, i: int) -> str:
    """An error of output i: '0.0071 (0.99 %)', 'diverged'."""
    return "diverged" if np.isinf(error.rmse[i]) else f"{error.rmse[i]:.3g} ({error.percent[i]:.3g} %)"


def noise_text(result: DynamicFit, i: int) -> tuple[str, ...]:
    """The noise of output i, where periods tell it."""
    return () if result.noise is None else (f"{result.noise[i]:.3g}",)
