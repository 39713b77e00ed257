# The server on a CPU. To build and run it: docs/install.md.
# For builds that can be repeated, name the base by its digest: --build-arg BASE=python:3.11-slim@sha256:…
ARG BASE=python:3.11-slim

FROM ${BASE} AS built
# The builds of PyTorch without CUDA: 0.8 GB instead of 5.
ARG PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
# Without any (EXTRAS=), the image has no PyTorch: it translates and serves, but does not train or look into models.
# `serve,train,explain` also says why by LIME and gradients; `serve,train,vision` also writes captions.
ARG EXTRAS=serve,train
WORKDIR /source
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE ./
COPY recipes recipes
COPY src src
# What is only for building against PyTorch, or for its own tests, stays behind. pip compiles the modules here, since the
# server may not write: compiling at each start would double the time of the start.
RUN python -m venv /opt/translucid \
    && /opt/translucid/bin/pip install --no-cache-dir -c constraints.txt ".${EXTRAS:+[$EXTRAS]}" \
    && /opt/translucid/bin/pip uninstall --yes --quiet pip setuptools \
    && rm -rf /opt/translucid/lib/python*/site-packages/torch/include /opt/translucid/lib/python*/site-packages/torch/test \
    && find /opt/translucid/lib -path '*/site-packages/torch/bin/*' -type f ! -name torch_shm_manager -delete

FROM ${BASE}
COPY --from=built /opt/translucid /opt/translucid
# No file of the image is written to, so it may be read-only. Documents are in /tmp; converted models in /cache, which a volume
# can keep, because the first start converts the model.
RUN install -d -o 10001 -g 10001 /cache
ENV PATH=/opt/translucid/bin:$PATH \
    HOME=/tmp \
    XDG_CACHE_HOME=/cache \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TRANSLUCID_HOST=0.0.0.0 \
    TRANSLUCID_PORT=5000 \
    TRANSLUCID_RUNS=/runs/demo
USER 10001:10001
WORKDIR /tmp
EXPOSE 5000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["python", "-c", \
    "import os, urllib.request; at = os.environ.get; urllib.request.urlopen(f\"http://127.0.0.1:{at('TRANSLUCID_PORT')}{at('TRANSLUCID_URL_PREFIX', '')}/health\", timeout=4)"]
ENTRYPOINT ["translucid"]
CMD ["serve"]
