from translucid.lessons.lessons import LESSONS as LESSONS
from translucid.lessons.lessons import Lesson as Lesson
from translucid.lessons.recording import log_odds as log_odds
from translucid.lessons.recording import without_each_head as without_each_head
from translucid.lessons.runs import context_run as context_run
from translucid.lessons.runs import demo_run as demo_run
from translucid.lessons.runs import recurrent_run as recurrent_run
from translucid.lessons.runs import translated as translated
