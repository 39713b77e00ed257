from translucid.live.delays import Latency as Latency
from translucid.live.delays import latency as latency
from translucid.live.delays import mean_latency as mean_latency
from translucid.live.policies import POLICIES as POLICIES
from translucid.live.policies import Policy as Policy
from translucid.live.policies import Proposal as Proposal
from translucid.live.session import LiveOptions as LiveOptions
from translucid.live.session import LiveSession as LiveSession
