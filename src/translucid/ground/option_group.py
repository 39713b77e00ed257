"""The base class of all groups of options."""

from pydantic import BaseModel, ConfigDict


class OptionGroup(BaseModel):
    """A frozen group of options: unknown keys, infinities and NaN are errors.

    Docstrings below fields describe them; `runs.keys` reads these.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
