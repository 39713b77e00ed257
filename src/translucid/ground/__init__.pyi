from translucid.ground.console import Console as Console
from translucid.ground.errors import UserError as UserError
from translucid.ground.option_group import OptionGroup as OptionGroup
from translucid.ground.special import SpecialTokens as SpecialTokens
