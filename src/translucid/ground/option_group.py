"""The base class of all groups of options."""

from pydantic import BaseModel, ConfigDict


class OptionGroup(BaseModel):
    """A frozen group of options: unknown keys, infinities and NaN are errors; docstrings below fields describe them."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)
