from translucid.circuits.dictionary import Dictionary as Dictionary
from translucid.circuits.features import features_of as features_of
from translucid.circuits.quality import measure as measure
from translucid.circuits.steering import Change as Change
from translucid.circuits.steering import Steering as Steering
from translucid.circuits.training import FeatureOptions as FeatureOptions
from translucid.circuits.training import learn_features as learn_features
from translucid.circuits.transcoder import Transcoder as Transcoder
