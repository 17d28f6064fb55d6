"""Dynamic models as C99: a function that goes one moment ahead, around the function that static models have."""

from __future__ import annotations

from itertools import pairwise

from unbraid.dynamics.export.portable import PortableRecursion, as_recursion
from unbraid.dynamics.models.base import DynamicModel
from unbraid.export.c import Program
from unbraid.export.comments import names_listed
from unbraid.export.files import Options

DECLARATIONS = """\
#define ${NAME}_STATES $states
#define ${NAME}_INPUTS $nu
#define ${NAME}_OUTPUTS $ny

#ifdef __cplusplus
extern "C" {
#endif

/* Put the system at rest; $state_text. */
void ${name}_reset($real x[${NAME}_STATES]);

/* Go one moment ahead under the inputs u: y are the outputs of this moment, and x becomes the state of the next. */
void ${name}_step($real x[${NAME}_STATES], const $real u[${NAME}_INPUTS], $real y[${NAME}_OUTPUTS]);

#ifdef __cplusplus
}
#endif
"""
LINEAR = """\
static const $real L[$n][$m] = $L;
"""
NONLINEAR_PART = """\
/* W1 g(W0 phi) + bias, where phi is called x. */
static """
STEP = """\
void ${name}_reset($real x[${NAME}_STATES])
{
    static const $real rest[${NAME}_STATES] = $rest;
    int k;
    for (k = 0; k < ${NAME}_STATES; k++)
        x[k] = rest[k];
}

void ${name}_step($real x[${NAME}_STATES], const $real u[${NAME}_INPUTS], $real y[${NAME}_OUTPUTS])
{
    $real phi[$m], f[$n];
    int i, k;
$gathered
    nonlinear_part(phi, f);
    for (i = 0; i < $n; i++)
        for (k = 0; k < $m; k++)
            f[i] += L[i][k] * phi[k];
$shifted
    for (i = 0; i < ${NAME}_OUTPUTS; i++)
        y[i] = $observed;
}
"""


def write(model: DynamicModel, options: Options) -> dict[str, bytes]:
    """The file and its header."""
    return StepProgram(as_recursion(model), options).files()


class StepProgram(Program):
    """A dynamic model in C: a step, and a return to rest."""

    slopes = False
    promise = "without allocation; all state is in x, so that systems may run side by side"

    def __init__(self, recursion: PortableRecursion, options: Options) -> None:
        super().__init__(recursion.function, options)
        self.recursion = recursion
        self.words |= {
            "NAME": self.name.upper(),
            "states": recursion.states,
            "nu": recursion.nu,
            "ny": recursion.ny,
            "state_text": recursion.state_text(),
        }

    def about(self) -> list[str]:
        """What the program computes, and what wrote it."""
        return self.recursion.about()

    def signals(self) -> list[str]:
        """What u and y are called."""
        recursion = self.recursion
        return [
            "Inputs:",
            *names_listed([f"u[{k}]" for k in range(recursion.nu)], recursion.input_names),
            "Outputs:",
            *names_listed([f"y[{i}]" for i in range(recursion.ny)], recursion.output_names),
        ]

    def calls(self) -> str:
        """What a program that uses it calls."""
        return f"{self.name}_reset(x) once and {self.name}_step(x, u, y) every moment"

    def declarations(self) -> str:
        """Sizes, and the two functions."""
        return self.filled(DECLARATIONS)

    def body(self) -> str:
        """The matrices, the nonlinear part, and the two functions."""
        n, ny = self.recursion.function.n, self.recursion.ny
        step = self.filled(
            STEP,
            rest=self.table(self.recursion.rest),
            gathered="\n".join(self.gathered()),
            shifted="\n".join(self.shifted()),
            observed=f"f[{n - ny} + i]" if n > ny else "f[i]",
        )
        linear = self.filled(LINEAR, L=self.table(self.recursion.L))
        return "\n".join([linear + self.matrices(), NONLINEAR_PART + self.values("nonlinear_part"), step])

    def gathered(self) -> list[str]:
        """Lines that put φ together from x and u, a loop for each run of neighbours."""
        places, states = self.recursion.places, self.recursion.states
        breaks = [k for k, (a, b) in enumerate(pairwise(places), 1) if b != a + 1 or b == states]
        lines = []
        for begin, end in pairwise([0, *breaks, len(places)]):
            source, first = ("u", places[begin] - states) if places[begin] >= states else ("x", places[begin])
            lines += loop(end - begin, at("phi", begin), at(source, first))
        return lines

    def shifted(self) -> list[str]:
        """Lines that make x the state of the next moment: what is there moves on, and f and u come before it."""
        recursion = self.recursion
        kept, q, nu = recursion.kept_outputs, recursion.fed, recursion.nu
        lines = moved_on(0, kept, q) + loop(q, "x[k]", "f[k]")
        if recursion.states > kept:
            lines += moved_on(kept, recursion.states, nu) + loop(nu, at("x", kept), "u[k]")
        return lines


def at(array: str, begin: int) -> str:
    """Entry k behind a place of an array."""
    return f"{array}[{begin} + k]" if begin else f"{array}[k]"


def loop(count: int, target: str, source: str) -> list[str]:
    """Lines that copy entries one by one."""
    return [f"    for (k = 0; k < {count}; k++)", f"        {target} = {source};"]


def moved_on(begin: int, end: int, by: int) -> list[str]:
    """Lines that move entries of x, from `begin` to before `end`, by some places; the last ones first."""
    if end - begin <= by:
        return []
    return [f"    for (k = {end - 1}; k >= {begin + by}; k--)", f"        x[k] = x[k - {by}];"]
