"""What every group of options has in common."""

from pydantic import BaseModel, ConfigDict


class OptionGroup(BaseModel):
    """Unchanging; unknown keys and numbers that are none are errors; the strings below its fields describe them."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)
