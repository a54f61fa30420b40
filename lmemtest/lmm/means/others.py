"""Fits of statsmodels as marginal means see a fit: parameters, their covariance, and the design that a formula makes.

Marginal means need a vector b, its covariance V, and rows of the design at any levels of the columns. A result of
statsmodels has b and V, and its formula keeps what makes the rows: the state of patsy or formulaic, which is asked for
those of the reference grid. Nothing else is taken from the result, so whatever covariance was asked for
(``fit(cov_type="HC3")``) is that of all means and comparisons.
"""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.core.codes import Keys, in_order
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.cells import Cells
from lmemtest.lmm.engine.functions import Functions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array

_RANK = 1e-9  # of the largest singular value of the design with columns of unit size: below it is rounding
_INSIDE = 1e-7  # of its length: what of a row may lie outside the row space of the design
_FEW_GROUPS = 50  # below which the sandwich errors of GEE are too small: Mancl & DeRouen (2001)


@dataclass(frozen=True, kw_only=True, eq=False)
class OtherFit:
    """A result of statsmodels with a formula, which is its own design; rows of its table are cells.

    Attributes
    ----------
    params : pandas.Series
        Coefficients of the columns of the design, `x_names`.
    V : (p, p) float
        Their covariance, as the result has it.
    X : (n, p) float
        The design at the rows of the table.
    cells : Cells
        Those columns of the table that the formula uses, without the rows that statsmodels left out.
    factors, numeric : dict
        Levels of categorical columns; means of the others.
    term_columns : tuple of tuple of str
        The columns of the table in each term.
    offset : (n,) float
        The known part of the linear predictor, the logarithm of an exposure included.
    link : object or None
        Link function of statsmodels; None where means are linear.
    """

    params: pd.Series[float]
    V: Array
    X: Array
    cells: Cells
    factors: dict[str, tuple[Any, ...]]
    numeric: dict[str, float]
    term_columns: tuple[tuple[str, ...], ...]
    offset: Array
    link: Any
    response: str
    spec: Any = field(repr=False)
    df_error: float
    label: str
    formula: str
    notes: tuple[str, ...] = ()
    scope: None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the state of the formula, which patsy does not let go: means and comparisons do not need it."""
        return {**self.__dict__, "spec": None}

    @property
    def design(self) -> OtherFit:
        """Itself."""
        return self

    @property
    def parsed(self) -> OtherFit:
        """Itself."""
        return self

    @property
    def nobs(self) -> int:
        """Rows of the table."""
        return len(self.X)

    @property
    def link_name(self) -> str:
        """Of the link: "logit", "log", ...; empty where means are linear."""
        return "" if self.link is None else type(self.link).__name__.lower()

    @property
    def score(self) -> str:
        """What the linear predictor is of."""
        return self.response if self.link_name in ("", "identity") else f"{self.link_name}({self.response})"

    @property
    def response_function(self) -> None:
        """The response is transformed in the formula, or not at all."""

    @property
    def offset_parts(self) -> bool:
        """Whether a part of the linear predictor is known."""
        return bool(np.any(self.offset))

    def for_ddf(self, asked: str) -> tuple[OtherFit, str, tuple[str, ...]]:
        """Itself, the rule for the degrees of freedom, and what to say of it.

        One variance, estimated by the residuals, has Satterthwaite's degrees of freedom exactly: the residual ones.
        """
        if asked == "kenward-roger":
            raise ArgumentError(
                "ddf='kenward-roger' is for fits of fit_lmm, and this is a result of statsmodels. Leave ddf out."
            )
        if asked == "residual" and not np.isfinite(self.df_error):
            raise ArgumentError(
                f"ddf='residual' needs a result that tests by t, and {self.label} tests by z. Leave ddf out, or fit "
                "with use_t=True."
            )
        by_t = asked != "asymptotic" and np.isfinite(self.df_error)
        return self, ("residual" if by_t else "asymptotic"), self.notes

    def params_and_cov(self, ddf: str, robust: None) -> tuple[Array, Array]:  # noqa: ARG002 - as the result has them
        """Coefficients and their covariance."""
        return self.params.to_numpy(dtype=float), self.V

    def df(self, L: Array | Functions, method: str) -> Array:
        """Degrees of freedom of ``L b``."""
        return np.full(len(L), self.df_error if method == "residual" else np.inf)

    def cov(self, L: Array) -> Array:
        """Covariance of ``L b``."""
        return L @ self.V @ L.T

    @cached_property
    def _row_space(self) -> tuple[Array, Array]:
        """Size of the columns of the design, and an orthonormal basis of its rows at unit size."""
        size = np.sqrt(np.mean(self.X**2, axis=0))
        size[size == 0.0] = 1.0
        _, s, Vt = np.linalg.svd(np.linalg.qr(self.X / size, mode="r"))
        return size, Vt[: int(np.sum(s > _RANK * s[0]))]

    def estimable(self, L: Array | Functions) -> NDArray[np.bool_]:
        """Which functions ``L b`` the data identify: those in the row space of the design."""
        size, basis = self._row_space
        scaled = (L.L if isinstance(L, Functions) else L) / size
        outside = np.linalg.norm(scaled - scaled @ basis.T @ basis, axis=1)
        return np.asarray(outside <= _INSIDE * np.linalg.norm(scaled, axis=1))

    def has_error(self, L: Array | Functions) -> NDArray[np.bool_]:
        """Whether the errors of ``L b`` are known: all are."""
        return np.ones(len(L), dtype=bool)

    def rows(self, keys: Keys) -> Array:
        """The design at combinations of the columns of the table."""
        return _rows(self.spec, keys.frame())


def fit_of(result: Any) -> OtherFit:
    """A result of statsmodels with a formula.

    Raises
    ------
    ArgumentError
        If the result has no formula, a column of its formula is not in its table, or its parameters are not those of
        the columns of one design.
    DataError
        If it cannot be told which rows of its table were used.
    """
    model: Any = getattr(result, "model", None)
    if not hasattr(model, "data"):
        raise ArgumentError(
            f"fit must be a fitted model, got {type(result).__name__} of statsmodels. Give what its fit() returns."
        )
    name = type(model).__name__
    spec = getattr(model.data, "model_spec", None) or getattr(model.data, "design_info", None)
    if spec is None or not hasattr(model.data, "frame"):
        raise ArgumentError(
            f"fit is a result of {name} without a formula, so nothing says which columns are factors. Fit it with one: "
            f"statsmodels.formula.api, or {name}.from_formula('y ~ a', data)."
        )
    X: Array = np.asarray(model.exog, dtype=np.float64)
    b, V = _parameters(result, X.shape[1], name)
    frame = _used(model, len(X))
    terms, categorical = _terms(spec, frame)
    used = list(dict.fromkeys(column for term in terms for column in term))
    frame = frame[used].reset_index(drop=True)
    labels = [column for column in used if column in categorical or not _is_numeric(frame[column])]
    link = getattr(getattr(model, "family", None), "link", None)
    offset = getattr(model, "_offset_exposure", None)
    names = model.endog_names
    y = np.asarray(model.endog, dtype=float)
    ones, keys = np.ones(len(X)), Keys.of([frame[name] for name in used], len(X))
    return OtherFit(
        params=pd.Series(b, index=list(model.exog_names)[: len(b)]),
        V=V,
        X=X,
        cells=Cells(columns=keys, n=ones, weight=ones, mean=y, ss=np.zeros(len(X)), n_rows=len(X)),
        factors={column: _levels(frame[column]) for column in labels},
        numeric={column: float(frame[column].mean()) for column in used if column not in labels},
        term_columns=tuple(terms),
        offset=np.zeros(len(X)) if offset is None else np.broadcast_to(np.asarray(offset, dtype=float), len(X)),
        link=link,
        response=names if isinstance(names, str) else ", ".join(names),
        spec=spec,
        df_error=float(result.df_resid) if result.use_t else np.inf,
        label=name,
        formula=str(model.formula),
        notes=_reservations(result, name),
    )


def _parameters(result: Any, p: int, name: str) -> tuple[Array, Array]:
    """Coefficients of the design and their covariance; of a mixed model those of its fixed part."""
    b = np.asarray(getattr(result, "fe_params", result.params), dtype=float)
    if b.shape != (p,):
        raise ArgumentError(
            f"fit is a result of {name}, which has more than one coefficient per column of its design. emmeans takes "
            "results of OLS, GLM, MixedLM and GEE, and others of one coefficient each."
        )
    return b, np.asarray(result.cov_params(), dtype=float)[:p, :p]


def _used(model: Any, n: int) -> pd.DataFrame:
    """The rows of the table that were used."""
    frame = pd.DataFrame(model.data.frame)
    if len(frame) == n:
        return frame
    rows = getattr(model.data.orig_exog, "index", None)
    if rows is None or len(rows) != n or not frame.index.is_unique:
        raise DataError(
            f"{len(frame) - n} of the {len(frame)} rows of the table were left out of the fit, and its index does not "
            "tell which. Number the rows before the fit: data.reset_index(drop=True)."
        )
    return frame.loc[rows]


def _terms(spec: Any, frame: pd.DataFrame) -> tuple[list[tuple[str, ...]], set[str]]:
    """The columns of the table in each term, and those of them that are categorical there."""
    if hasattr(spec, "factor_infos"):  # patsy
        kinds = {factor.name(): info.type == "categorical" for factor, info in spec.factor_infos.items()}
        terms = [[factor.name() for factor in term.factors] for term in spec.terms]
    else:
        kinds = {code: kind.value == "categorical" for code, (kind, _) in spec.encoder_state.items()}
        terms = [[factor.expr for factor in term.factors if factor.expr != "1"] for term in spec.terms]
    columns = {code: _columns(code, frame) for term in terms for code in term}
    strange = [code for code, names in columns.items() if not names]
    if strange:
        raise ArgumentError(
            f"the formula of fit uses {strange[0]!r}, which is no column of its table, so its values in the reference "
            "grid are not known. Put it into the table as a column, and fit again."
        )
    categorical = {name for code, names in columns.items() if kinds.get(code, False) for name in names}
    return [tuple(dict.fromkeys(name for code in term for name in columns[code])) for term in terms], categorical


def _columns(code: str, frame: pd.DataFrame) -> list[str]:
    """The columns of the table in the code of a factor: ``x`` of ``np.log(x)``, ``a b`` of ``Q("a b")``."""
    if code in frame.columns:
        return [code]
    quoted = re.findall(r"`([^`]+)`", code)
    names: list[Any] = list(quoted)
    with suppress(SyntaxError):
        for node in ast.walk(ast.parse(re.sub(r"`[^`]+`", "None", code), mode="eval")):
            names += [node.id] if isinstance(node, ast.Name) else []
            names += [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
    return [name for name in dict.fromkeys(names) if name in frame.columns]


def _is_numeric(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)


def _levels(column: pd.Series[Any]) -> tuple[Any, ...]:
    """Levels that occur: of a categorical column in its order, of another in that of tables."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        occurring = set(column.unique())
        return tuple(level for level in column.cat.categories if level in occurring)
    return tuple(in_order(column.unique().tolist()))


def _rows(spec: Any, frame: pd.DataFrame) -> Array:
    """Rows of the design, by the library that read the formula."""
    if not hasattr(spec, "factor_infos"):
        return np.asarray(spec.get_model_matrix(frame), dtype=float)
    from patsy.build import build_design_matrices

    return np.asarray(build_design_matrices([spec], frame, NA_action="raise")[0])


def _reservations(result: Any, name: str) -> tuple[str, ...]:
    """What a reader must know of the errors of a result."""
    cov_type = getattr(result, "cov_type", "nonrobust")
    if name == "MixedLM":
        return (
            "Degrees of freedom are infinite, since MixedLM has none: with few groups its tests find too much. "
            "fit_lmm fits the same model with Satterthwaite's.",
        )
    if name.endswith("GEE") and cov_type == "robust" and result.model.num_group < _FEW_GROUPS:
        return (
            f"The standard errors are sandwich errors from {result.model.num_group} groups, which are too small below "
            f"about {_FEW_GROUPS}: fit(cov_type='bias_reduced') corrects them.",
        )
    return () if cov_type in ("nonrobust", "robust") else (f"Standard errors: {cov_type}, as the result has them.",)
