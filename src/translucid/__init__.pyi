from translucid.api.pivot_translator import PivotTranslator as PivotTranslator
from translucid.api.segment_translator import SegmentTranslator as SegmentTranslator
from translucid.api.translation import Translation as Translation
from translucid.api.translation import Translations as Translations
from translucid.api.translator import Translator as Translator
from translucid.captions.captioner import Captioner as Captioner
from translucid.decoding.decoding_options import DecodingOptions as DecodingOptions
from translucid.ground.errors import UserError as UserError
from translucid.language.embedder import Embedder as Embedder
from translucid.language.generator import Generator as Generator
from translucid.language.text_classifier import TextClassifier as TextClassifier
from translucid.training.train import train as train

__version__: str
