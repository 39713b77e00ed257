from translucid.circuits.dictionary import Dictionary as Dictionary
from translucid.circuits.transcoder import Transcoder as Transcoder
