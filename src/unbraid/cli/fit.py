"""`unbraid fit`: samples in, a model file out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import click

from unbraid import methods
from unbraid.bases.constraints import CONSTRAINTS, Constraint
from unbraid.cli.bars import progress_bar
from unbraid.cli.cells import scheduler_option, this_command
from unbraid.cli.errors import INTERRUPTED, file_is_there, in_options, kept_on_interrupt
from unbraid.cli.look import say_look
from unbraid.cli.options.bases import basis_options, choose_basis
from unbraid.cli.options.data import (
    OUTPUT_ENDING,
    OutputFile,
    ask_for_outputs,
    check_output,
    named_files,
    sample_options,
)
from unbraid.cli.output import (
    error_columns,
    error_rows,
    fit_quality,
    json_option,
    print_table,
    say,
    say_document,
)
from unbraid.cli.report import check_report, report_option, say_report
from unbraid.data.checks import counted
from unbraid.decouple import decouple
from unbraid.errors import FileError
from unbraid.fitting.request import LOSSES, Continuing
from unbraid.methods import Method
from unbraid.methods.base import Polish
from unbraid.reading import Samples
from unbraid.reading.columns import Columns
from unbraid.reading.problems import read_samples
from unbraid.report import write_report
from unbraid.results.advice import on_held_out
from unbraid.results.fit import Fit
from unbraid.results.outcome import Status
from unbraid.runtime.files import check_writable
from unbraid.runtime.interrupts import keeping_interrupts_back
from unbraid.solvers.coupling import as_coupling

METHODS: dict[str, Callable[[], Method]] = {
    "default": methods.default,
    "dejonghe2025": methods.dejonghe2025,
    "decuyper2022": methods.decuyper2022,
    "dreesen2015": methods.dreesen2015,
    "hollander2017": methods.hollander2017,
    "zniyed2021": methods.zniyed2021,
}
SHAPES: dict[str, type[Constraint]] = {one.means: one for one in CONSTRAINTS}


def shape_options(function: click.decorators.FC) -> click.decorators.FC:
    """Add one flag per constraint, --increasing and so on."""
    for name in reversed(SHAPES):
        function = click.option(f"--{name}", is_flag=True, help=f"All branches {name}, certified.")(function)
    return function


def as_rank(context: click.Context, option: click.Parameter, given: str) -> int | Literal["auto"]:
    """The rank that --rank gives: a whole number, or auto."""
    if given == "auto":
        return "auto"
    try:
        return int(given)
    except ValueError:
        raise click.BadParameter(f"{given!r} is neither a whole number nor auto.") from None


EXAMPLES = """\b
Examples with arrays:
  unbraid fit samples.npz --rank 3 -o model.npz
  unbraid fit samples.npz --rank auto -o model.npz
  unbraid fit samples.npz --missing mask --rank 3 -o model.npz
  unbraid fit folder --rank 3 -o model.npz
  unbraid fit X.npy --outputs F.npy --jacobians J.npy --rank 3 -o model.npz
  unbraid fit samples.mat --rank 3 -o model.npz
  unbraid fit samples.mat --inputs U --outputs Y --layout samples-first \\
      --rank 3 -o model.npz
  unbraid fit samples.mat --inputs data/train/X --outputs data/train/F \\
      --rank 3 -o model.npz

\b
Examples with tables, their columns by name, by pattern or from first to last:
  unbraid fit samples.csv --outputs y1,y2 --rank auto -o model.npz
  unbraid fit samples.csv --outputs y1 --missing drop --categories \\
      --rank auto -o model.npz
  unbraid fit samples.csv --inputs x1,x2 --outputs y1,y2 --rank 3 -o model.npz
  unbraid fit samples.csv --inputs 'x*' --outputs y1:y9 --rank 3 -o model.npz
  unbraid fit samples.parquet --inputs 'x*' --outputs 'y*' \\
      --jacobians 'd{output}/d{input}' --rank 3 -o model.npz
"""


@click.command("fit", short_help="Decouple the samples in a file.", epilog=EXAMPLES)
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--rank",
    callback=as_rank,
    metavar="INTEGER|auto",
    shell_complete=lambda context, option, begun: ["auto"] if "auto".startswith(begun) else [],
    required=True,
    help="How many branches; auto: as many as the data support.",
)
@sample_options
@basis_options
@shape_options
@click.option("--coupling", type=float, help="Weight of values against Jacobians; the method's own by default.")
@click.option("--starts", type=int, default=16, show_default=True, help="How many random starts.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the random starts.")
@click.option(
    "--loss",
    type=click.Choice(LOSSES),
    default="squared",
    show_default=True,
    help="huber: samples that do not belong to the others count less, or not at all.",
)
@click.option("--method", type=click.Choice(list(METHODS)), default="default", show_default=True)
@click.option("--max-sweeps", type=int, help="Budget of sweeps per start; the method's own by default.")
@click.option("--max-steps", type=int, help="Budget of Gauss–Newton steps per polished start.")
@click.option(
    "--continuation",
    type=click.Choice(get_args(Continuing)),
    default="auto",
    show_default=True,
    help="How branches go on beyond the range of their inputs; auto: as far as the data determine it.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Processes; all cores by default where that gains anything. Same model."
)
@scheduler_option("Spread the starts over the Dask cluster at this address; the model is the same.")
@click.option("-o", "--output", type=OutputFile(), required=True, help=f"The model, {OUTPUT_ENDING}.")
@report_option
@click.option(
    "--checkpoint",
    type=OutputFile(),
    help="A file for the work until now: killed, the same command goes on from there.",
)
@json_option
def command(
    data: Path,
    rank: int | Literal["auto"],
    columns: Columns,
    basis_name: str | None,
    df: int | None,
    degree: int | None,
    coupling: float | None,
    starts: int,
    seed: int,
    loss: Literal["squared", "huber"],
    method: str,
    max_sweeps: int | None,
    max_steps: int | None,
    continuation: Continuing,
    jobs: int | None,
    scheduler: str | None,
    output: Path,
    report_path: Path | None,
    checkpoint: Path | None,
    as_json: bool,
    **shapes: bool,
) -> None:
    """Decouple the samples in DATA: points X, values F and Jacobians J, of which F or J may be missing.

    DATA is a file with arrays X (S, m), F (S, n) and J (S, n, m): .npz, MATLAB's .mat, HDF5 (.h5), or a folder with
    X.npy, F.npy and J.npy. Or it is a table with one sample a row, .csv or .parquet, whose columns are named with
    --outputs, --inputs (by default all others that hold numbers) and --jacobians. An array `weights` (S,), or the
    column that --weights names, says how much each sample counts.

    Ctrl-C ends the search and keeps the best model found until then; the exit code then is 130. With --checkpoint the
    same command goes on with the search, after Ctrl-C as after a crash.
    """
    constraint = choose_constraint(shapes)
    solver = choose_method(method, coupling, max_sweeps, max_steps)
    basis = choose_basis(basis_name, df, degree, solver)
    check_output(output, data, *named_files(columns))
    check_report(report_path, output, data, *named_files(columns))
    check_checkpoint(checkpoint, output, data, *named_files(columns), *filter(None, [report_path]))
    columns = ask_for_outputs(data, columns, as_json)
    with progress_bar("Decoupling") as callback:
        samples = read_samples(data, columns, callback)
        look = samples.problem.look()
        with kept_on_interrupt(lambda: kept_in(checkpoint)):
            result = decouple(
                samples.problem,
                rank,
                basis=basis,
                constraint=constraint,
                method=solver,
                starts=starts,
                continuation=continuation,
                loss=loss,
                rng=seed,
                jobs=jobs,
                client=scheduler,
                callback=callback,
                checkpoint=checkpoint,
            )
        with keeping_interrupts_back():
            result.model.save(output)
            file_is_there("model", output)
        if report_path is not None:
            shell = this_command("unbraid fit", left_out=("jobs", "scheduler", "as_json", "checkpoint"))
            with kept_on_interrupt(lambda: f"Interrupted while the report was made: the model is there, in {output}."):
                write_report(result, report_path, command=shell, callback=callback)
    if as_json:
        document = fit_document(result, samples, starts, seed, output)
        say_document({**document, "odd": [str(one) for one in look], "report": report_path})
    else:
        say_look(look)
        result = replace(result, notes=tuple(note for note in result.notes if note not in map(str, look)))
        # An interrupted selection ends with a quick fit, from fewer starts; any other fit was to have all of them.
        print_fit(result, samples, len(result.starts) if rank == "auto" else starts, output)
        say_report(report_path)
    if result.status is Status.INTERRUPTED:
        raise click.exceptions.Exit(INTERRUPTED)


def check_checkpoint(checkpoint: Path | None, *others: Path) -> None:
    """Refuse a checkpoint that cannot be written, or that is another file of this command, before any work is done."""
    if checkpoint is None:
        return
    check_writable(checkpoint)
    if any(checkpoint.resolve() == other.resolve() for other in others):
        raise FileError(f"{checkpoint} cannot be both the checkpoint and another file of this command.")


def kept_in(checkpoint: Path | None) -> str | None:
    """What Ctrl-C leaves where it comes before there is a model: the checkpoint, if there is one."""
    if checkpoint is None or not checkpoint.exists():
        return None
    return f"Interrupted before there was a model: the same command goes on from {checkpoint}."


def choose_constraint(shapes: dict[str, bool]) -> Constraint | None:
    """The one constraint that was asked for, or None."""
    chosen = [name for name in SHAPES if shapes[name]]
    if len(chosen) > 1:
        given = " and ".join(f"--{name}" for name in chosen)
        raise click.UsageError(f"Branches can be given one shape, got {given}: keep one of them.")
    return SHAPES[chosen[0]]() if chosen else None


def choose_method(name: str, coupling: float | None, max_sweeps: int | None, max_steps: int | None = None) -> Method:
    """The method, with its own settings where none were given."""
    method = METHODS[name]()
    if coupling is not None:
        if not method.coupled:
            raise click.UsageError(f"--coupling is for methods with a λ, and {name} has none.")
        method = replace(method, coupling=as_coupling(coupling))
    if max_sweeps is not None:
        method = replace(method, stopping=replace(method.stopping, max_sweeps=max_sweeps))
    if max_steps is not None:
        if method.polish is None:
            raise click.UsageError(f"--max-steps is for methods with a polish, and {name} has none.")
        method = replace(method, polish=Polish.with_budget(max_steps, None))
    return method


def fit_document(result: Fit, samples: Samples, asked: int, seed: int, output: Path) -> dict[str, Any]:
    """What `unbraid fit --json` prints: the fit, its data and its settings."""
    problem, [constraint] = samples.problem, set(result.constraints)
    return {
        "model": output,
        "rank": result.model.rank,
        "samples": problem.S,
        "inputs": problem.m,
        "outputs": problem.n,
        "output_names": problem.output_names,
        "taken": in_options(samples.taken),
        **fit_quality(result),
        "constraint": None if constraint is None else constraint.means,
        "starts": {
            "asked": asked,
            "made": len(result.starts),
            "finished": sum(start.finished for start in result.starts),
            "agreeing": result.agreeing,
        },
        "seed": seed,
        "notes": result.notes,
    }


def print_fit(result: Fit, samples: Samples, starts: int, output: Path) -> None:
    """Print how good the model is, how it came about and where it went."""
    outputs = None if result.output_errors is None else list(result.output_errors)
    held = result.held_out
    rows = error_rows(result.jacobian_error, outputs, samples.problem.output_names or (), held)
    where = " on the samples" if held is None else ""
    print_table(f"Errors{where}, rank {result.model.rank}", error_columns(held), rows)
    if held is not None:
        share = f"; about {100.0 * held.outside:.2g} % of them lie outside the range seen" if held.outside else ""
        say(f"New:    points like these samples, of which each was left out once{share}.")
    say(f"Data:   {counted(samples.problem.S, 'sample')}, {in_options(samples.taken)}.")
    say(f"Method: {result.method}, {result.basis!r}, {result.seconds:.2f} s.")
    if result.smoothing is not None:
        say(f"Chosen: {result.smoothing}; {result.noise}.")
    say(f"Starts: {result.agreement}.")
    say(f"Status: {result.status.name}. {in_options(result.status.advice)}")
    if result.status is Status.INTERRUPTED:
        finished = sum(start.finished for start in result.starts)
        say(f"Interrupted: {finished} of {starts} starts were finished, and this is the best model found until then.")
    for note in result.notes:
        say(f"Note: {in_options(note)}")
    advice = on_held_out(result)
    if advice is not None:
        say(f"Note: {in_options(advice)}")
    say(f"Model:  {output}")
