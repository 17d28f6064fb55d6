"""Graphs of ONNX, node by node: operators, constants, and names for all that is between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unbraid.errors import MissingDependencyError, SettingError, install_hint

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET, IR_VERSION = 13, 7
"""What the graphs are written in: of the end of 2020, so that whatever runs ONNX reads them."""


def check_onnx() -> None:
    """Raise a sentence with advice where the package onnx is missing."""
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise MissingDependencyError(
            f"ONNX files need the package onnx, which is not installed: {install_hint('onnx')}."
        ) from None


class Graph:
    """A graph that grows by one node a call; values go by their names.

    Parameters
    ----------
    dtype
        The type of its numbers, "float64" or "float32".
    """

    def __init__(self, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    @property
    def double(self) -> bool:
        """Whether its numbers are of double precision."""
        return self.dtype == np.float64

    @property
    def kind(self) -> int:
        """ONNX's number for the type of its numbers."""
        return self.kind_of(self.dtype)

    @staticmethod
    def kind_of(dtype: npt.DTypeLike) -> int:
        """ONNX's number for a type."""
        from onnx import helper

        return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def node(self, operator: str, *inputs: str, **settings: Any) -> str:
        """What an operator makes of some values."""
        from onnx import helper

        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **settings))
        return name

    def numbers(self, values: npt.ArrayLike) -> str:
        """Constant numbers of the graph's type; refused where that cannot hold them."""
        exact = np.asarray(values, dtype=np.float64)
        with np.errstate(over="ignore"):
            rounded = exact.astype(self.dtype)
        if np.isinf(rounded).any():
            raise SettingError("The model has numbers beyond single precision: export it with dtype='float64'.")
        return self.constant(rounded)

    def axes(self, values: npt.ArrayLike) -> str:
        """Constant whole numbers that say which axes, or where in them."""
        return self.constant(np.asarray(values, dtype=np.int64))

    def places(self, values: npt.ArrayLike) -> str:
        """Constant whole numbers that are places in a table, of which there are many: in four bytes each."""
        return self.constant(np.asarray(values, dtype=np.int32))

    def constant(self, values: npt.NDArray[Any]) -> str:
        """Constants of the type that they have."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values).reshape(values.shape), name))
        return name

    def rename_last(self, name: str) -> None:
        """Give the value of the last node a name that people know."""
        self.nodes[-1].output[0] = name

    def finished(
        self, name: str, inputs: dict[str, list[str | int]], outputs: dict[str, list[str | int]], texts: dict[str, str]
    ) -> ModelProto:
        """The graph as a checked model, with the shapes of what goes in and comes out, and texts for people."""
        from onnx import checker, helper

        into, out = (
            [helper.make_tensor_value_info(value, self.kind, shape) for value, shape in ends.items()]
            for ends in (inputs, outputs)
        )
        graph = helper.make_graph(self.nodes, name, into, out, self.constants)
        versions = {"opset_imports": [helper.make_opsetid("", OPSET)], "ir_version": IR_VERSION}
        model = helper.make_model(graph, producer_name="unbraid", **versions)
        helper.set_model_props(model, texts)
        checker.check_model(model)
        return model
