from translucid.runs.configuration import Configuration as Configuration
from translucid.runs.configuration import resolve as resolve
from translucid.runs.corpus_files import Corpora as Corpora
from translucid.runs.presets import all_presets as all_presets
from translucid.runs.run_folder import RunFolder as RunFolder
