from translucid.distillation.distilling import distill as distill
from translucid.distillation.report import Bounds as Bounds
from translucid.distillation.report import Report as Report
from translucid.distillation.request import Request as Request
