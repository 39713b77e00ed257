from translucid.retrieval.engine import with_knn as with_knn
from translucid.retrieval.mixture import Datastore as Datastore
from translucid.retrieval.mixture import Mixture as Mixture
from translucid.retrieval.model import RetrievalModel as RetrievalModel
